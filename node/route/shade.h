/* Shadow mode and control at the router (shadow.h has the counters, docs/adr/0075 the reasons):
 *
 *   shadowing.c  the policy that routes a request; the choice of the router's own policy
 *   shade.c      the loads and believed caches as the router's own policy would have made them
 *   shadowed.c   the answers, counted for both policies, and shown */
#ifndef NODE_ROUTE_SHADE_H
#define NODE_ROUTE_SHADE_H

#include "node/route/router_internal.h"

/* Loads and believed caches as they would be after choices by the router's own policy. A booking
 * leaves the queue after the estimated time, and ends with the request. */
struct node_shade {
    struct node_bookings *bookings;
    struct node_load loads[NODE_REPLICAS_MAX];
    struct node_room rooms[NODE_REPLICAS_MAX]; /* the most requests and tokens that ran at once, by
                                                * these loads */
    struct node_belief beliefs[NODE_REPLICAS_MAX];
    struct node_shade_seen { /* the index's counters when `beliefs` were last counted */
        uint32_t newest;
        uint64_t total;
    } seen[NODE_REPLICAS_MAX];
};

/* Frees the value; NULL is fine. */
void node_shade_destroy(struct node_shade *s);
void node_router_shadow_check(const struct node_router *r);
/* The first: another replica gets the index, which has no bookings. The second: the replica's cache
 * is a new, empty one. */
void node_router_shadow_slot_set(struct node_router *r, unsigned replica);
void node_router_shadow_cache_renewed(struct node_router *r, unsigned replica);
/* True if a request is booked at the replica in shadow mode. */
static inline bool node_router_shadow_is_booked(const struct node_router *r, unsigned replica)
{
    return r->shade && r->shade->loads[replica].requests > 0;
}
/* The policy by which the request is routed. */
const struct node_policy *node_router_routed_by(const struct node_router *r,
                                                const struct node_request *request);
/* Between enter and leave, loads and believed caches are those of the router's own policy, and
 * `request` has separate ids for the prompt's checkpoints. Other routers' work counts evenly at the
 * candidates of the last node_router_evaluate(). Enter returns false, without any change, if out of
 * memory. */
MUST_USE bool node_router_shadow_enter(struct node_router *r, struct node_request *request);
void node_router_shadow_leave(struct node_router *r);
/* The plain policy placed a request. This finds, books and records the choice of the router's own
 * policy. */
void node_router_shadow_place(struct node_router *r, const struct node_request *request,
                              uint64_t now_ms, const struct node_decision *placed);
/* Like node_router_first_byte(), node_router_used() and node_router_finish(), but for the booking
 * in shadow mode. `usage`: as reported, or NULL. */
void node_router_shadow_began(struct node_router *r, const struct node_work *work, uint64_t now_ms);
void node_router_shadow_used(struct node_router *r, const struct node_booking_entry *e,
                             const struct chain *chain);
void node_router_shadow_ended(struct node_router *r, const struct node_booking_entry *e,
                              const struct node_usage *usage, bool computed, uint64_t now_ms);
/* In shadow mode, makes the index count the entries of both policies separately. Without memory,
 * they count together. */
static inline void node_router_shadow_split(struct node_router *r)
{
    if (r->config.shadow)
        DISCARD(crdt_index_split(r->index));
}
/* Splits the counts also when the index gets records of shadow mode from other routers or an
 * earlier life. Otherwise these records would fill the believed caches. */
void node_router_shadow_notice(struct node_router *r, const struct crdt_index_stats *stats);
void node_router_shadow_metrics(const struct node_router *r, struct prometheus *p);

#endif
