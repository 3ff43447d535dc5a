#include "crdt/spans.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

static uint32_t span_length(uint32_t ttl)
{
    return (ttl + CRDT_SPANS - 1) / CRDT_SPANS;
}

/* The most spans touched by ttl + 2 consecutive generations. */
static uint32_t span_count(uint32_t ttl)
{
    return ttl / span_length(ttl) + 2;
}

uint64_t crdt_spans_bytes(uint32_t replicas, uint32_t ttl)
{
    return (uint64_t)span_count(ttl) * sizeof(struct crdt_sketch) +
           (uint64_t)replicas * (CRDT_INCARNATIONS + 1) * sizeof(uint32_t);
}

int crdt_spans_init(struct crdt_spans *s, const struct crdt_window *window, uint32_t replicas,
                    uint32_t ttl)
{
    *s = (struct crdt_spans){.window = window,
                             .length = span_length(ttl),
                             .count = span_count(ttl),
                             .replicas = replicas};
    s->ring = calloc(s->count, sizeof *s->ring);
    s->rkey = calloc((size_t)replicas * (CRDT_INCARNATIONS + 1), sizeof *s->rkey);
    if (s->ring != NULL && s->rkey != NULL)
        return 0;
    crdt_spans_free(s);
    return ERR_NOMEM;
}

void crdt_spans_free(struct crdt_spans *s)
{
    free(s->ring);
    free(s->rkey);
    s->ring = NULL;
    s->rkey = NULL;
}

void crdt_spans_settle(struct crdt_spans *s)
{
    for (unsigned i = 0; i < CRDT_PENDING; i++)
        crdt_pending_settle(&s->pending[i]);
}

void crdt_spans_floor(struct crdt_spans *s, uint32_t floor)
{
    crdt_spans_settle(s);
    uint32_t first = floor / s->length;
    uint32_t gone = first - s->first;
    for (uint32_t i = 0; i < gone && i < s->count; i++) {
        uint32_t at = (s->first + i) % s->count;
        if (s->dirty[at])
            memset(&s->ring[at], 0, sizeof s->ring[at]);
        s->dirty[at] = false;
    }
    s->first = first;
}

/* Returns the sketch of the next span with entries, from span `*span` on, and sets `*span` to the
 * span after it; NULL at the end. */
static const struct crdt_sketch *next(const struct crdt_spans *s, uint32_t *span)
{
    uint32_t last = (s->window->now + 1) / s->length;
    while (*span <= last) {
        uint32_t at = (*span)++ % s->count;
        if (s->dirty[at])
            return &s->ring[at];
    }
    return NULL;
}

static uint32_t first_of(const struct crdt_spans *s, uint32_t from)
{
    return crdt_spans_alive(s, from) ? from / s->length : s->first;
}

void crdt_spans_sum(const struct crdt_spans *s, uint32_t from, struct crdt_sketch *out)
{
    memset(out, 0, sizeof *out);
    uint32_t span = first_of(s, from);
    for (const struct crdt_sketch *one = next(s, &span); one != NULL; one = next(s, &span))
        crdt_sketch_add(out, one);
}

void crdt_spans_estimate(const struct crdt_spans *s, uint32_t from,
                         uint8_t out[CRDT_ESTIMATE_COUNTERS])
{
    memset(out, 0, CRDT_ESTIMATE_COUNTERS);
    uint32_t span = first_of(s, from);
    for (const struct crdt_sketch *one = next(s, &span); one != NULL; one = next(s, &span)) {
        for (unsigned i = 0; i < CRDT_ESTIMATE_COUNTERS; i++)
            out[i] = (uint8_t)(out[i] + one->estimate[i]);
    }
}
