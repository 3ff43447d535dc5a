#include "crdt/outbox.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"

/* A full ring drops whole runs, so runs must be short. */
enum { HEADER = 2, WORDS_MIN = 64, RUN_POINTS_MAX = 4096 };

static uint64_t *at(const struct crdt_outbox *o, size_t index)
{
    return &o->word[index < o->words ? index : index - o->words];
}

static size_t count_at(const struct crdt_outbox *o, size_t run)
{
    return (size_t)(*at(o, run) >> 32);
}

static void set_header(struct crdt_outbox *o, size_t run, uint32_t rkey, uint32_t generation,
                       size_t count)
{
    *at(o, run) = (uint64_t)count << 32 | rkey;
    *at(o, run + 1) = generation;
}

static void skip(struct crdt_outbox *o, size_t words)
{
    o->used -= words;
    o->head += words;
    if (o->head >= o->words)
        o->head -= o->words;
}

int crdt_outbox_init(struct crdt_outbox *o, uint64_t bytes)
{
    *o = (struct crdt_outbox){.words = bytes / sizeof(uint64_t)};
    if (o->words < WORDS_MIN)
        o->words = WORDS_MIN;
    o->word = calloc(o->words, sizeof *o->word);
    return o->word != NULL ? 0 : ERR_NOMEM;
}

void crdt_outbox_free(struct crdt_outbox *o)
{
    free(o->word);
    *o = (struct crdt_outbox){0};
}

static void drop_oldest(struct crdt_outbox *o)
{
    size_t count = count_at(o, o->head);
    o->dropped += count;
    skip(o, HEADER + count);
}

void crdt_outbox_push(struct crdt_outbox *o, uint32_t rkey, uint32_t generation, uint64_t point)
{
    bool same = o->used > 0 && (uint32_t)*at(o, o->last) == rkey &&
                (uint32_t)*at(o, o->last + 1) == generation &&
                count_at(o, o->last) < RUN_POINTS_MAX;
    while (o->words - o->used < (same ? 1 : HEADER + 1)) {
        drop_oldest(o);
        same = same && o->used > 0;
    }
    if (!same) {
        o->last = (o->head + o->used) % o->words;
        set_header(o, o->last, rkey, generation, 0);
        o->used += HEADER;
    }
    *at(o, (o->head + o->used) % o->words) = point;
    o->used++;
    *at(o, o->last) += UINT64_C(1) << 32;
}

void crdt_outbox_peek(const struct crdt_outbox *o, struct crdt_outbox_run *out)
{
    out->count = 0;
    if (o->used == 0)
        return;
    size_t count = count_at(o, o->head);
    out->rkey = (uint32_t)*at(o, o->head);
    out->generation = (uint32_t)*at(o, o->head + 1);
    out->count = count < CRDT_RUN_MAX ? (unsigned)count : CRDT_RUN_MAX;
    for (unsigned i = 0; i < out->count; i++)
        out->points[i] = *at(o, (o->head + HEADER + i) % o->words);
}

void crdt_outbox_take(struct crdt_outbox *o, unsigned count)
{
    CHECK(o->used > 0 && count <= count_at(o, o->head));
    size_t left = count_at(o, o->head) - count;
    if (left == 0) {
        skip(o, HEADER + count);
        return;
    }
    uint32_t rkey = (uint32_t)*at(o, o->head);
    uint32_t generation = (uint32_t)*at(o, o->head + 1);
    bool newest = o->last == o->head;
    skip(o, count);
    set_header(o, o->head, rkey, generation, left); /* overwrites points already sent */
    if (newest)
        o->last = o->head;
}

void crdt_outbox_check(const struct crdt_outbox *o)
{
    size_t seen = 0;
    size_t last = o->head;
    while (seen < o->used) {
        last = (o->head + seen) % o->words;
        CHECK(count_at(o, last) > 0);
        seen += HEADER + count_at(o, last);
    }
    CHECK(seen == o->used && o->used <= o->words && (o->used == 0 || last == o->last));
}
