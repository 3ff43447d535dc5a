/* A Kubernetes service as a source of replicas: how its EndpointSlices are asked for and followed.
 *
 * What the API server wants of a client (kubernetes.io/docs/reference/using-api/api-concepts):
 * list all pages, then watch from the version of that list; each event brings a newer version,
 * bookmarks too; a watch that breaks is resumed at the last version; where that is too old (410),
 * the list is asked for anew. The old list holds until the new one is whole.
 *
 *               +--> LIST, page after page --whole--> WATCH --ends or breaks--+
 *               |                                      ^                      |
 *      410, or three failures in a row                 +----------------------+
 *
 * Pure: the host (node/io/replica_kubernetes.h) has the connection, time comes in as milliseconds
 * of a monotonic clock. After each event, and when the time has come that WAIT gave, it does what
 * discover_kubernetes_next() says, until that is WAIT:
 *
 *   ASK      begin a GET of discover_kubernetes_target(); then, in this order,
 *              discover_kubernetes_answered()   once, the status of the answer
 *              discover_kubernetes_received()   its body, in pieces of any size
 *              discover_kubernetes_ended()      once, whole or broken; nothing else follows
 *   CANCEL   end it; nothing of it is reported any more
 *   LISTED   discover_kubernetes_entries() is the whole list now: for discover_list()
 *   SAME     it was heard of well, and nothing has changed: for discover_same()
 *   FAILED   discover_kubernetes_why() says why it cannot be learned now: for discover_failed()
 *   WAIT     until then
 *
 * Times: a request whose answer does not begin, or a list that stands still, is given up after
 * DISCOVER_ANSWER_MS. A watch without a byte for DISCOVER_SILENCE_MS may be dead and is made anew
 * at its last version: an API server sends no bookmarks where nothing has happened yet. After
 * failures it waits longer and longer, up to DISCOVER_BACKOFF_MAX_MS, each time by chance between
 * half of that and all of it.
 */
#ifndef NODE_DISCOVER_KUBERNETES_H
#define NODE_DISCOVER_KUBERNETES_H

#include "base/err.h"
#include "node/discover/discover.h"
#include "node/discover/slices.h"

enum {
    DISCOVER_ANSWER_MS = 15000,
    DISCOVER_SILENCE_MS = 90000,
    DISCOVER_SETTLED_MS = 1000, /* a watch that lasts so long, or brings something, is a good one */
    DISCOVER_BACKOFF_MS = 1000,
    DISCOVER_BACKOFF_MAX_MS = 30000,
    DISCOVER_RETRY_AFTER_MAX_MS = 120000, /* of an API server that says how long to wait */
    DISCOVER_PAGE_SLICES = 100,           /* asked for at once */
    DISCOVER_WATCH_S = 240,               /* a watch is asked for so long, up to twice that */
    DISCOVER_RELIST_FAILURES = 3, /* failures of watches in a row until a list is asked for */
    DISCOVER_NAMESPACE_MAX = 63,  /* bytes */
    DISCOVER_SERVICE_MAX = 63,    /* bytes */
};

/* [NAMESPACE/]SERVICE[:PORT][#label=...], as the setting has it. */
struct discover_service {
    char namespace[DISCOVER_NAMESPACE_MAX + 1]; /* "": the router's own */
    char name[DISCOVER_SERVICE_MAX + 1];
    char port[DISCOVER_PORT_NAME_MAX + 1]; /* a number, a name, or "": the only one */
    bool tls;                              /* https:// was before it: its replicas speak TLS */
    struct node_labels labels;             /* of all its replicas; borrows from the text */
};

/* NULL, or what is wrong with the text and would be right (a literal). */
const char *discover_service_parse(struct slice text, struct discover_service *out);

enum discover_kubernetes_action {
    DISCOVER_KUBERNETES_WAIT,
    DISCOVER_KUBERNETES_ASK,
    DISCOVER_KUBERNETES_CANCEL,
    DISCOVER_KUBERNETES_LISTED,
    DISCOVER_KUBERNETES_SAME,
    DISCOVER_KUBERNETES_FAILED,
};

struct discover_kubernetes;

/* `service` is copied but for its labels' text, which is borrowed; its namespace is not empty.
 * ERR_NOMEM. */
MUST_USE int discover_kubernetes_create(struct discover_kubernetes **out,
                                        const struct discover_service *service, uint64_t seed,
                                        uint64_t now_ms);
/* NULL is fine. */
void discover_kubernetes_destroy(struct discover_kubernetes *k);
void discover_kubernetes_check(const struct discover_kubernetes *k);

/* What to do now; of WAIT, `until_ms`. */
MUST_USE enum discover_kubernetes_action
discover_kubernetes_next(struct discover_kubernetes *k, uint64_t now_ms, uint64_t *until_ms);
/* Path and query. Good until the next ASK. */
const char *discover_kubernetes_target(const struct discover_kubernetes *k);
/* Good until the next event. */
const struct discover_entry *discover_kubernetes_entries(const struct discover_kubernetes *k,
                                                         unsigned *count);
/* Why it is empty, if it is. Good until the next event. */
const char *discover_kubernetes_hint(struct discover_kubernetes *k);
/* The list was not taken: it is asked for anew, after a while. */
void discover_kubernetes_refused(struct discover_kubernetes *k, uint64_t now_ms);
const char *discover_kubernetes_why(const struct discover_kubernetes *k);

/* `retry_after_s`: what the answer says of how long to wait; 0: nothing. */
void discover_kubernetes_answered(struct discover_kubernetes *k, unsigned status,
                                  uint64_t retry_after_s, uint64_t now_ms);
void discover_kubernetes_received(struct discover_kubernetes *k, struct slice bytes,
                                  uint64_t now_ms);
/* NULL: the body is whole. Else why it broke, or could not begin. */
void discover_kubernetes_ended(struct discover_kubernetes *k, const char *error, uint64_t now_ms);

#endif
