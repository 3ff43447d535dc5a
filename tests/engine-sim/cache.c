#include "tests/engine-sim/cache.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "base/hash.h"

#define NONE UINT32_MAX

struct block {
    uint64_t name;
    bool named;
    uint32_t holders;
    uint32_t older; /* neighbours in the free list */
    uint32_t newer;
    uint32_t next; /* next block in the bucket's chain */
    uint32_t mark; /* mark of sim_cache_displaced() */
    uint32_t uses; /* requests that held the block under this name */
    uint64_t used_ns;
};

struct sim_cache {
    enum sim_evict evict;
    uint64_t draws;
    uint32_t count;
    uint32_t used;
    uint32_t named;
    uint32_t oldest;
    uint32_t newest;
    uint32_t bucket_mask;
    uint32_t *buckets;
    uint32_t marks;
    uint64_t now_ns;
    struct block *blocks;
    void (*removed)(void *context, uint64_t name); /* NULL: not reported */
    void *removed_context;
    bool copies;
};

static uint32_t *bucket_of(const struct sim_cache *c, uint64_t name)
{
    return &c->buckets[hash_mix(name) & c->bucket_mask];
}

static uint32_t find(const struct sim_cache *c, uint64_t name)
{
    uint32_t i = *bucket_of(c, name);
    while (i != NONE && c->blocks[i].name != name)
        i = c->blocks[i].next;
    return i;
}

static void unname(struct sim_cache *c, uint32_t i)
{
    struct block *b = &c->blocks[i];
    if (!b->named)
        return;
    uint32_t *at = bucket_of(c, b->name);
    while (*at != i)
        at = &c->blocks[*at].next;
    *at = b->next;
    b->named = false;
    c->named--;
}

static void free_list_remove(struct sim_cache *c, uint32_t i)
{
    struct block *b = &c->blocks[i];
    *(b->older == NONE ? &c->oldest : &c->blocks[b->older].newer) = b->newer;
    *(b->newer == NONE ? &c->newest : &c->blocks[b->newer].older) = b->older;
}

static void free_list_add_newest(struct sim_cache *c, uint32_t i)
{
    c->blocks[i].older = c->newest;
    c->blocks[i].newer = NONE;
    *(c->newest == NONE ? &c->oldest : &c->blocks[c->newest].newer) = i;
    c->newest = i;
}

static void free_list_add_oldest(struct sim_cache *c, uint32_t i)
{
    c->blocks[i].newer = c->oldest;
    c->blocks[i].older = NONE;
    *(c->oldest == NONE ? &c->newest : &c->blocks[c->oldest].older) = i;
    c->oldest = i;
}

struct sim_cache *sim_cache_create(uint32_t blocks)
{
    struct sim_cache *c = calloc(1, sizeof *c);
    CHECK(c != NULL && blocks > 0 && blocks < NONE / 4);
    uint32_t buckets = 16;
    while (buckets < blocks)
        buckets *= 2;
    *c = (struct sim_cache){
        .count = blocks, .oldest = NONE, .newest = NONE, .bucket_mask = buckets - 1};
    c->blocks = calloc(blocks, sizeof *c->blocks);
    c->buckets = malloc(buckets * sizeof *c->buckets);
    CHECK(c->blocks != NULL && c->buckets != NULL);
    for (uint32_t i = 0; i < buckets; i++)
        c->buckets[i] = NONE;
    for (uint32_t i = 0; i < blocks; i++)
        free_list_add_newest(c, i);
    return c;
}

void sim_cache_evicts(struct sim_cache *c, enum sim_evict rule)
{
    CHECK(c->used == 0);
    c->evict = rule;
}

void sim_cache_destroy(struct sim_cache *c)
{
    if (c == NULL)
        return;
    free(c->blocks);
    free(c->buckets);
    free(c);
}

uint32_t sim_cache_blocks(const struct sim_cache *c)
{
    return c->count;
}

uint32_t sim_cache_used(const struct sim_cache *c)
{
    return c->used;
}

uint32_t sim_cache_named(const struct sim_cache *c)
{
    return c->named;
}

size_t sim_cache_match(const struct sim_cache *c, const uint64_t *names, size_t count)
{
    size_t n = 0;
    while (n < count && find(c, names[n]) != NONE)
        n++;
    return n;
}

static void hold(struct sim_cache *c, uint32_t i)
{
    c->blocks[i].uses++;
    if (c->blocks[i].holders++ == 0) {
        free_list_remove(c, i);
        c->used++;
    }
}

