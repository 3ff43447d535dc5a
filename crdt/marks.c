#include "crdt/marks.h"

#include "base/checkpoint.h"
#include "crdt/state_internal.h"

/* The generation of an entry; -1: there is none. */
static int64_t generation_of(const struct crdt_index *x, uint64_t id, uint8_t code,
                             unsigned replica)
{
    uint32_t generation = 0;
    return crdt_index_get(x, id, replica, code, &generation) == ERR_OK ? (int64_t)generation : -1;
}

bool crdt_index_is_gone(const struct crdt_index *x, uint64_t id, unsigned replica,
                        uint32_t generation)
{
    return generation_of(x, crdt_gone_id(id), CHECKPOINT_CODE_BINDING, replica) >= generation;
}

static int mark(struct crdt_state *s, uint64_t id, uint8_t code, unsigned slot, uint32_t generation)
{
    int news = crdt_index_observe(s->index, id, slot, code, generation);
    if (news == 1 && s->replicated) {
        crdt_state_tell_point(s, slot, generation, crdt_point(id, code));
        s->stats.observations_out++;
    }
    return news;
}

int crdt_state_mark_gone(struct crdt_state *s, uint64_t id, uint8_t code, unsigned slot)
{
    if (!crdt_registry_has(s->registry, slot))
        return ERR_NOT_FOUND;
    uint32_t now = crdt_index_now(s->index);
    int64_t held = generation_of(s->index, id, code, slot);
    if (held < 0 || crdt_index_is_gone(s->index, id, slot, (uint32_t)held))
        return 0;
    return mark(s, crdt_gone_id(id), CHECKPOINT_CODE_BINDING, slot,
                held > now ? (uint32_t)held : now);
}

int crdt_state_mark_present(struct crdt_state *s, uint64_t id, uint8_t code, unsigned slot,
                            uint32_t floor)
{
    if (!crdt_registry_has(s->registry, slot))
        return ERR_NOT_FOUND;
    uint32_t now = crdt_index_now(s->index);
    int64_t held = generation_of(s->index, id, code, slot);
    int64_t gone = generation_of(s->index, crdt_gone_id(id), CHECKPOINT_CODE_BINDING, slot);
    floor = floor > now + 1 ? now + 1 : floor;
    if (held > gone && held >= floor)
        return 0;
    uint32_t least = gone >= floor ? (uint32_t)gone + 1 : floor;
    if (least > now + 1)
        return ERR_AGAIN;
    return mark(s, id, code, slot, least > now ? least : now);
}
