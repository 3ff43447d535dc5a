#include "crdt/tidings.h"

#include <stdlib.h>

#include "base/check.h"

enum { HEADER = 3 };
_Static_assert((int)CRDT_TIDING_MAX <= UINT16_MAX &&
                   (int)HEADER + (int)CRDT_TIDING_MAX <= (int)CRDT_TIDINGS_BYTES,
               "a length has two bytes, and there is room for one");

static uint8_t *at(const struct crdt_tidings *t, size_t index)
{
    return &t->byte[(t->head + index) % CRDT_TIDINGS_BYTES];
}

static size_t len_at(const struct crdt_tidings *t, size_t index)
{
    return (size_t)(*at(t, index) | *at(t, index + 1) << 8);
}

int crdt_tidings_init(struct crdt_tidings *t)
{
    *t = (struct crdt_tidings){.byte = calloc(CRDT_TIDINGS_BYTES, 1)};
    return t->byte != NULL ? 0 : ERR_NOMEM;
}

void crdt_tidings_free(struct crdt_tidings *t)
{
    free(t->byte);
    *t = (struct crdt_tidings){0};
}

void crdt_tidings_take(struct crdt_tidings *t)
{
    CHECK(t->used > 0);
    size_t bytes = HEADER + len_at(t, 0);
    t->head = (t->head + bytes) % CRDT_TIDINGS_BYTES;
    t->used -= bytes;
}

static void put(struct crdt_tidings *t, uint8_t byte)
{
    *at(t, t->used++) = byte;
}

void crdt_tidings_push(struct crdt_tidings *t, uint8_t kind, struct slice body)
{
    CHECK(body.len <= CRDT_TIDING_MAX);
    while (CRDT_TIDINGS_BYTES - t->used < HEADER + body.len) {
        crdt_tidings_take(t);
        t->dropped++;
    }
    put(t, (uint8_t)body.len);
    put(t, (uint8_t)(body.len >> 8));
    put(t, kind);
    for (size_t i = 0; i < body.len; i++)
        put(t, (uint8_t)body.at[i]);
}

bool crdt_tidings_peek(const struct crdt_tidings *t, struct crdt_tiding *out)
{
    if (t->used == 0)
        return false;
    out->len = len_at(t, 0);
    out->kind = *at(t, 2);
    for (size_t i = 0; i < out->len; i++)
        out->body[i] = *at(t, HEADER + i);
    return true;
}

void crdt_tidings_check(const struct crdt_tidings *t)
{
    size_t seen = 0;
    while (seen < t->used) {
        CHECK(len_at(t, seen) <= CRDT_TIDING_MAX);
        seen += HEADER + len_at(t, seen);
    }
    CHECK(seen == t->used && t->used <= CRDT_TIDINGS_BYTES);
}
