/* Engines' events: what a replica itself says that its cache holds. Nothing feeds this class yet:
 * routers do not read engines' events (crdt/README.md).
 *
 *   rkey -> (version, ids)     the ids that events 1 .. version of this cache have left
 *
 * The replica is the only writer of its events and numbers them. So the states of one rkey are
 * ordered by version, and the join is the greater version. A removal needs no tombstone: "version
 * at least that of the removal, and the id is not there" says it. An event is applied only on top
 * of the one before it: over a gap the set would be wrong, and no later event would put it right. A
 * cache that restarted has a new rkey, and the events of the old one are dropped.
 *
 * Two states of one version that differ can only come from a fault. Then the greater fold wins, so
 * that all routers still agree, and the conflict is counted.
 *
 * Memory is bounded: by the budget over all, and by CRDT_EVENTS_IDS_MAX for one cache, so that a
 * whole state fits into one message. An event without room is refused, and so are the events after
 * it, until a state that fits is joined.
 */
#ifndef CRDT_EVENTS_H
#define CRDT_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "crdt/limits.h"

struct crdt_events;

/* ERR_NOMEM. */
MUST_USE int crdt_events_create(struct crdt_events **out, unsigned replicas_max,
                                uint64_t bytes_max);
void crdt_events_destroy(struct crdt_events *l);
/* Recounts everything. */
void crdt_events_check(const struct crdt_events *l);

struct crdt_event {
    uint32_t rkey;
    uint64_t version; /* > 0 */
    const uint64_t *added;
    unsigned added_count;
    const uint64_t *removed; /* after the added ones */
    unsigned removed_count;
};
/* 1: applied; 0: known already; ERR_AGAIN: one before it is missing; ERR_FULL. */
MUST_USE int crdt_events_append(struct crdt_events *l, const struct crdt_event *e);
/* Joins a whole state: 1 news, 0 not, ERR_FULL, ERR_LIMIT (too many ids). */
MUST_USE int crdt_events_join(struct crdt_events *l, uint32_t rkey, uint64_t version,
                              const uint64_t *ids, unsigned count);
void crdt_events_retire(struct crdt_events *l, uint32_t rkey);

struct crdt_events_head {
    uint32_t rkey;
    uint64_t version;
    uint64_t fold; /* sum of the hashes of the ids: the set in 64 bits */
    unsigned count;
};
/* Whether anything is known of that cache. */
bool crdt_events_find(const struct crdt_events *l, uint32_t rkey, struct crdt_events_head *out);
bool crdt_events_holds(const struct crdt_events *l, uint32_t rkey, uint64_t id48);
/* In the order of rkeys. */
unsigned crdt_events_count(const struct crdt_events *l);
struct crdt_events_head crdt_events_at(const struct crdt_events *l, unsigned index);
/* All ids of the one at `index`; `out` has room for its count. */
void crdt_events_ids(const struct crdt_events *l, unsigned index, uint64_t *out);

uint64_t crdt_events_digest(const struct crdt_events *l);
uint64_t crdt_events_conflicts(const struct crdt_events *l);

#endif