static uint32_t least_used(const struct sim_cache *c)
{
    uint32_t least = c->oldest, i = c->oldest;
    for (unsigned n = 0; n < SIM_EVICT_AMONG && i != NONE && c->blocks[least].uses > 1; n++) {
        least = c->blocks[i].uses < c->blocks[least].uses ? i : least;
        i = c->blocks[i].newer;
    }
    return least;
}

static uint32_t any_free(struct sim_cache *c)
{
    enum { TRIES = 64 };
    for (unsigned i = 0; i < TRIES; i++) {
        uint32_t at = (uint32_t)(hash_mix(++c->draws) % c->count);
        if (c->blocks[at].holders == 0)
            return at;
    }
    return c->oldest;
}

/* The free block to use next. */
static uint32_t victim(struct sim_cache *c)
{
    if (c->evict == SIM_EVICT_LRU || !c->blocks[c->oldest].named)
        return c->oldest;
    return c->evict == SIM_EVICT_LFU ? least_used(c) : any_free(c);
}

int sim_cache_take(struct sim_cache *c, const uint64_t *names, size_t hits, size_t fresh,
                   uint32_t *blocks)
{
    size_t wanted = fresh;
    for (size_t i = 0; i < hits; i++) {
        blocks[i] = find(c, names[i]);
        CHECK(blocks[i] != NONE);
        wanted += c->blocks[blocks[i]].holders == 0;
    }
    if (wanted > c->count - c->used)
        return ERR_FULL;
    for (size_t i = 0; i < hits; i++)
        hold(c, blocks[i]);
    for (size_t i = hits; i < hits + fresh; i++) {
        blocks[i] = victim(c);
        if (c->removed != NULL && c->blocks[blocks[i]].named)
            c->removed(c->removed_context, c->blocks[blocks[i]].name);
        unname(c, blocks[i]);
        c->blocks[blocks[i]].uses = 0;
        hold(c, blocks[i]);
    }
    return 0;
}

bool sim_cache_name(struct sim_cache *c, uint32_t block, uint64_t name)
{
    struct block *b = &c->blocks[block];
    CHECK(b->holders > 0);
    if (b->named || (!c->copies && find(c, name) != NONE))
        return false;
    uint32_t *bucket = bucket_of(c, name);
    b->name = name;
    b->named = true;
    b->next = *bucket;
    *bucket = block;
    c->named++;
    return true;
}

void sim_cache_release(struct sim_cache *c, const uint32_t *blocks, size_t count)
{
    for (size_t i = count; i-- > 0;) {
        struct block *b = &c->blocks[blocks[i]];
        CHECK(b->holders > 0);
        if (--b->holders > 0)
            continue;
        c->used--;
        b->used_ns = c->now_ns;
        if (b->named)
            free_list_add_newest(c, blocks[i]);
        else
            free_list_add_oldest(c, blocks[i]);
    }
}

void sim_cache_watch(struct sim_cache *c, void (*removed)(void *context, uint64_t name),
                     void *context, bool copies)
{
    c->removed = removed;
    c->removed_context = context;
    c->copies = copies;
}

void sim_cache_clock(struct sim_cache *c, uint64_t now_ns)
{
    c->now_ns = now_ns;
}

double sim_cache_displaced(struct sim_cache *c, const uint64_t *names, size_t hits, size_t fresh,
                           double horizon_ns)
{
    c->marks++;
    for (size_t i = 0; i < hits; i++) {
        uint32_t own = find(c, names[i]);
        if (own != NONE)
            c->blocks[own].mark = c->marks;
    }
    double wanted = 0;
    for (uint32_t i = c->oldest; i != NONE && fresh > 0; i = c->blocks[i].newer) {
        const struct block *b = &c->blocks[i];
        if (b->mark == c->marks)
            continue;
        fresh--;
        if (b->named)
            wanted += exp(-(double)(c->now_ns - b->used_ns) / horizon_ns);
    }
    return wanted;
}

void sim_cache_reset(struct sim_cache *c)
{
    for (uint32_t i = 0; i < c->count; i++)
        unname(c, i);
}

void sim_cache_check(const struct sim_cache *c)
{
    uint32_t free_blocks = 0;
    uint32_t older = NONE;
    for (uint32_t i = c->oldest; i != NONE; i = c->blocks[i].newer) {
        CHECK(c->blocks[i].holders == 0 && c->blocks[i].older == older);
        older = i;
        free_blocks++;
    }
    CHECK(c->newest == older && free_blocks + c->used == c->count);
    uint32_t named = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        named += c->blocks[i].named;
        uint32_t found = c->blocks[i].named ? find(c, c->blocks[i].name) : i;
        CHECK(found == i || (c->copies && found != NONE));
    }
    CHECK(named == c->named);
}
