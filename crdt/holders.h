/* Sets of holders, for ids with more holders than the table keeps as single entries. For example,
 * all replicas hold a shared system prompt.
 *
 * A set maps replica -> generation, exactly. Small sets are lists of 4-byte stamps that double as
 * they grow. A list as large as 2 bytes for every slot (rounded up to a power of two) becomes an
 * array with 2 bytes a slot. So with 2,048 slots a prefix in 1,000 caches costs about 4 bytes an
 * entry. A place with a dead stamp is free.
 *
 * A set's number is the number of the set's first unit in the arena. It changes when the set grows
 * or shrinks.
 */
#ifndef CRDT_HOLDERS_H
#define CRDT_HOLDERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "crdt/arena.h"
#include "crdt/window.h"

#define CRDT_STAMP_NONE UINT32_MAX

enum { CRDT_HOLDERS_START = 16 }; /* places of a new set, at least */

struct crdt_holders {
    struct crdt_arena arena;
    const struct crdt_window *window;
};

/* Allocates at most `bytes_max` bytes, all at once. ERR_NOMEM. */
MUST_USE int crdt_holders_init(struct crdt_holders *h, const struct crdt_window *window,
                               uint32_t replicas, uint64_t bytes_max);
void crdt_holders_free(struct crdt_holders *h);

/* An empty set, or CRDT_ARENA_NONE: the arena is full. */
uint32_t crdt_holders_create(struct crdt_holders *h);
void crdt_holders_destroy(struct crdt_holders *h, uint32_t set);

/* Sets *generation to the generation of the replica's live stamp. False: the set has no live stamp
 * of the replica. */
bool crdt_holders_get(const struct crdt_holders *h, uint32_t set, unsigned replica,
                      uint32_t *generation);
/* Sets the generation of a replica, which may be new to the set. ERR_FULL: the set is full and
 * cannot grow. *taken is the overwritten dead stamp, or CRDT_STAMP_NONE. */
MUST_USE int crdt_holders_put(struct crdt_holders *h, uint32_t *set, unsigned replica,
                              uint32_t generation, uint32_t *taken);

/* Gives the next dead stamp of the set, from place `*at` on. Start with *at = 0. False: no more. */
bool crdt_holders_next_dead(const struct crdt_holders *h, uint32_t set, uint32_t *at,
                            uint32_t *stamp);
/* Gives the next live stamp of the set, as crdt_holders_next_dead() does. */
bool crdt_holders_next(const struct crdt_holders *h, uint32_t set, uint32_t *at, uint32_t *stamp);

/* Clears dead stamps, and moves the set to a smaller piece if that leaves places free. Returns the
 * number of live stamps. Adds the number of cleared stamps to *reclaimed. */
uint32_t crdt_holders_tidy(struct crdt_holders *h, uint32_t *set, uint64_t *reclaimed);

/* A match in progress (crdt_index_match). A replica's limit is 0 if the replica is resolved, or was
 * not asked for. */
struct crdt_match {
    uint16_t limit[CRDT_WINDOW_REPLICAS]; /* stamps below this age count */
    uint16_t *length_out;
    uint32_t *generation_out;
    uint32_t replicas;
    uint32_t pending; /* replicas not yet resolved */
};

/* Resolves the replica: it holds the point at `index`, with a stamp of this age. */
static inline void crdt_match_resolve(struct crdt_match *m, const struct crdt_window *w,
                                      unsigned replica, uint16_t age, unsigned index)
{
    m->limit[replica] = 0;
    m->pending--;
    m->length_out[replica] = (uint16_t)(index + 1);
    if (m->generation_out != NULL)
        m->generation_out[replica] = w->now + 1 - age;
}

/* Resolves each replica of `m` with a stamp in the set younger than the replica's limit: the
 * replica holds the point at `index`. */
void crdt_holders_match(const struct crdt_holders *h, uint32_t set, struct crdt_match *m,
                        unsigned index);

/* Checks a set. Each stamp, alive or dead, has the replica's present incarnation or a retired
 * incarnation (a bit of `retired[replica]`), and an age of at most `span`. No replica has two live
 * stamps. */
void crdt_holders_check(const struct crdt_holders *h, uint32_t set, const uint16_t *retired,
                        uint32_t span);

#endif
