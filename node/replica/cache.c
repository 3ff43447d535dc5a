#include "node/replica/cache.h"

#include <math.h>
#include <string.h>

#include "base/number.h"
#include "node/replica/constants.h"
#include "node/replica/replica.h"
#include "node/replica/usage.h"

double node_replica_cache_tokens(const struct node_replica *k, double configured)
{
    if (k->said.cache_tokens > 0)
        return (double)k->said.cache_tokens;
    double near = node_replica_near_tokens(k);
    return near > 0 ? near : configured;
}

double node_replica_near_tokens(const struct node_replica *k)
{
    return (double)(k->told.cache_tokens > 0 ? k->told.cache_tokens : k->told.cache_tokens_heard);
}

/* The head start of the reported size (node/replica/evidence.h). Each router has only a share of
 * the evidence, so the head start is divided by the number of routers. */
static double head_start(const struct node_replica *k)
{
    return RULE(FEW) / (1 + k->cache.others.count);
}

void node_replica_cache_forget(struct node_replica *k)
{
    struct node_cache *c = &k->cache;
    node_belief_init(&k->belief);
    node_evidence_init(&c->evidence);
    c->size_learned = false;
    c->size_held = (struct node_size_held){0};
    memset(c->tells_cached, 0, sizeof c->tells_cached);
    c->told_block = c->told_block_seen = 0;
    c->evicted_seen = c->evicted_idle_seen_s = -1;
    c->told_last = 0;
}

void node_replica_cache_renewed(struct node_replica *k, uint32_t rkey)
{
    k->rkey = rkey;
    k->life++;
    node_replica_cache_forget(k);
}

double node_replica_block_tokens(const struct node_replica *k)
{
    if (k->scrape.block_tokens > 0)
        return k->scrape.block_tokens;
    return k->cache.told_block_seen >= RULE(PRIOR) ? k->cache.told_block : 0;
}

double node_replica_whole_tokens(const struct node_replica *k, double prompt, double matched)
{
    double block = node_replica_block_tokens(k);
    double tokens = number_min(matched, prompt - 1);
    return number_max(block > 1 ? floor(tokens / block) * block : tokens, 0);
}

/* --- the size of the cache ------------------------------------------------------------------- */

void node_replica_size_known(const struct node_replica *k, double *size, double *weight)
{
    const struct node_cache *c = &k->cache;
    *weight = c->evidence.weight + c->size_held.weight;
    double sum = c->evidence.weight * log(c->evidence.size) + c->size_held.log;
    *size = *weight > 0 ? exp(sum / *weight) : 1;
}

/* Moves the belief in the size towards all routers' evidence. */
static void size_believe(struct node_replica *k)
{
    double size, weight;
    node_replica_size_known(k, &size, &weight);
    double sum = weight * log(size) + k->cache.others.size_log;
    weight += k->cache.others.size_weight;
    /* The evidence's share of the belief. The weights are squared, because a share of 2 % would
     * still change the size by 12 % if the evidence is 300 times off. */
    double known = weight * weight / (weight * weight + RULE(SIZE_DOUBT) * RULE(SIZE_DOUBT));
    node_belief_approach(&k->belief, weight > 0 ? exp(known * sum / weight) : 1);
}

/* Learns the size from `weight` requests, with `cached` of `prompt` tokens from the cache.
 * `expected`: the predicted cached tokens at each size. */
static void size_learn(struct node_replica *k, const float expected[NODE_SIZES], double cached,
                       double prompt, double weight)
{
    double whole = (double)expected[NODE_SIZES - 1];
    k->cache.size_learned = true;
    node_evidence_add(&k->cache.evidence, expected, number_min(cached, whole), prompt, weight,
                      head_start(k));
    size_believe(k);
}

double node_replica_evicted_after(struct node_replica *k)
{
    struct node_cache *c = &k->cache;
    double evicted = k->scrape.evicted - c->evicted_seen;
    double idle_s = k->scrape.evicted_idle_s - c->evicted_idle_seen_s;
    bool begun = c->evicted_seen >= 0 && evicted >= 0 && idle_s >= 0;
    if (k->scrape.evicted < 0 || k->scrape.evicted_idle_s < 0 ||
        (begun && evicted < RULE(WINDOW_PROMPTS)))
        return 0;
    c->evicted_seen = k->scrape.evicted;
    c->evicted_idle_seen_s = k->scrape.evicted_idle_s;
    return begun ? idle_s / evicted : 0;
}

