#include "tests/lib/lru.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/hash.h"

static unsigned bucket(uint32_t id)
{
    return (unsigned)hash_mix(id) % LRU_HASH;
}

void lru_init(struct lru *c, int size)
{
    *c = (struct lru){.oldest = LRU_NONE, .newest = LRU_NONE, .size = size};
    c->blocks = calloc((size_t)size, sizeof *c->blocks);
    CHECK(c->blocks != NULL);
    for (unsigned i = 0; i < LRU_HASH; i++)
        c->hash[i] = LRU_NONE;
}

void lru_free(struct lru *c)
{
    free(c->blocks);
}

int lru_find(const struct lru *c, uint32_t id)
{
    int at = c->hash[bucket(id)];
    while (at != LRU_NONE && c->blocks[at].id != id)
        at = c->blocks[at].chained;
    return at;
}

static void unlink_block(struct lru *c, int at)
{
    struct lru_block *b = &c->blocks[at];
    *(b->older == LRU_NONE ? &c->oldest : &c->blocks[b->older].newer) = b->newer;
    *(b->newer == LRU_NONE ? &c->newest : &c->blocks[b->newer].older) = b->older;
}

static void link_newest(struct lru *c, int at, double now_s)
{
    struct lru_block *b = &c->blocks[at];
    b->used_s = now_s;
    b->newer = LRU_NONE;
    b->older = c->newest;
    *(c->newest == LRU_NONE ? &c->oldest : &c->blocks[c->newest].newer) = at;
    c->newest = at;
}

static int take(struct lru *c)
{
    if (c->count < c->size)
        return c->count++;
    int at = c->oldest;
    unlink_block(c, at);
    int *link = &c->hash[bucket(c->blocks[at].id)];
    while (*link != at)
        link = &c->blocks[*link].chained;
    *link = c->blocks[at].chained;
    return at;
}

void lru_use(struct lru *c, uint32_t id, double now_s)
{
    int at = lru_find(c, id);
    if (at == LRU_NONE) {
        at = take(c);
        c->blocks[at].id = id;
        c->blocks[at].chained = c->hash[bucket(id)];
        c->hash[bucket(id)] = at;
    } else {
        unlink_block(c, at);
    }
    link_newest(c, at, now_s);
}
