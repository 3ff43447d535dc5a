#include "tests/bench/quality/belief.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/checkpoint.h"
#include "node/kv/batch.h"
#include "node/kv/tree.h"
#include "node/route/router_internal.h"

struct beliefs {
    const struct play *play;
    struct hash_secret secret;
    struct kv_decoder *decoder;
    struct kv_tree *trees[ENGINES_MAX];
    unsigned engine; /* of the present message */
    uint64_t stored; /* blocks stored in that message */
    /* The last prompt looked at: chains of the blocks, tokens before the checkpoints. */
    struct engine_feed own;
    uint64_t unique;
    uint64_t *chains;
    size_t chain_count, chain_cap;
    uint32_t tokens[CHAIN_POINTS_MAX];
};

static void on_event(void *context, const struct kv_event *e)
{
    struct beliefs *b = context;
    b->stored += e->change == KV_STORED ? e->count : 0;
    kv_tree_apply(b->trees[b->engine], e);
}

uint64_t beliefs_message(struct beliefs *b, unsigned engine, struct slice payload)
{
    struct kv_batch batch;
    b->engine = engine;
    b->stored = 0;
    CHECK(kv_batch_decode(b->decoder, payload, on_event, b, &batch) == ERR_OK);
    return b->stored;
}

/* --- the prompt ------------------------------------------------------------------------------ */

static void on_own(void *context, const struct kv_event *e)
{
    struct beliefs *b = context;
    if (b->chain_count + e->count > b->chain_cap) {
        b->chain_cap = 2 * (b->chain_count + e->count);
        b->chains = realloc(b->chains, b->chain_cap * sizeof *b->chains);
        CHECK(b->chains != NULL);
    }
    uint64_t chain = b->chain_count > 0 ? b->chains[b->chain_count - 1]
                                        : kv_chain_root(&b->secret, e->block_tokens, e->space);
    for (uint32_t i = 0; i < e->count; i++)
        b->chains[b->chain_count++] = chain = kv_chain(&b->secret, chain, e->digests[i]);
}

/* Publishes the prompt alone, because digests exist only in events. */
static void chains_find(struct beliefs *b, const struct sim_chain *chain)
{
    struct buf payload = {0};
    struct kv_batch batch;
    b->chain_count = 0;
    if (chain->block_count == 0)
        return;
    b->own.watch.stored(b->own.watch.context, chain, 0, chain->block_count);
    CHECK(sim_kv_events_take(b->own.events, 1, &payload));
    CHECK(kv_batch_decode(b->decoder, buf_slice(&payload), on_own, b, &batch) == ERR_OK);
    buf_free(&payload);
    CHECK(b->chain_count == chain->block_count);
}

static void tokens_find(struct beliefs *b, const struct flight *f)
{
    const struct prompt *p = &f->ask->prompt;
    uint64_t end = 0;
    unsigned n = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        uint64_t bytes = prompt_unit_bytes(p, i, b->play->setup->bytes_per_token), begin = end;
        end += bytes;
        for (; n < f->chain.length; n++) {
            uint64_t at = (uint64_t)f->chain.points[n].blocks * CHECKPOINT_BLOCK_BYTES;
            if (at > end)
                break;
            b->tokens[n] = i * p->unit_tokens + (uint32_t)((at - begin) * p->unit_tokens / bytes);
        }
    }
    CHECK(n == f->chain.length);
}

/* A present request already computes the prompt. */
static bool is_under_way(const struct play *p, const struct flight *f, unsigned engine,
                         unsigned point)
{
    for (const struct flight *o = p->engines[engine].flights; o; o = o->next) {
        bool waits =
            o->sim.state == SIM_NEW || o->sim.state == SIM_WAITING || o->sim.state == SIM_PREFILL;
        if (waits && o->chain.length > point &&
            o->chain.points[point].id == f->chain.points[point].id)
            return true;
    }
    return false;
}

void beliefs_ask(struct node_router *r, const struct node_request *request, uint64_t now_ms)
{
    node_router_beliefs_now(r, now_ms);
    node_router_match(r, request);
}

void beliefs_look(struct beliefs *b, const struct flight *f, unsigned engine,
                  const struct node_router *r, unsigned slot, struct events_seen *out)
{
    unsigned believed = r->lengths[slot];
    const struct engine *e = &b->play->engines[engine];
    const struct sim_chain *chain = &f->sim.chain;
    if (b->unique != f->unique) {
        chains_find(b, chain);
        tokens_find(b, f);
        b->unique = f->unique;
    }
    size_t there = sim_cache_match(sim_model_cache(e->model), chain->blocks, chain->block_count);
    for (unsigned i = 0; i < f->chain.length; i++) {
        uint32_t blocks = b->tokens[i] / chain->block_tokens;
        if (blocks == 0)
            continue;
        bool held = blocks <= there;
        enum kv_reach reach = kv_tree_reach(b->trees[engine], b->chains[blocks - 1]);
        if (!held && is_under_way(b->play, f, engine, i)) {
            out->under_way++;
            continue;
        }
        out->certain_wrong += reach != KV_UNSURE && held != (reach == KV_THERE);
        out->unsure += reach == KV_UNSURE;
        if (reach == KV_UNSURE)
            continue;
        out->right += held == (i < believed);
        out->wrong_gone += held && i >= believed;
        out->wrong_held += !held && i < believed;
    }
}

/* --- life ------------------------------------------------------------------------------------ */

struct beliefs *beliefs_open(const struct play *p)
{
    struct beliefs *b = calloc(1, sizeof *b);
    CHECK(b != NULL);
    b->play = p;
    hash_secret_from_seed(&b->secret, p->setup->seed);
    CHECK(kv_decoder_create(&b->decoder, &b->secret) == ERR_OK);
    engine_feed_open(&b->own, p->setup->specs[0].publishes);
    b->own.is_read = true;
    for (unsigned k = 0; k < p->engine_count; k++) {
        uint32_t blocks = p->engines[k].spec->model.cache_blocks;
        CHECK(kv_tree_create(&b->trees[k], NULL, &b->secret, 4 * blocks) == ERR_OK);
        kv_tree_clear(b->trees[k]);
    }
    return b;
}

void beliefs_close(struct beliefs *b)
{
    for (unsigned k = 0; k < ENGINES_MAX; k++)
        kv_tree_destroy(b->trees[k]);
    kv_decoder_destroy(b->decoder);
    engine_feed_close(&b->own);
    free(b->chains);
    free(b);
}