void node_replica_size_shown(struct node_replica *k, double size)
{
    k->cache.size_held = (struct node_size_held){
        .log = RULE(SIZE_PROMPTS) * log(node_evidence_size(size)), .weight = RULE(SIZE_PROMPTS)};
    k->cache.size_learned = true;
    size_believe(k);
}

void node_replica_size_heard(struct node_replica *k, double factor)
{
    if (k->cache.size_learned)
        return;
    k->belief.factor = factor;
    k->belief.stale = true;
    k->cache.size_held =
        (struct node_size_held){.log = RULE(PRIOR) * log(factor), .weight = RULE(PRIOR)};
    k->cache.size_learned = true;
}

void node_replica_size_fade(struct node_replica *k, double seconds)
{
    double keep = exp(-seconds / RULE(FADE_S));
    node_evidence_fade(&k->cache.evidence, seconds, head_start(k));
    k->cache.size_held.log *= keep;
    k->cache.size_held.weight *= keep;
    size_believe(k);
}

void node_replica_size_told(struct node_replica *k, double tokens)
{
    if (tokens <= 0 || (uint64_t)tokens == k->told.cache_tokens)
        return;
    k->told.cache_tokens = (uint64_t)tokens;
    node_evidence_init(&k->cache.evidence); /* the evidence was in units of the former size */
    k->cache.size_held = (struct node_size_held){0};
    node_belief_init(&k->belief);
}

/* --- the engine's counters ------------------------------------------------------------------- */

static struct node_sums sums_of_all(const struct node_cache *c)
{
    struct node_sums all = c->sums;
    all.prompt_tokens += c->others.sums.prompt_tokens;
    all.cached_tokens += c->others.sums.cached_tokens;
    all.told += c->others.sums.told;
    return all;
}

static void window_begin(struct node_replica *k, uint64_t now_ms)
{
    k->cache.window = (struct node_scrape_window){.queries = k->scrape.prefix_queries,
                                                  .hits = k->scrape.prefix_hits,
                                                  .sums = sums_of_all(&k->cache),
                                                  .who = k->cache.others.who,
                                                  .since_ms = now_ms};
}

void node_replica_began(struct node_replica *k, const struct node_work *work, int times)
{
    struct node_scrape_window *w = &k->cache.window;
    uint64_t prompt = work->prompt_tokens, cached = work->cached_tokens;
    k->cache.sums.prompt_tokens += times > 0 ? prompt : -prompt;
    k->cache.sums.cached_tokens += times > 0 ? cached : -cached;
    w->own_prompt_tokens += times > 0 ? prompt : -prompt;
    w->own_requests += times > 0 ? 1 : -1U;
    node_reach_sum(&work->reach, times, w->own_expected);
}

void node_replica_void(struct node_replica *k, const struct node_work *work)
{
    node_belief_void(&k->belief, work->prompt_id, work->generation - 1, work->fresh_blocks);
    k->cache.sums.void_blocks += work->fresh_blocks;
}

/* The difference of two sums; may be negative, because requests without effect are taken back. */
static double rise(uint64_t before, uint64_t now)
{
    return (double)(int64_t)(now - before);
}

/* The counters show the cached tokens of all routers' requests together. The prediction at each
 * size is known only for this router's requests; other routers' requests are assumed to be
 * alike. */
static void window_teach(struct node_replica *k, double actual)
{
    const struct node_scrape_window *w = &k->cache.window;
    double prompt = (double)(int64_t)w->own_prompt_tokens;
    if ((int)w->own_requests > 0 && prompt > 0)
        size_learn(k, w->own_expected, actual * prompt, prompt,
                   number_min(w->own_requests, RULE(WINDOW_PROMPTS)));
}

