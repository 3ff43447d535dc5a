/* Pairs of living routers without contact, found by comparing the routers' own reports. A single
 * router cannot notice such a pair: other routers relay the news of both.
 *
 * Planned work is no problem. A router that drains, leaves, or has just started is left out.
 */
#ifndef NODE_ADMIN_HEARING_H
#define NODE_ADMIN_HEARING_H

#include "node/admin/attention.h"
#include "node/cluster/digests.h"
#include "node/cluster/replication.h"

enum {
    HEARING_NAMED_MAX = 3,    /* lines of cuts, and lines of deaf routers; `more` counts the rest */
    HEARING_ROUTER_MS = 350,  /* silence allowed per living router: each sends to a random one 8
                               * times a second */
    HEARING_LEAST_MS = 1000,  /* silence allowed at least, for 2 routers: a packet or two may get
                               * lost */
    HEARING_YOUNG_MS = 3000,  /* a router younger than this may not have met all others */
    HEARING_KNOWN_MS = 10000, /* after this time the findings are out of date */
};

struct admin_hearing_view {
    struct node_hears hears;
    bool judged[NODE_HEARS_MAX]; /* by router: admin_hearing_is_judged() */
    uint32_t heard_ms;           /* a router last heard longer ago counts as not heard */
};

struct admin_hearing_line {
    enum admin_attention_kind kind;
    char about[ATTENTION_ABOUT_BYTES], text[ATTENTION_ABOUT_BYTES];
    uint64_t more;
};

struct admin_hearing {
    uint64_t taken_ms; /* time of the last comparison; 0: never */
    unsigned count;
    struct admin_hearing_line lines[2 * HEARING_NAMED_MAX];
};

/* True if silence of this router would be a problem: it lives, does not drain, and has had the time
 * to meet all others. */
bool admin_hearing_is_judged(const struct node_member_look *m);
/* Finds cuts and deaf routers in `nodes`, the answers of all routers with their digests
 * (node/cluster/digests.h). */
void admin_hearing_take(struct admin_hearing *h, const struct node_replication *n,
                        struct slice nodes, uint64_t now_us, uint64_t now_ms);
/* Finds cuts and deaf routers in a view; for admin_hearing_take() and tests. */
void admin_hearing_find(struct admin_hearing *h, const struct admin_hearing_view *view);
/* Adds the findings to a list, unless they are out of date. */
void admin_hearing_add(const struct admin_hearing *h, uint64_t now_ms,
                       struct admin_attention_list *list);

#endif
