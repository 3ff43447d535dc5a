#include "node/replica/replica.h"

#include <math.h>

#include "base/check.h"
#include "base/number.h"
#include "node/replica/constants.h"
#include "node/replica/speed.h"

void node_replica_failures_max(struct node_replica *k, uint32_t max)
{
    k->probe_failures_max = max > 0 ? max : NODE_PROBE_FAILURES_MAX;
}

/* What is believed before anything is learned. */
static void begin_anew(struct node_replica *k, const struct node_replica_config *config)
{
    k->window = (struct node_scrape_window){.queries = -1, .hits = -1};
    k->scrape = node_scrape_unknown;
    node_replica_failures_max(k, config->probe_failures_max);
    node_replica_bytes_believe(k, config->bytes_per_token, 0);
    node_replica_speed_begin(k, config);
    node_replica_cache_forget(k);
}

void node_replica_init(struct node_replica *k, struct slice name, enum node_engine engine,
                       uint64_t name_hash, const struct node_replica_config *config)
{
    *k = (struct node_replica){
        .engine = engine,
        .weight = 1,
        .name_hash = name_hash,
        .name_len = (uint16_t)name.len,
    };
    CHECK(name.len <= NODE_NAME_MAX);
    memcpy(k->name, name.at, name.len);
    node_load_init(&k->load);
    node_reject_init(&k->reject);
    begin_anew(k, config);
}

/* All that was learned or heard goes: rates and beliefs, and why it was avoided. */
void node_replica_renew(struct node_replica *k, const struct node_replica_config *config)
{
    uint8_t cured = k->breaker.cured;
    k->health = k->hint = NODE_HEALTH_UNKNOWN;
    k->asleep = k->models_stale = k->gone = k->refuses = k->tls_fails = false;
    k->unresolved = 0;
    k->check_status = k->list_status = 0;
    k->guessed_ms = 0;
    k->belief_held = k->packs = false;
    k->busy_until_ms = k->back_ms = k->scraped_ms = 0;
    k->failing = (struct node_backoff){0};
    k->tally = (struct node_tally){0};
    node_reject_renew(&k->reject);
    k->breaker = (struct node_breaker){.cured = cured};
    k->signs =
        (struct node_signs){.stalls_total = k->signs.stalls_total, .reported = k->signs.reported};
    k->scraped = (struct node_scraped){0};
    k->foreign = (struct node_foreign){0};
    k->room = (struct node_room){0};
    k->probe_failures = k->answer_failures = k->error_answers = k->probes_refused = 0;
    k->cache_tokens = k->cache_tokens_heard = 0;
    k->context_listed = k->context_told = 0;
    begin_anew(k, config);
}

struct slice node_replica_name(const struct node_replica *k)
{
    return slice_of(k->name, k->name_len);
}

enum node_health node_replica_health(const struct node_replica *k)
{
    bool out = k->health == NODE_HEALTH_DOWN || k->health == NODE_HEALTH_ROUTER;
    return k->draining && !out ? NODE_HEALTH_DRAINING : k->health;
}

static void go_down(struct node_replica *k, uint64_t now_ms)
{
    if (k->health != NODE_HEALTH_DOWN)
        k->signs.down_ms = now_ms;
    k->health = NODE_HEALTH_DOWN;
}

bool node_replica_probed(struct node_replica *k, bool ok, bool refused, uint64_t now_ms)
{
    k->refuses = refused;
    k->tls_fails = false;
    k->unresolved = 0;
    if (ok) {
        k->probe_failures = 0;
        if (k->gone) { /* this is another process */
            k->tally = (struct node_tally){0};
            node_reject_renew(&k->reject);
        }
        k->gone = false;
        k->signs.leaving = false;
        k->breaker.warned_ms = 0;
        if (now_ms >= k->failing.until_ms)
            k->answer_failures = 0;
        if (k->health == NODE_HEALTH_DOWN)
            k->back_ms = now_ms;
        k->health = NODE_HEALTH_UP;
        return false;
    }
    k->probe_failures_total++;
    if (++k->probe_failures >= k->probe_failures_max || refused)
        go_down(k, now_ms);
    bool gone_now = refused && !k->gone;
    k->gone = k->gone || refused;
    if (refused)
        k->refused_ms = now_ms;
    return gone_now;
}

