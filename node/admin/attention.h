/* Problems in need of attention, a line each: severity, start, affected clients and the next
 * command. The wording is in a single table; the page, GET /attention and gvctl status show the
 * items.
 *
 *   red    clients get failures, or a model has no usable replica
 *   amber  a part is out of service, and clients are served
 *   grey   old members
 *
 * Planned work (a drain, a router leaving in order, a replica in slow start) is no problem.
 *
 * Invariants: items are ordered by severity, the worst first, then by the time of adding. A
 * list has at most ATTENTION_ITEMS_MAX items and counts the rest. */
#ifndef NODE_ADMIN_ATTENTION_H
#define NODE_ADMIN_ATTENTION_H

#include "base/json_write.h"
#include "base/slice.h"

enum admin_attention_severity {
    ATTENTION_WELL, /* a list without items */
    ATTENTION_GREY,
    ATTENTION_AMBER,
    ATTENTION_RED,
    ATTENTION_SEVERITIES,
};

enum admin_attention_kind {
    ATTENTION_CLIENTS_FAIL,
    ATTENTION_CLIENTS_REFUSED,
    ATTENTION_ALL_FULL,
    ATTENTION_NO_REPLICA,
    ATTENTION_MODEL_OUT,
    ATTENTION_CERTIFICATE_EXPIRED,
    ATTENTION_CLIENTS_KEY,
    ATTENTION_CLIENTS_WAIT,
    ATTENTION_REPLICA_OUT,
    ATTENTION_REPLICA_LAST, /* out, and some model has no other replica */
    ATTENTION_REPLICA_AVOIDED,
    ATTENTION_REPLICA_FLAPS,
    ATTENTION_ROUTER_GONE,
    ATTENTION_ROUTER_SILENT,
    ATTENTION_ROUTERS_CUT,
    ATTENTION_ROUTER_DEAF,
    ATTENTION_ROUTERS_DIFFER,
    ATTENTION_ROUTERS_INCOMPARABLE,
    ATTENTION_ROUTER_SETTINGS,
    ATTENTION_TCP_FILTERED,
    ATTENTION_ALONE,
    ATTENTION_OTHER_CLUSTER,
    ATTENTION_CERTIFICATE_EXPIRES,
    ATTENTION_FILES_REFUSED,
    ATTENTION_ROUTER_OLD,
    ATTENTION_KINDS,
};

enum {
    ATTENTION_ITEMS_MAX = 32, /* enough for a person; `more` counts the rest */
    ATTENTION_ABOUT_BYTES = 96,
    ATTENTION_TEXT_BYTES = 320,
    ATTENTION_HURTS_BYTES = 192,
    ATTENTION_COMMAND_BYTES = 144,
};

/* Values for the fields of a kind's text. */
struct admin_attention_facts {
    struct slice about; /* {a}: the router, replica, model or file */
    const char *text;   /* {t}; NULL: empty */
    uint64_t n, m;      /* {n}, {m} */
};

struct admin_attention_item {
    enum admin_attention_kind kind;
    uint64_t since_ms; /* Unix time; 0: unknown */
    char about[ATTENTION_ABOUT_BYTES];
    char what[ATTENTION_TEXT_BYTES];
    char hurts[ATTENTION_HURTS_BYTES];
    char command[ATTENTION_COMMAND_BYTES];
};

struct admin_attention_list {
    unsigned count;
    unsigned more; /* number of items without room */
    struct admin_attention_item items[ATTENTION_ITEMS_MAX];
};

const char *admin_attention_severity_text(enum admin_attention_severity severity);
const char *admin_attention_kind_text(enum admin_attention_kind kind);
enum admin_attention_severity admin_attention_severity_of(enum admin_attention_kind kind);
/* Returns the severity of the worst item. */
enum admin_attention_severity admin_attention_worst(const struct admin_attention_list *list);

void admin_attention_add(struct admin_attention_list *list, enum admin_attention_kind kind,
                         const struct admin_attention_facts *facts);

/* Requests at a router in the last minute; `router` is empty if alone. admin_attention_clients()
 * adds an item for each kind of failure in at least 1 of 100 requests, and for keys
 * (`unauthorized`) in at least 1 of 10. */
struct admin_attention_minute {
    uint64_t requests, status_5xx, cut, queue_full, unauthorized;
};
void admin_attention_clients(struct admin_attention_list *list, struct slice router,
                             const struct admin_attention_minute *minute);

/* Copies the start time of each item present in `before`; the other items start now. */
void admin_attention_since(struct admin_attention_list *list,
                           const struct admin_attention_list *before, uint64_t unix_ms);

/* Writes the fields `worst`, `more` and `items` into an open JSON object. */
void admin_attention_write(const struct admin_attention_list *list, struct json_writer *w);

#endif
