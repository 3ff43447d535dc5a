/* Shared by the state's files: state.c (creation, this router's changes), delta.c (deltas made and
 * applied), join.c, reconcile.c, classes.c and snapshot.c. */
#ifndef CRDT_STATE_INTERNAL_H
#define CRDT_STATE_INTERNAL_H

#include "crdt/early.h"
#include "crdt/outbox.h"
#include "crdt/state.h"
#include "crdt/tidings.h"

/* The sketch of a cut (crdt/reconcile.c). It takes a walk over the index, so the sketch is kept and
 * serves all requests. */
struct crdt_cut {
    bool spent; /* true: no further walk until crdt_state_cut_renew() */
    uint32_t from;
    struct crdt_sketch *sketch; /* sketch of the cut from generation `from`; NULL: none */
};

struct crdt_state {
    struct crdt_index *index;
    struct crdt_registry *registry;
    struct crdt_reports *reports;
    struct crdt_poison poison;
    bool replicated;
    uint32_t generation_ms;
    uint64_t cluster_ms; /* as last given to crdt_state_clock() */
    struct crdt_outbox outbox;
    struct crdt_tidings tidings;
    crdt_tiding_fn tiding; /* receives other routers' tidings, or NULL */
    void *tiding_context;
    struct crdt_early early;
    bool early_due;                         /* crdt_state_observe_again() has something to do */
    struct crdt_cut cut;                    /* used by reconcile.c */
    uint64_t registry_followed;             /* the registry's version when the state last followed
                                             * it */
    uint32_t rkey_known[CRDT_REPLICAS_MAX]; /* rkeys last passed to the index, by slot */
    uint64_t key_known[CRDT_REPLICAS_MAX];  /* keys of names last passed to the reports, by slot */
    unsigned reports_from; /* slot of the first report that did not fit the last message: the next
                            * message starts with it */
    struct crdt_state_stats stats;
};

/* Call this after a change of the registry: passes new caches to the index, and drops the data
 * under slots of forgotten names. */
void crdt_state_follow_registry(struct crdt_state *s);

/* Queues a new point, observed by this router, for the other routers. */
void crdt_state_tell_point(struct crdt_state *s, unsigned slot, uint32_t generation,
                           uint64_t point);

/* The oldest generation that counts for a slot: older observations belong to an earlier use of the
 * slot's name. */
uint32_t crdt_state_oldest(const struct crdt_state *s, unsigned slot);

/* Joins checked records. `origin`: the delta's origin, or NULL for a dump. Returns how many
 * observations were news. */
uint64_t crdt_state_join(struct crdt_state *s, const struct crdt_origin *origin,
                         struct slice records);

#endif