/* Compares the engine's counters with the predictions for the requests begun in the window. */
static void window_compare(struct node_replica *k, uint64_t now_ms)
{
    struct node_cache *c = &k->cache;
    const struct node_scrape_window *w = &c->window;
    double queries = k->scrape.prefix_queries - w->queries;
    double hits = k->scrape.prefix_hits - w->hits;
    if (w->queries < 0 || w->hits < 0 || k->scrape.prefix_queries < 0 ||
        k->scrape.prefix_hits < 0 || w->who != c->others.who) {
        window_begin(k, now_ms);
        return;
    }
    if (queries < RULE(WINDOW_TOKENS) ||
        (w->who != 0 && now_ms < w->since_ms + NODE_WINDOW_SHARED_MS))
        return; /* the window goes on until the next scrape */
    struct node_sums all = sums_of_all(c);
    double prompt = rise(w->sums.prompt_tokens, all.prompt_tokens);
    double predicted = rise(w->sums.cached_tokens, all.cached_tokens);
    bool ours = prompt * RULE(WINDOW_OURS) >= queries && prompt <= queries * RULE(WINDOW_OURS);
    if (ours && predicted >= 0 && hits >= 0 && hits <= queries) {
        double actual = hits / queries * prompt;
        c->by_scrape.predicted += (uint64_t)predicted;
        c->by_scrape.actual += (uint64_t)actual;
        c->by_scrape.off += (uint64_t)fabs(predicted - actual);
        if (w->sums.told == all.told)
            window_teach(k, hits / queries);
    }
    window_begin(k, now_ms);
}

void node_replica_window(struct node_replica *k, bool anew, uint64_t now_ms)
{
    if (anew || k->cache.window.queries < 0)
        window_begin(k, now_ms);
    else
        window_compare(k, now_ms);
}

/* --- what answers say ------------------------------------------------------------------------ */

struct node_usage node_replica_usage(struct node_replica *k, const struct node_usage *reported,
                                     bool answer_whole, bool *sane)
{
    struct node_usage usage = *reported;
    *sane = node_usage_clean(&usage);
    k->cache.usage_impossible += !*sane;
    bool *tells = &k->cache.tells_cached[answer_whole];
    *tells = *tells || usage.cached_tokens >= 0;
    if (*tells && usage.cached_tokens < 0 && usage.prompt_tokens > 0 && usage.completion_tokens > 0)
        usage.cached_tokens = 0;
    return usage;
}

static unsigned divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return (unsigned)a;
}

/* Learns the block size as a common divisor: engines report whole blocks. */
static void block_learn(struct node_cache *c, uint64_t cached)
{
    if (cached == 0 || cached == c->told_last)
        return;
    c->told_block = divisor(cached, c->told_block);
    c->told_block_seen += c->told_block_seen < RULE(PRIOR);
    c->told_last = cached;
}

void node_prediction_add(struct node_prediction_sums *s, uint64_t predicted, uint64_t actual)
{
    s->predicted += predicted;
    s->actual += actual;
    s->off += predicted > actual ? predicted - actual : actual - predicted;
}

void node_replica_cached_reported(struct node_replica *k, uint64_t prompt, uint64_t predicted,
                                  uint64_t actual, double counted, const float expected[NODE_SIZES])
{
    struct node_cache *c = &k->cache;
    node_prediction_add(&c->by_usage, predicted, actual);
    c->sums.told++;
    block_learn(c, actual);
    if (expected[NODE_SIZES - 1] > 0)
        size_learn(k, expected, counted, (double)prompt, 1);
}

void node_replica_bytes_add(struct node_replica *k, double bytes, double tokens, bool told)
{
    node_ratio_add(&k->cache.bytes_per_token, bytes, tokens);
    k->cache.bytes_samples += told;
}

void node_replica_bytes_believe(struct node_replica *k, double bytes_per_token, uint64_t samples)
{
    k->cache.bytes_per_token = node_ratio_of(
        bytes_per_token, number_min(RULE(BYTES_PRIOR) * (1 + (double)samples), RULE(BYTES_TOKENS)),
        RULE(BYTES_TOKENS));
    k->cache.bytes_samples = samples;
    k->belief.stale = true;
}

/* --- what other routers say ------------------------------------------------------------------ */

void node_replica_others(struct node_replica *k, const struct node_others *others,
                         uint32_t generation, uint64_t now_ms)
{
    const struct node_others *before = &k->cache.others;
    bool same = others->who == before->who;
    if (same && others->sums.work != before->sums.work)
        node_signs_worked(&k->signs, now_ms);
    double voids = rise(before->sums.void_blocks, others->sums.void_blocks);
    if (same && voids > 0 && voids < UINT32_MAX)
        node_belief_void(&k->belief, 0, generation, (uint32_t)voids);
    k->cache.others = *others;
    size_believe(k);
}