void node_replica_found_router(struct node_replica *k, struct slice who)
{
    k->probe_failures = 0;
    k->gone = false;
    k->probes_refused = 0; /* the engine did, which was there before */
    k->health = NODE_HEALTH_ROUTER;
    k->router_len = (uint16_t)(who.len < NODE_ROUTER_NAME_MAX ? who.len : NODE_ROUTER_NAME_MAX);
    memcpy(k->router, who.at, k->router_len);
}

void node_replica_answering(struct node_replica *k, uint64_t chosen_ms, uint64_t now_ms)
{
    k->failing.trial = false;
    node_signs_answering(&k->signs, now_ms);
    if (k->health != NODE_HEALTH_DOWN || chosen_ms <= k->signs.down_ms)
        return;
    k->health = NODE_HEALTH_UP;
    k->back_ms = now_ms;
    k->gone = k->refuses = k->tls_fails = false;
    k->unresolved = 0;
    k->probe_failures = k->answer_failures = 0;
    k->failing.until_ms = 0;
}

void node_replica_fails(struct node_replica *k, bool broke, uint64_t now_ms)
{
    if (now_ms >= k->failing.until_ms)
        k->broke = broke;
    node_backoff_begin(&k->failing, NODE_BACKOFF_MIN_MS, now_ms);
}

void node_replica_answered(struct node_replica *k, enum node_outcome outcome, uint64_t now_ms)
{
    switch (outcome) {
    case NODE_OUTCOME_OK:
        k->answer_failures = k->error_answers = 0;
        k->failing.trial = false; /* how long it was is kept: again is worse */
        break;
    case NODE_OUTCOME_REJECTED: /* a server that fails may still say no */
        k->answer_failures = 0;
        k->failing.trial = k->failing.trial && !k->broke;
        break;
    case NODE_OUTCOME_STALLED:
    case NODE_OUTCOME_CLIENT_GONE:
    case NODE_OUTCOME_IN_DOUBT:
    case NODE_OUTCOME_SLOW:
    case NODE_OUTCOME_NOT_SENT:
        break;
    case NODE_OUTCOME_ENGINE_BUSY:
        k->busy_requests = node_replica_own_requests(k);
        k->busy_until_ms = now_ms + NODE_BUSY_AVOID_MS;
        break;
    case NODE_OUTCOME_ENGINE_ERROR:
        if (++k->error_answers >= NODE_ERROR_ANSWERS_MAX)
            node_replica_fails(k, false, now_ms);
        break;
    case NODE_OUTCOME_CONNECT_FAILED:
    case NODE_OUTCOME_BROKEN:
        if (++k->answer_failures < NODE_ANSWER_FAILURES_MAX && !(k->failing.trial && k->broke))
            break;
        go_down(k, now_ms);
        node_replica_fails(k, true, now_ms);
        break;
    }
}

double node_replica_cache_tokens(const struct node_replica *k, double configured)
{
    if (k->said.cache_tokens > 0)
        return (double)k->said.cache_tokens;
    double near = node_replica_near_tokens(k);
    return near > 0 ? near : configured;
}

double node_replica_near_tokens(const struct node_replica *k)
{
    return (double)(k->cache_tokens > 0 ? k->cache_tokens : k->cache_tokens_heard);
}

/* Each router has a part of the evidence, so it wants that part of it. */
static double head_start(const struct node_replica *k)
{
    return RULE(FEW) / (1 + k->others.count);
}

void node_replica_cache_forget(struct node_replica *k)
{
    node_belief_init(&k->belief);
    node_evidence_init(&k->evidence);
    k->belief_held = false;
    k->size_held = (struct node_size_held){0};
    memset(k->tells_cached, 0, sizeof k->tells_cached);
    k->told_block = k->told_block_seen = 0;
    k->evicted_seen = k->evicted_idle_seen_s = -1;
    k->told_last = 0;
}

double node_replica_block_tokens(const struct node_replica *k)
{
    if (k->scrape.block_tokens > 0)
        return k->scrape.block_tokens;
    return k->told_block_seen >= RULE(PRIOR) ? k->told_block : 0;
}

