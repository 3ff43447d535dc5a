/* A Kubernetes service as a source of replicas: requests and follows the service's EndpointSlices.
 *
 * The API server's protocol (kubernetes.io/docs/reference/using-api/api-concepts): list all pages,
 * then watch from the list's version. Each event and each bookmark brings a newer version. A broken
 * watch resumes at the last version; if the server finds this version too old (410), the list is
 * requested anew. The old list stays until the new list is complete.
 *
 *               +--> LIST, page after page --done---> WATCH --ends or breaks--+
 *               |                                      ^                      |
 *      410, or three failures in a row                 +----------------------+
 *
 * Pure: the host (node/io/replica_kubernetes.h) owns the connection, and passes the time as
 * milliseconds of a monotonic clock. After each event, and at the time from WAIT, the host does the
 * actions from discover_kubernetes_next(), up to the next WAIT:
 *
 *   ASK      begin a GET of discover_kubernetes_target(); then, in this order,
 *              discover_kubernetes_answered()   once, the status of the answer
 *              discover_kubernetes_received()   the body, in pieces of any size
 *              discover_kubernetes_ended()      once, whole or broken; nothing else follows
 *   CANCEL   end the request, and report nothing more of it
 *   LISTED   discover_kubernetes_entries() is the complete list: for discover_list()
 *   SAME     the source works, and nothing changed: for discover_same()
 *   FAILED   discover_kubernetes_why() says why the list cannot be read now: for discover_failed()
 *   WAIT     until then
 *
 * Times: a request without the beginning of an answer, or a list that stalls, is given up after
 * DISCOVER_ANSWER_MS. A watch without a byte for DISCOVER_SILENCE_MS may be dead and is resumed at
 * the last version: an API server sends no bookmarks if nothing has happened yet. After failures
 * the delay grows up to DISCOVER_BACKOFF_MAX_MS. Each delay is random, from half of the value to
 * all of it.
 */
#ifndef NODE_DISCOVER_KUBERNETES_H
#define NODE_DISCOVER_KUBERNETES_H

#include "base/err.h"
#include "node/discover/discover.h"
#include "node/discover/slices.h"

enum {
    DISCOVER_ANSWER_MS = 15000,
    DISCOVER_SILENCE_MS = 90000,
    DISCOVER_SETTLED_MS = 1000, /* a watch is good after this time, or after an event */
    DISCOVER_BACKOFF_MS = 1000,
    DISCOVER_BACKOFF_MAX_MS = 30000,
    DISCOVER_RETRY_AFTER_MAX_MS = 120000, /* limit of an API server's Retry-After */
    DISCOVER_PAGE_SLICES = 100,           /* slices per request */
    DISCOVER_WATCH_S = 240,               /* shortest duration of a watch; each is random, up to
                                           * twice this value */
    DISCOVER_RELIST_FAILURES = 3, /* consecutive watch failures before a new list is requested */
    DISCOVER_NAMESPACE_MAX = 63,  /* bytes */
    DISCOVER_SERVICE_MAX = 63,    /* bytes */
};

/* [NAMESPACE/]SERVICE[:PORT][#label=...], as in the setting. */
struct discover_service {
    char namespace[DISCOVER_NAMESPACE_MAX + 1]; /* "": the router's own */
    char name[DISCOVER_SERVICE_MAX + 1];
    char port[DISCOVER_PORT_NAME_MAX + 1]; /* number or name of a port; "": the only port */
    bool tls;                              /* the setting began with https://: the replicas use
                                              TLS */
    struct node_labels labels;             /* for all replicas; borrow from the text */
};

/* Parses a value of replica-kubernetes. Returns NULL, or a literal with the error and a correct
 * form. */
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

/* `service` is copied, except for the text of labels, which is borrowed; service->namespace is not
 * empty. ERR_NOMEM. */
MUST_USE int discover_kubernetes_create(struct discover_kubernetes **out,
                                        const struct discover_service *service, uint64_t seed,
                                        uint64_t now_ms);
/* NULL is fine. */
void discover_kubernetes_destroy(struct discover_kubernetes *k);
void discover_kubernetes_check(const struct discover_kubernetes *k);

/* Returns the next action; with WAIT, sets `until_ms`. */
MUST_USE enum discover_kubernetes_action
discover_kubernetes_next(struct discover_kubernetes *k, uint64_t now_ms, uint64_t *until_ms);
/* Returns the path and query of the request to make. Valid until the next ASK. */
const char *discover_kubernetes_target(const struct discover_kubernetes *k);
/* Returns the complete list. Valid until the next event. */
const struct discover_entry *discover_kubernetes_entries(const struct discover_kubernetes *k,
                                                         unsigned *count);
/* Returns the reason for an empty list, for people. Valid until the next event. */
const char *discover_kubernetes_hint(struct discover_kubernetes *k);
/* The host calls this if discover_list() refused the list. The list is requested again after a
 * delay. */
void discover_kubernetes_refused(struct discover_kubernetes *k, uint64_t now_ms);
const char *discover_kubernetes_why(const struct discover_kubernetes *k);

/* `retry_after_s`: the answer's Retry-After; 0: none. */
void discover_kubernetes_answered(struct discover_kubernetes *k, unsigned status,
                                  uint64_t retry_after_s, uint64_t now_ms);
void discover_kubernetes_received(struct discover_kubernetes *k, struct slice bytes,
                                  uint64_t now_ms);
/* The answer has ended. `error` NULL: the body is complete. Otherwise `error` says why the answer
 * broke or did not begin. */
void discover_kubernetes_ended(struct discover_kubernetes *k, const char *error, uint64_t now_ms);

#endif
