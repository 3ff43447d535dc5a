/* What a replica's cache of route_bench does with a prompt. */
#ifndef TESTS_BENCH_ROUTE_CACHE_H
#define TESTS_BENCH_ROUTE_CACHE_H

#include <math.h>
#include <stdbool.h>

#include "tests/lib/coding_sessions.h"
#include "tests/lib/lru.h"

static uint32_t cache_match(const struct lru *c, const struct session_request *q)
{
    uint32_t held = 0;
    while (held < q->block_count && lru_find(c, q->blocks[held]) != LRU_NONE)
        held++;
    return held;
}

/* The end of a prompt is evicted before its beginning, as engines do; what it holds already is
 * touched first, so that its own new blocks do not evict it. */
static void cache_prompt(struct lru *c, const struct session_request *q, uint32_t held,
                         double now_s)
{
    for (uint32_t i = held; i-- > 0;)
        lru_use(c, q->blocks[i], now_s);
    for (uint32_t i = q->block_count; i-- > held;)
        lru_use(c, q->blocks[i], now_s);
    for (uint32_t i = held; i-- > 0;)
        lru_use(c, q->blocks[i], now_s);
}

/* Tokens that `blocks_new` would push out, by their chance to be wanted again
 * (`horizon_s`). */
static double cache_displaced(const struct lru *c, const struct session_request *q, uint32_t held,
                              double now_s, double horizon_s)
{
    int need = (int)(q->block_count - held) - (c->size - c->count);
    uint32_t last_held = held > 0 ? q->blocks[held - 1] : UINT32_MAX;
    double wanted = 0;
    bool own = false;
    for (int at = c->oldest; need > 0 && at != LRU_NONE; at = c->blocks[at].newer) {
        /* Its own blocks stand together in the list, from the last to the first. */
        own = c->blocks[at].id == last_held || (own && c->blocks[at].id != q->blocks[0]);
        if (own)
            continue;
        wanted += exp((c->blocks[at].used_s - now_s) / horizon_s);
        need--;
    }
    return wanted * SESSION_BLOCK_TOKENS;
}

#endif