double node_replica_whole_tokens(const struct node_replica *k, double prompt, double matched)
{
    double block = node_replica_block_tokens(k);
    double tokens = number_min(matched, prompt - 1);
    return number_max(block > 1 ? floor(tokens / block) * block : tokens, 0);
}

void node_replica_size_known(const struct node_replica *k, double *size, double *weight)
{
    *weight = k->evidence.weight + k->size_held.weight;
    double sum = k->evidence.weight * log(k->evidence.size) + k->size_held.log;
    *size = *weight > 0 ? exp(sum / *weight) : 1;
}

void node_replica_size_believe(struct node_replica *k)
{
    double size, weight;
    node_replica_size_known(k, &size, &weight);
    double sum = weight * log(size) + k->others.size_log;
    weight += k->others.size_weight;
    /* Squares: a share of 2 % would still be 12 % of a size that is 300 times off. */
    double known = weight * weight / (weight * weight + RULE(SIZE_DOUBT) * RULE(SIZE_DOUBT));
    node_belief_approach(&k->belief, weight > 0 ? exp(known * sum / weight) : 1);
}

double node_replica_evicted_after(struct node_replica *k)
{
    double evicted = k->scrape.evicted - k->evicted_seen;
    double idle_s = k->scrape.evicted_idle_s - k->evicted_idle_seen_s;
    bool begun = k->evicted_seen >= 0 && evicted >= 0 && idle_s >= 0;
    if (k->scrape.evicted < 0 || k->scrape.evicted_idle_s < 0 ||
        (begun && evicted < RULE(WINDOW_PROMPTS)))
        return 0;
    k->evicted_seen = k->scrape.evicted;
    k->evicted_idle_seen_s = k->scrape.evicted_idle_s;
    return begun ? idle_s / evicted : 0;
}

void node_replica_size_shown(struct node_replica *k, double size)
{
    k->size_held = (struct node_size_held){
        .log = RULE(SIZE_PROMPTS) * log(node_evidence_size(size)), .weight = RULE(SIZE_PROMPTS)};
    k->belief_held = true;
    node_replica_size_believe(k);
}

void node_replica_size_fade(struct node_replica *k, double seconds)
{
    double keep = exp(-seconds / RULE(FADE_S));
    node_evidence_fade(&k->evidence, seconds, head_start(k));
    k->size_held.log *= keep;
    k->size_held.weight *= keep;
    node_replica_size_believe(k);
}

static bool went_back(double before, double now)
{
    return before >= 0 && now >= 0 && now < before;
}

static bool has_restarted(const struct node_scrape *before, const struct node_scrape *now)
{
    return !node_scrape_same_life(before, now) ||
           went_back(before->prefix_queries, now->prefix_queries) ||
           went_back(before->prompt_tokens, now->prompt_tokens) ||
           went_back(before->generation_tokens, now->generation_tokens);
}

static void keep_if_missing(double *now, double before)
{
    if (*now < 0)
        *now = before;
}

static struct node_predicted predicted_by_all(const struct node_replica *k)
{
    const struct node_predicted *own = &k->predicted;
    const struct node_predicted *others = &k->others.predicted;
    return (struct node_predicted){.prompt_tokens = own->prompt_tokens + others->prompt_tokens,
                                   .cached_tokens = own->cached_tokens + others->cached_tokens,
                                   .told = own->told + others->told};
}

static void window_begin(struct node_replica *k, uint64_t now_ms)
{
    k->window = (struct node_scrape_window){.queries = k->scrape.prefix_queries,
                                            .hits = k->scrape.prefix_hits,
                                            .predicted = predicted_by_all(k),
                                            .who = k->others.who,
                                            .since_ms = now_ms};
}

void node_replica_began(struct node_replica *k, const struct node_work *work, int times)
{
    struct node_scrape_window *w = &k->window;
    uint64_t prompt = work->prompt_tokens, cached = work->cached_tokens;
    k->predicted.prompt_tokens += times > 0 ? prompt : -prompt;
    k->predicted.cached_tokens += times > 0 ? cached : -cached;
    w->own_prompt_tokens += times > 0 ? prompt : -prompt;
    w->own_requests += times > 0 ? 1 : -1U;
    node_reach_sum(&work->reach, times, w->own_expected);
}

