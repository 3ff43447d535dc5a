/* All that anybody ever observed, and who observed it: what indexes may and must contain. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "tests/sim/sim.h"

struct own {
    struct sim_fact fact;
    uint32_t node, memory;
};

struct sim_model {
    struct sim_fact *facts; /* open addressing; generation 0: empty */
    size_t room, count;
    struct own *own;
    size_t own_room, own_count;
};

struct sim_model *sim_model_create(void)
{
    struct sim_model *m = calloc(1, sizeof *m);
    CHECK(m != NULL);
    m->room = 1 << 12;
    m->facts = calloc(m->room, sizeof *m->facts);
    CHECK(m->facts != NULL);
    return m;
}

void sim_model_free(struct sim_model *m)
{
    if (!m)
        return;
    free(m->facts);
    free(m->own);
    free(m);
}

static bool equal(const struct sim_fact *a, const struct sim_fact *b)
{
    return a->id48 == b->id48 && a->replica == b->replica && a->rkey == b->rkey &&
           a->generation == b->generation && a->code == b->code;
}

static struct sim_fact *place(const struct sim_model *m, const struct sim_fact *f)
{
    uint64_t h = hash_mix(hash_mix(f->id48 ^ (uint64_t)f->code << 56) ^ f->replica) ^
                 hash_mix((uint64_t)f->rkey << 32 | f->generation);
    size_t i = h & (m->room - 1);
    while (m->facts[i].generation != 0 && !equal(&m->facts[i], f))
        i = (i + 1) & (m->room - 1);
    return &m->facts[i];
}

void sim_model_add(struct sim_model *m, const struct sim_fact *f)
{
    CHECK(f->generation != 0);
    if (m->count * 2 > m->room) {
        struct sim_model grown = {.room = m->room * 2};
        grown.facts = calloc(grown.room, sizeof *grown.facts);
        CHECK(grown.facts != NULL);
        for (size_t i = 0; i < m->room; i++) {
            if (m->facts[i].generation != 0)
                *place(&grown, &m->facts[i]) = m->facts[i];
        }
        free(m->facts);
        m->facts = grown.facts;
        m->room = grown.room;
    }
    struct sim_fact *at = place(m, f);
    m->count += at->generation == 0;
    *at = *f;
}

bool sim_model_has(const struct sim_model *m, const struct sim_fact *f)
{
    return place(m, f)->generation != 0;
}

void sim_model_own(struct sim_model *m, unsigned node, uint32_t memory, const struct sim_fact *f)
{
    if (m->own_count == m->own_room) {
        m->own_room = m->own_room ? m->own_room * 2 : 4096;
        m->own = realloc(m->own, m->own_room * sizeof *m->own);
        CHECK(m->own != NULL);
    }
    m->own[m->own_count++] = (struct own){*f, node, memory};
}

void sim_model_each_own(const struct sim_model *m,
                        void (*visit)(void *context, unsigned node, uint32_t memory,
                                      const struct sim_fact *f),
                        void *context)
{
    for (size_t i = 0; i < m->own_count; i++)
        visit(context, m->own[i].node, m->own[i].memory, &m->own[i].fact);
}
