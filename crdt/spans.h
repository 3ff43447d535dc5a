/* The sketches of a replicated index: a ring with a sketch for each span of generations.
 *
 * An index keeps ttl + 2 generations. A span is ttl / 32 of them (rounded up), so at most 34 spans
 * are alive. When a span expires, the sketch is cleared. The sketch of a span is the XOR of the
 * symbols of all entries in memory, alive or dead, with a generation of the span. An entry is
 * removed from the sketch when the entry's memory is reused, under the rkey with which the entry
 * was added. So the rkeys of retired incarnations are kept here, too.
 */
#ifndef CRDT_SPANS_H
#define CRDT_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "crdt/sketch_internal.h"
#include "crdt/window.h"

enum {
    CRDT_SPANS = 32,   /* spans in a TTL, at most */
    CRDT_PENDING = 16, /* flips waiting for the prefetch of their cells */
};

struct crdt_pending {
    struct crdt_sketch *sketch; /* NULL: no flip waits here */
    struct crdt_mark mark;
    int sign;
};

struct crdt_spans {
    const struct crdt_window *window;
    struct crdt_sketch *ring; /* NULL: no sketches are kept */
    uint32_t *rkey;           /* [replica][8], by incarnation */
    uint32_t length;          /* generations of a span */
    uint32_t count;           /* sketches in the ring */
    uint32_t first;           /* the first span with a generation not below the floor */
    uint32_t replicas;
    struct crdt_pending pending[CRDT_PENDING];
    unsigned next;                   /* place in `pending` to use next */
    bool dirty[CRDT_SPANS + 2];      /* by place in the ring: changed since cleared */
    bool used[CRDT_WINDOW_REPLICAS]; /* the present incarnation has had an entry */
};

/* Bytes that crdt_spans_init() will allocate. */
uint64_t crdt_spans_bytes(uint32_t replicas, uint32_t ttl);
MUST_USE int crdt_spans_init(struct crdt_spans *s, const struct crdt_window *window,
                             uint32_t replicas, uint32_t ttl);
void crdt_spans_free(struct crdt_spans *s);

/* Applies all flips that wait. */
void crdt_spans_settle(struct crdt_spans *s);
/* The floor has risen: applies waiting flips and clears the spans below the floor. */
void crdt_spans_floor(struct crdt_spans *s, uint32_t floor);
/* The sum of the sketches from the span of generation `from` on. */
void crdt_spans_sum(const struct crdt_spans *s, uint32_t from, struct crdt_sketch *out);
void crdt_spans_estimate(const struct crdt_spans *s, uint32_t from,
                         uint8_t out[CRDT_ESTIMATE_COUNTERS]);

static inline uint32_t crdt_spans_rkey(const struct crdt_spans *s, unsigned replica,
                                       unsigned incarnation)
{
    return s->rkey[replica * (CRDT_INCARNATIONS + 1) + incarnation];
}

/* Records that `rkey` names the cache of the replica's new incarnation. */
static inline void crdt_spans_name(struct crdt_spans *s, unsigned replica, uint32_t rkey)
{
    s->rkey[replica * (CRDT_INCARNATIONS + 1) + (s->window->incarnation[replica] >> 12)] = rkey;
    s->used[replica] = false;
}

/* The mark of an entry: `stamp` has the replica and the incarnation. */
static inline struct crdt_mark crdt_spans_mark(const struct crdt_spans *s, uint64_t id48,
                                               uint8_t code, uint32_t stamp)
{
    struct crdt_symbol symbol = {
        .id48 = id48,
        .rkey = crdt_spans_rkey(s, crdt_stamp_replica(stamp), crdt_stamp_incarnation(stamp)),
        .generation = stamp & CRDT_GENERATION_MASK,
        .code = code,
    };
    return crdt_symbol_mark(&symbol);
}

/* True if the generation's span is alive. */
static inline bool crdt_spans_alive(const struct crdt_spans *s, uint32_t generation)
{
    return generation / s->length >= s->first;
}

static inline void crdt_pending_settle(struct crdt_pending *p)
{
    if (p->sketch != NULL)
        crdt_sketch_flip_mark(p->sketch, &p->mark, p->sign);
    p->sketch = NULL;
}

/* Together the sketches are larger than a core's cache. So a flip prefetches the cells and is
 * applied CRDT_PENDING flips later. crdt_spans_settle() must follow before a sketch is read. */
static inline void crdt_spans_flip(struct crdt_spans *s, uint32_t generation,
                                   const struct crdt_mark *mark, int sign)
{
    uint32_t at = generation / s->length % s->count;
    s->dirty[at] = true;
    for (unsigned part = 0; part < CRDT_SKETCH_ROWS; part++)
        __builtin_prefetch(&s->ring[at].cell[part][crdt_mark_place(mark, part)], 1);
    __builtin_prefetch(crdt_sketch_counter(&s->ring[at], mark), 1);
    struct crdt_pending *p = &s->pending[s->next++ % CRDT_PENDING];
    crdt_pending_settle(p);
    *p = (struct crdt_pending){.sketch = &s->ring[at], .mark = *mark, .sign = sign};
}

#endif
