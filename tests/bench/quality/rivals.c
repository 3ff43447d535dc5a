/* The rules of other routers, with their knowledge in service. */
#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "tests/bench/quality/chooser.h"

/* The beliefs of a rival's router: the replica of each prefix (a tree by replica, least recently
 * used, with room for far more than an engine's cache), and the requests under way. */
enum { TREE_TOKENS = 4000000 }; /* SGLang's router: 2^24 characters a replica */

struct view {
    struct sim_cache *tree[ENGINES_MAX];
    double tokens[ENGINES_MAX];  /* sent by this router, ever */
    double prefill[ENGINES_MAX]; /* uncached tokens under way, as believed */
    double context[ENGINES_MAX]; /* tokens under way */
    unsigned requests[ENGINES_MAX];
};

struct mind {
    struct view views[ROUTERS_MAX];
};

static struct view *view_of(const struct play *p, const struct flight *f)
{
    return &((struct mind *)p->mind)->views[f->router];
}

static void open_rival(struct play *p)
{
    struct mind *m = calloc(1, sizeof *m);
    CHECK(m != NULL);
    p->mind = m;
    uint32_t blocks = TREE_TOKENS / p->setup->specs[0].model.block_tokens;
    for (unsigned i = 0; i < p->setup->routers; i++) {
        for (unsigned k = 0; k < p->setup->engines + p->setup->replaced; k++)
            m->views[i].tree[k] = sim_cache_create(blocks);
    }
}

static void close_rival(struct play *p)
{
    struct mind *m = p->mind;
    for (unsigned i = 0; i < p->setup->routers; i++) {
        for (unsigned k = 0; k < p->engine_count; k++)
            sim_cache_destroy(m->views[i].tree[k]);
    }
    free(m);
}

static double held(const struct play *p, const struct sim_cache *c, const struct flight *f)
{
    return (double)sim_cache_match(c, f->sim.chain.blocks, f->sim.chain.block_count) *
           p->setup->specs[0].model.block_tokens;
}

static void record(struct sim_cache *tree, const struct sim_chain *c)
{
    size_t count = c->block_count;
    size_t known = sim_cache_match(tree, c->blocks, count);
    uint32_t *blocks = malloc((count + 1) * sizeof *blocks);
    CHECK(blocks != NULL);
    if (sim_cache_take(tree, c->blocks, known, count - known, blocks) == 0) {
        for (size_t i = known; i < count; i++)
            (void)sim_cache_name(tree, blocks[i], c->blocks[i]);
        sim_cache_release(tree, blocks, count);
    }
    free(blocks);
}

static unsigned sent(struct play *p, struct flight *f, unsigned to)
{
    struct view *v = view_of(p, f);
    f->uncached_believed = (double)f->sim.chain.tokens - held(p, v->tree[to], f);
    record(v->tree[to], &f->sim.chain);
    v->tokens[to] += (double)f->sim.chain.tokens;
    v->prefill[to] += f->uncached_believed;
    v->context[to] += (double)f->sim.chain.tokens;
    v->requests[to]++;
    return to;
}

static void first(struct play *p, struct flight *f)
{
    view_of(p, f)->prefill[f->engine] -= f->uncached_believed;
    f->uncached_believed = 0;
}

static void done(struct play *p, struct flight *f, enum flight_end how)
{
    struct view *v = view_of(p, f);
    if (how != FLIGHT_ANSWERED)
        first(p, f);
    v->requests[f->engine]--;
    v->context[f->engine] -= (double)prompt_tokens(&f->ask->prompt);
}

/* The cheapest engine, at random among equals. */
static unsigned least(struct play *p, const double *costs)
{
    unsigned chosen = ENGINES_MAX;
    uint64_t equals = 1;
    for (unsigned k = 0; k < p->engine_count; k++) {
        if (p->engines[k].leaves)
            continue;
        if (chosen == ENGINES_MAX || costs[k] < costs[chosen]) {
            chosen = k;
            equals = 1;
        } else if (costs[k] == costs[chosen] && prng_below(&p->prng, ++equals) == 0) {
            chosen = k;
        }
    }
    return chosen;
}

