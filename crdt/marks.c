#include "crdt/marks.h"

#include "base/checkpoint.h"
#include "crdt/state_internal.h"

/* The generation of an entry; -1: no entry. */
static int64_t generation_of(const struct crdt_index *x, uint64_t id, uint8_t code,
                             unsigned replica)
{
    uint32_t generation = 0;
    return crdt_index_get(x, id, replica, code, &generation) == ERR_OK ? (int64_t)generation : -1;
}

/* The words about a checkpoint (crdt/marks.h). */
struct words {
    int64_t generation; /* generation of the first word; -1: no words */
    unsigned count;     /* number of words of this generation */
};

static struct words words_of(const struct crdt_index *x, uint64_t id, unsigned replica)
{
    struct words w = {.generation =
                          generation_of(x, crdt_word_id(id, 0), CHECKPOINT_CODE_BINDING, replica)};
    while (w.generation >= 0 && w.count < CRDT_WORDS &&
           (w.count == 0 || generation_of(x, crdt_word_id(id, w.count), CHECKPOINT_CODE_BINDING,
                                          replica) >= w.generation))
        w.count++;
    return w;
}

static bool is_gone(const struct words *w, int64_t observed)
{
    return observed <= w->generation && w->count % 2 == 1;
}

bool crdt_index_is_gone(const struct crdt_index *x, uint64_t id, unsigned replica,
                        uint32_t generation)
{
    if (generation_of(x, crdt_word_id(id, 0), CHECKPOINT_CODE_BINDING, replica) < generation)
        return false; /* the usual case */
    struct words w = words_of(x, id, replica);
    return is_gone(&w, generation);
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

static int say(struct crdt_state *s, uint64_t id, unsigned slot, unsigned word, uint32_t generation)
{
    if (word == CRDT_WORDS)
        return ERR_AGAIN;
    return mark(s, crdt_word_id(id, word), CHECKPOINT_CODE_BINDING, slot, generation);
}

int crdt_state_mark_gone(struct crdt_state *s, uint64_t id, uint8_t code, unsigned slot)
{
    if (!crdt_registry_has(s->registry, slot))
        return ERR_NOT_FOUND;
    int64_t now = crdt_index_now(s->index), observed = generation_of(s->index, id, code, slot);
    struct words w = words_of(s->index, id, slot);
    if (observed < 0 || is_gone(&w, observed))
        return 0;
    if (observed <= w.generation && w.generation >= now)
        return say(s, id, slot, w.count, (uint32_t)w.generation);
    return say(s, id, slot, 0, (uint32_t)(observed > now ? observed : now));
}

int crdt_state_mark_present(struct crdt_state *s, uint64_t id, uint8_t code, unsigned slot,
                            uint32_t floor)
{
    if (!crdt_registry_has(s->registry, slot))
        return ERR_NOT_FOUND;
    uint32_t now = crdt_index_now(s->index);
    int64_t observed = generation_of(s->index, id, code, slot);
    struct words w = words_of(s->index, id, slot);
    bool gone = is_gone(&w, observed);
    floor = floor > now + 1 ? now + 1 : floor;
    if (!gone && observed >= floor)
        return 0;
    uint32_t generation = floor > now ? floor : now;
    if (!gone || w.generation < generation)
        return mark(s, id, code, slot, generation);
    int said = say(s, id, slot, w.count, (uint32_t)w.generation);
    if (said < 0)
        return said;
    int seen = mark(s, id, code, slot, (uint32_t)w.generation);
    return seen < 0 ? seen : 1;
}