/* It may have shrunk: what came to nothing is taken back. */
static double rise(uint64_t before, uint64_t now)
{
    return (double)(int64_t)(now - before);
}

/* The counters say what came from the cache for all requests together. What these would have had at
 * each size is known of this router's own; others' are taken to be like them. */
static void window_teach(struct node_replica *k, double actual)
{
    struct node_scrape_window *w = &k->window;
    double prompt = (double)(int64_t)w->own_prompt_tokens;
    if ((int)w->own_requests <= 0 || prompt <= 0)
        return;
    double whole = (double)w->own_expected[NODE_SIZES - 1];
    double weight = number_min(w->own_requests, RULE(WINDOW_PROMPTS));
    double cached = number_min(actual * prompt, whole);
    node_evidence_add(&k->evidence, w->own_expected, cached, prompt, weight, head_start(k));
    k->belief_held = true;
    node_replica_size_believe(k);
}

/* The engine's own counters against what was predicted for the requests that began there. */
static void window_compare(struct node_replica *k, uint64_t now_ms)
{
    const struct node_scrape_window *w = &k->window;
    double queries = k->scrape.prefix_queries - w->queries;
    double hits = k->scrape.prefix_hits - w->hits;
    if (w->queries < 0 || w->hits < 0 || k->scrape.prefix_queries < 0 ||
        k->scrape.prefix_hits < 0 || w->who != k->others.who) {
        window_begin(k, now_ms);
        return;
    }
    if (queries < RULE(WINDOW_TOKENS) ||
        (w->who != 0 && now_ms < w->since_ms + NODE_WINDOW_SHARED_MS))
        return; /* goes on until the next scrape */
    struct node_predicted all = predicted_by_all(k);
    double prompt = rise(w->predicted.prompt_tokens, all.prompt_tokens);
    double predicted = rise(w->predicted.cached_tokens, all.cached_tokens);
    bool ours = prompt * RULE(WINDOW_OURS) >= queries && prompt <= queries * RULE(WINDOW_OURS);
    if (ours && predicted >= 0 && hits >= 0 && hits <= queries) {
        double actual = hits / queries * prompt;
        k->by_scrape.predicted += (uint64_t)predicted;
        k->by_scrape.actual += (uint64_t)actual;
        k->by_scrape.off += (uint64_t)fabs(predicted - actual);
        if (w->predicted.told == all.told)
            window_teach(k, hits / queries);
    }
    window_begin(k, now_ms);
}

static void cache_size_told(struct node_replica *k, double tokens)
{
    if (tokens <= 0 || (uint64_t)tokens == k->cache_tokens)
        return;
    k->cache_tokens = (uint64_t)tokens;
    node_evidence_init(&k->evidence); /* which was in units of another size */
    k->size_held = (struct node_size_held){0};
    node_belief_init(&k->belief);
}

/* Sums of fewer ranks than before are no restart of the others: such readings are left out, until
 * it seems that the rank is gone for good. */
static bool rank_is_missing(struct node_replica *k, const struct node_scrape *s)
{
    bool missing =
        s->series > 0 && s->series < k->scrape.series && node_scrape_same_life(&k->scrape, s);
    k->ranks_missing = missing ? k->ranks_missing + 1 : 0;
    return missing && k->ranks_missing <= RULE(FEW);
}

bool node_replica_misses_ranks(const struct node_replica *k)
{
    return k->ranks_missing > 0 && k->ranks_missing <= RULE(FEW);
}

