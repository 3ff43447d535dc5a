#include "crdt/early.h"

#include <stdlib.h>
#include <string.h>

#include "crdt/limits.h"

int crdt_early_init(struct crdt_early *e)
{
    *e = (struct crdt_early){.ring = calloc(CRDT_EARLY_MAX, sizeof *e->ring)};
    return e->ring != NULL ? 0 : ERR_NOMEM;
}

void crdt_early_free(struct crdt_early *e)
{
    free(e->ring);
    *e = (struct crdt_early){0};
}

void crdt_early_copy(struct crdt_early *e, const struct crdt_early *from)
{
    memcpy(e->ring, from->ring, from->used * sizeof *e->ring);
    e->next = from->next;
    e->used = from->used;
    e->count = from->count;
}

void crdt_early_push(struct crdt_early *e, const struct crdt_early_point *p)
{
    struct crdt_early_point *to = &e->ring[e->next];
    e->count += to->rkey == 0;
    *to = *p;
    e->used = e->next >= e->used ? e->next + 1 : e->used;
    e->next = (e->next + 1) % CRDT_EARLY_MAX;
}

void crdt_early_clear(struct crdt_early *e, unsigned at)
{
    e->count -= e->ring[at].rkey != 0;
    e->ring[at] = (struct crdt_early_point){0};
    if (e->count == 0)
        e->next = e->used = 0;
}

void crdt_early_forget(struct crdt_early *e, unsigned slot)
{
    for (unsigned i = 0; i < e->used; i++) {
        if (e->ring[i].slot == slot)
            crdt_early_clear(e, i);
    }
}

void crdt_early_moved(struct crdt_early *e, int64_t by_ms, uint32_t generation_ms)
{
    int64_t generations = by_ms / (int64_t)generation_ms;
    if (generations < 0 && by_ms % (int64_t)generation_ms != 0)
        generations--; /* rounds down: too early a generation is harmless, a future generation is
                        * refused */
    for (unsigned i = 0; i < e->used; i++) {
        e->ring[i].at_ms += (uint64_t)by_ms;
        e->ring[i].generation += (uint32_t)generations;
    }
}
