/* Shared by the state's files: state.c (life, what this router does), delta.c (deltas made and
 * applied), join.c, reconcile.c, classes.c and snapshot.c. */
#ifndef CRDT_STATE_INTERNAL_H
#define CRDT_STATE_INTERNAL_H

#include "crdt/early.h"
#include "crdt/outbox.h"
#include "crdt/state.h"
#include "crdt/tidings.h"

/* The sketch of a cut, which takes a walk over the index: one does for all that is asked of it. */
struct crdt_cut {
    bool spent; /* no walk until crdt_state_cut_renew() */
    uint32_t from;
    struct crdt_sketch *sketch; /* of what begins there; NULL: none */
};

struct crdt_state {
    struct crdt_index *index;
    struct crdt_registry *registry;
    struct crdt_reports *reports;
    struct crdt_poison poison;
    bool replicated;
    uint32_t generation_ms;
    uint64_t cluster_ms; /* of crdt_state_clock() */
    struct crdt_outbox outbox;
    struct crdt_tidings tidings;
    crdt_tiding_fn tiding; /* receives other routers' tidings, or NULL */
    void *tiding_context;
    struct crdt_early early;
    bool early_due;                         /* crdt_state_observe_again() */
    struct crdt_cut cut;                    /* of reconcile.c */
    uint64_t registry_followed;             /* version of it */
    uint32_t rkey_known[CRDT_REPLICAS_MAX]; /* to the index, by slot */
    uint64_t key_known[CRDT_REPLICAS_MAX];  /* to the reports, by slot */
    unsigned reports_from; /* slot of a report that did not fit the last message: it goes first */
    struct crdt_state_stats stats;
};

/* The registry may have changed: new caches become known to the index, and what hangs on slots of
 * forgotten names goes. */
void crdt_state_follow_registry(struct crdt_state *s);

/* The point is news of this router's own. */
void crdt_state_tell_point(struct crdt_state *s, unsigned slot, uint32_t generation,
                           uint64_t point);

/* Observations of an older generation are of an earlier life of the slot's name. */
uint32_t crdt_state_oldest(const struct crdt_state *s, unsigned slot);

/* Joins checked records. `origin` is that of a delta, NULL for a dump. Returns how many
 * observations were news. */
uint64_t crdt_state_join(struct crdt_state *s, const struct crdt_origin *origin,
                         struct slice records);

#endif