bool node_replica_scraped(struct node_replica *k, const struct node_scrape *s, uint64_t now_ms)
{
    if (rank_is_missing(k, s))
        return false;
    cache_size_told(k, s->cache_tokens);
    if (node_scrape_sizes_only(s)) {
        if (s->cache_tokens > 0)
            k->scrape.cache_tokens = s->cache_tokens;
        if (s->block_tokens > 0)
            k->scrape.block_tokens = s->block_tokens;
        return false;
    }
    struct node_scrape now = *s;
    now.adapters = slice_of(NULL, 0); /* borrowed */
    if (s->adapter_slots > 0)
        k->adapter_slots = (uint32_t)number_min(s->adapter_slots, UINT16_MAX);
    keep_if_missing(&now.cache_tokens, k->scrape.cache_tokens);
    keep_if_missing(&now.block_tokens, k->scrape.block_tokens);
    bool was_asleep = k->asleep;
    bool restarted = k->scraped_ms != 0 && has_restarted(&k->scrape, &now);
    if (k->scraped_ms != 0 && !restarted) {
        keep_if_missing(&now.start_time_s, k->scrape.start_time_s);
        keep_if_missing(&now.prefix_queries, k->scrape.prefix_queries);
        keep_if_missing(&now.prefix_hits, k->scrape.prefix_hits);
        keep_if_missing(&now.prompt_tokens, k->scrape.prompt_tokens);
        keep_if_missing(&now.generation_tokens, k->scrape.generation_tokens);
        keep_if_missing(&now.series, k->scrape.series); /* what other routers read has none */
    }
    if (restarted)
        k->foreign = (struct node_foreign){0};
    node_foreign_scraped(&k->foreign, &k->load,
                         (double)k->rank_requests + (double)k->rank_requests_remote, &k->scrape,
                         &now, now_ms);
    if (k->scraped_ms != 0 && !restarted)
        node_replica_speed_scraped(k, &k->scrape, &now, (double)(now_ms - k->scraped_ms) / 1000,
                                   now_ms);
    bool works = node_signs_scraped(&k->signs, k->scraped_ms != 0 ? &k->scrape : NULL, &now,
                                    restarted, now_ms);
    if (works && k->scraped.source == 0) /* others may tell only what they saw */
        k->work++;
    k->scrape = now;
    k->scraped_ms = now_ms > 0 ? now_ms : 1;
    k->asleep = now.sleeping > 0;
    if (restarted || k->window.queries < 0)
        window_begin(k, now_ms);
    else
        window_compare(k, now_ms);
    if (restarted) {
        k->restarts++;
        k->back_ms = now_ms;
        k->tally = (struct node_tally){0};
        node_reject_renew(&k->reject);
    }
    /* An engine that goes to sleep gives its cache away (vLLM, level 1 and 2). */
    return restarted || (k->asleep && !was_asleep);
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

/* Engines count whole blocks. */
static void block_learn(struct node_replica *k, uint64_t cached)
{
    if (cached == 0 || cached == k->told_last)
        return;
    k->told_block = divisor(cached, k->told_block);
    k->told_block_seen += k->told_block_seen < RULE(PRIOR);
    k->told_last = cached;
}

void node_replica_cached_reported(struct node_replica *k, uint64_t prompt, uint64_t predicted,
                                  uint64_t actual, double counted, const float expected[NODE_SIZES])
{
    k->by_usage.predicted += predicted;
    k->by_usage.actual += actual;
    k->by_usage.off += predicted > actual ? predicted - actual : actual - predicted;
    k->predicted.told++;
    block_learn(k, actual);
    double whole = (double)expected[NODE_SIZES - 1];
    if (whole <= 0)
        return;
    k->belief_held = true;
    node_evidence_add(&k->evidence, expected, number_min(counted, whole), (double)prompt, 1,
                      head_start(k));
    node_replica_size_believe(k);
}

void node_replica_others(struct node_replica *k, const struct node_others *others,
                         uint32_t generation, uint64_t now_ms)
{
    if (others->who == k->others.who && others->work != k->others.work)
        node_signs_worked(&k->signs, now_ms);
    double voids = rise(k->others.void_blocks, others->void_blocks);
    if (others->who == k->others.who && voids > 0 && voids < UINT32_MAX)
        node_belief_void(&k->belief, 0, generation, (uint32_t)voids);
    k->others = *others;
    node_replica_size_believe(k);
}

void node_replica_bytes_believe(struct node_replica *k, double bytes_per_token, uint64_t samples)
{
    k->bytes_per_token = node_ratio_of(
        bytes_per_token, number_min(RULE(BYTES_PRIOR) * (1 + (double)samples), RULE(BYTES_TOKENS)),
        RULE(BYTES_TOKENS));
    k->bytes_samples = samples;
    k->belief.stale = true;
}