/* Longest match within a bounded load, as SGLang's router, SMG and vLLM Router do with their
 * defaults. Picks the fewest requests if loads differ by more than 64 and 1.5 times. Otherwise
 * picks the longest match if more than half of the prompt matches, else the smallest tree. The
 * defaults were made for hundreds of requests an engine. The better routers offer a load bound of
 * 1.25 times the mean as an alternative. Here either bound applies. */
static const double balance_rel = 1.5, match_min = 0.5;
enum { BALANCE_ABS = 64 };

static unsigned longest_match(struct play *p, struct flight *f)
{
    const struct view *v = view_of(p, f);
    double requests[ENGINES_MAX], matches[ENGINES_MAX];
    double most = 0, fewest = INFINITY, total = 1;
    for (unsigned k = 0; k < p->engine_count; k++) {
        requests[k] = v->requests[k];
        if (p->engines[k].leaves)
            continue;
        most = fmax(most, requests[k]);
        fewest = fmin(fewest, requests[k]);
        total += requests[k];
    }
    if (most - fewest > BALANCE_ABS && most > balance_rel * fewest)
        return sent(p, f, least(p, requests));
    double bound = ceil(1.25 * total / p->setup->engines), longest = 0;
    for (unsigned k = 0; k < p->engine_count; k++) {
        double match = requests[k] < bound && !p->engines[k].leaves ? held(p, v->tree[k], f) : 0;
        longest = fmax(longest, match);
        matches[k] = -match;
    }
    if (longest > match_min * (double)f->sim.chain.tokens)
        return sent(p, f, least(p, matches));
    return sent(p, f, least(p, v->tokens));
}

/* Overlap and load blended, as in Dynamo's KV router. Events report the engine's cache, so the
 * router knows the contents. Costs are blocks to prefill, including those of the router's own
 * requests under way, and blocks being decoded. */
static unsigned blended(struct play *p, struct flight *f)
{
    const struct view *v = view_of(p, f);
    double costs[ENGINES_MAX];
    for (unsigned k = 0; k < p->engine_count; k++) {
        double uncached =
            (double)f->sim.chain.tokens - held(p, sim_model_cache(p->engines[k].model), f);
        costs[k] = v->prefill[k] + uncached + v->context[k];
    }
    return sent(p, f, least(p, costs));
}

/* Queue and uncached tokens, as believed. */
static unsigned queue_uncached(struct play *p, struct flight *f)
{
    const struct view *v = view_of(p, f);
    double costs[ENGINES_MAX];
    for (unsigned k = 0; k < p->engine_count; k++)
        costs[k] = v->prefill[k] + (double)f->sim.chain.tokens - held(p, v->tree[k], f);
    return sent(p, f, least(p, costs));
}

/* Each engine gets work in proportion to the speed, whatever it has under way. */
static unsigned by_speed(struct play *p, struct flight *f)
{
    const struct view *v = view_of(p, f);
    double costs[ENGINES_MAX];
    for (unsigned k = 0; k < p->engine_count; k++)
        costs[k] = (v->tokens[k] + (double)f->sim.chain.tokens) /
                   p->engines[k].spec->model.prefill_tokens_per_s;
    return sent(p, f, least(p, costs));
}

#define RIVAL(id, name_, choose_)                                                                  \
    const struct chooser chooser_##id = {.name = (name_),                                          \
                                         .open = open_rival,                                       \
                                         .close = close_rival,                                     \
                                         .choose = (choose_),                                      \
                                         .first = first,                                           \
                                         .done = done}
RIVAL(longest_match, "longest match", longest_match);
RIVAL(blended, "blended", blended);
RIVAL(queue_uncached, "queue+uncached", queue_uncached);
RIVAL(by_speed, "by speed", by_speed);
