/* What the files of the state share: state.c (life, what this router does), delta.c (deltas made
 * and applied), join.c, reconcile.c, vector.c and snapshot.c. */
#ifndef CRDT_STATE_INTERNAL_H
#define CRDT_STATE_INTERNAL_H

#include "crdt/outbox.h"
#include "crdt/state.h"

struct crdt_state {
    struct crdt_index *index;
    struct crdt_registry *registry;
    struct crdt_reports *reports;
    struct crdt_events *log;
    bool replicated;
    struct crdt_outbox outbox;
    uint64_t replica_waiting[CRDT_REPLICAS_MAX / 64]; /* rows of the registry to be sent */
    unsigned replicas_waiting;
    uint64_t registry_followed;             /* version of it */
    uint32_t rkey_known[CRDT_REPLICAS_MAX]; /* to the index, by slot */
    struct crdt_state_stats stats;
};

/* The registry may have changed: new caches become known to the index and to engines' events. */
void crdt_state_follow_registry(struct crdt_state *s);

/* Joins checked records. `origin` is that of a delta, NULL for a dump. Returns how many
 * observations were news. */
uint64_t crdt_state_join(struct crdt_state *s, const struct crdt_origin *origin,
                         struct slice records);

#endif
