#include "node/replica/replica.h"

#include <math.h>

#include "base/check.h"
#include "base/number.h"
#include "node/replica/constants.h"

/* --- made ------------------------------------------------------------------------------------ */

void node_replica_failures_max(struct node_replica *k, uint32_t max)
{
    k->trouble.probe_failures_max = max > 0 ? max : NODE_PROBE_FAILURES_MAX;
}

/* Resets to the initial beliefs. */
static void begin_anew(struct node_replica *k, const struct node_replica_config *config)
{
    k->cache.window = (struct node_scrape_window){.queries = -1, .hits = -1};
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

void node_replica_anew(struct node_replica *k, unsigned slot, struct slice name, uint64_t name_hash,
                       const struct node_replica_config *config)
{
    uint16_t era = k->era;
    uint32_t life = k->life;
    node_replica_init(k, name, NODE_ENGINE_AUTO, name_hash, config);
    node_rank_set(k, -1, slot);
    k->absent = true;
    k->era = (uint16_t)(era + 1);
    k->life = life + 1;
}

/* Clears everything learned or heard: rates and beliefs, and reasons to avoid the replica. */
static void renew(struct node_replica *k, const struct node_replica_config *config)
{
    const struct node_trouble before = k->trouble;
    k->health = k->hint = NODE_HEALTH_UNKNOWN;
    k->asleep = false;
    k->server = (struct node_server){.no_place = k->server.no_place};
    k->trouble = (struct node_trouble){.probe_failures_total = before.probe_failures_total,
                                       .busy_requests = before.busy_requests,
                                       .refused_ms = before.refused_ms};
    node_reject_renew(&k->reject);
    k->breaker = (struct node_breaker){.cured = k->breaker.cured};
    k->signs = (struct node_signs){.stalls_total = k->signs.stalls_total};
    k->scraped = (struct node_scraped){0};
    k->turn = k->turn_events = (struct node_turn){0};
    k->scraped_ms = 0;
    k->foreign = (struct node_foreign){0};
    k->room = (struct node_room){0};
    k->told = (struct node_sizes_told){.adapter_slots = k->told.adapter_slots,
                                       .adapter_slots_heard = k->told.adapter_slots_heard};
    begin_anew(k, config);
}

void node_replica_present(struct node_replica *k, bool present,
                          const struct node_replica_config *config)
{
    k->absent = !present;
    if (present)
        return;
    renew(k, config);
    k->life++;
}

void node_replica_drain(struct node_replica *k, bool vanishing, bool wished, bool added)
{
    k->vanishing = vanishing;
    k->draining = wished || (vanishing && !added);
}

void node_replica_keep(struct node_replica *k, bool kept)
{
    CHECK(kept || k->kept > 0);
    k->kept = kept ? k->kept + 1 : k->kept - 1;
}

/* --- identity -------------------------------------------------------------------------------- */

bool node_replica_engine_hear(struct node_replica *k, enum node_engine e)
{
    bool news = k->engine == NODE_ENGINE_AUTO && e != NODE_ENGINE_AUTO;
    if (news)
        k->engine = e;
    return news;
}

bool node_replica_engine_found(struct node_replica *k, enum node_engine e)
{
    bool fixed = k->said.engine != NODE_ENGINE_AUTO || k->engine == NODE_ENGINE_OTHER;
    bool news = e != NODE_ENGINE_AUTO && e != k->engine && !fixed;
    if (news)
        k->engine = e;
    return news;
}

uint32_t node_replica_context(const struct node_replica *k)
{
    const struct node_sizes_told *t = &k->told;
    if (k->said.context_tokens > 0)
        return k->said.context_tokens;
    bool info =
        t->context_info > 0 && (t->context_listed == 0 || t->context_info < t->context_listed);
    return info ? t->context_info : t->context_listed;
}

bool node_replica_context_listed(struct node_replica *k, uint32_t tokens)
{
    bool other = k->told.context_listed > 0 && tokens > 0 && k->told.context_listed != tokens;
    k->told.context_listed = tokens;
    if (other)
        k->told.context_info = 0;
    return other;
}

void node_replica_context_info(struct node_replica *k, uint32_t tokens)
{
    k->told.context_info = tokens;
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

/* --- health ---------------------------------------------------------------------------------- */

static void go_down(struct node_replica *k, uint64_t now_ms)
{
    if (k->health != NODE_HEALTH_DOWN)
        k->signs.down_ms = now_ms;
    k->health = NODE_HEALTH_DOWN;
}

/* The process was replaced: evidence against the old process's answers is void. */
static void process_renewed(struct node_replica *k)
{
    k->trouble.tally = (struct node_tally){0};
    node_reject_renew(&k->reject);
}

bool node_replica_probed(struct node_replica *k, struct node_check check, uint64_t now_ms)
{
    struct node_trouble *t = &k->trouble;
    t->check = check;
    if (check.ok) {
        t->probe_failures = 0;
        if (t->gone)
            process_renewed(k);
        t->gone = false;
        k->signs.leaving = false;
        k->breaker.warned_ms = 0;
        if (now_ms >= t->failing.until_ms)
            t->answer_failures = 0;
        if (k->health == NODE_HEALTH_DOWN)
            t->back_ms = now_ms;
        k->health = NODE_HEALTH_UP;
        return false;
    }
    t->probe_failures_total++;
    if (++t->probe_failures >= t->probe_failures_max || check.refused)
        go_down(k, now_ms);
    bool gone_now = check.refused && !t->gone;
    t->gone = t->gone || check.refused;
    if (check.refused)
        t->refused_ms = now_ms;
    return gone_now;
}

void node_replica_leaves(struct node_replica *k)
{
    k->signs.leaving = true;
}

void node_replica_found_router(struct node_replica *k, struct slice who)
{
    k->trouble.probe_failures = 0;
    k->trouble.gone = false;
    k->server.probes_refused = 0; /* the former engine's refusals */
    k->health = NODE_HEALTH_ROUTER;
    k->router_len = (uint16_t)(who.len < NODE_ROUTER_NAME_MAX ? who.len : NODE_ROUTER_NAME_MAX);
    memcpy(k->router, who.at, k->router_len);
}

void node_replica_sent(struct node_replica *k, bool to_rank, uint64_t now_ms)
{
    k->rank.requests += to_rank;
    k->signs.tried_ms = now_ms;
    node_breaker_sent(k, now_ms);
}

void node_replica_answering(struct node_replica *k, uint64_t chosen_ms, uint64_t now_ms)
{
    struct node_trouble *t = &k->trouble;
    node_breaker_worked(k, now_ms);
    t->failing.trial = false;
    node_signs_answering(&k->signs, now_ms);
    if (k->health != NODE_HEALTH_DOWN || chosen_ms <= k->signs.down_ms)
        return;
    k->health = NODE_HEALTH_UP;
    t->back_ms = now_ms;
    t->gone = false;
    t->check = (struct node_check){.status = t->check.status};
    t->probe_failures = t->answer_failures = 0;
    t->failing.until_ms = 0;
}

void node_replica_fails(struct node_replica *k, bool broke, uint64_t now_ms)
{
    if (now_ms >= k->trouble.failing.until_ms)
        k->trouble.broke = broke;
    node_backoff_begin(&k->trouble.failing, NODE_BACKOFF_MIN_MS, now_ms);
}

void node_replica_answered(struct node_replica *k, enum node_outcome outcome, uint64_t now_ms)
{
    struct node_trouble *t = &k->trouble;
    switch (outcome) {
    case NODE_OUTCOME_OK:
        t->answer_failures = t->error_answers = 0;
        t->failing.trial = false; /* the level stays, so that the next back-off is longer */
        break;
    case NODE_OUTCOME_REJECTED: /* a server that fails may still say no */
        t->answer_failures = 0;
        t->failing.trial = t->failing.trial && !t->broke;
        break;
    case NODE_OUTCOME_STALLED:
    case NODE_OUTCOME_CLIENT_GONE:
    case NODE_OUTCOME_IN_DOUBT:
    case NODE_OUTCOME_SLOW:
    case NODE_OUTCOME_NOT_SENT:
        break;
    case NODE_OUTCOME_ENGINE_BUSY:
        t->busy_requests = node_replica_own_requests(k);
        t->busy_until_ms = now_ms + NODE_BUSY_AVOID_MS;
        break;
    case NODE_OUTCOME_ENGINE_ERROR:
        if (++t->error_answers >= NODE_ERROR_ANSWERS_MAX)
            node_replica_fails(k, false, now_ms);
        break;
    case NODE_OUTCOME_CONNECT_FAILED:
    case NODE_OUTCOME_BROKEN:
        if (++t->answer_failures < NODE_ANSWER_FAILURES_MAX && !(t->failing.trial && t->broke))
            break;
        go_down(k, now_ms);
        node_replica_fails(k, true, now_ms);
        break;
    }
}

void node_replica_ended(struct node_replica *k, bool at_rank, enum node_outcome outcome,
                        uint64_t now_ms)
{
    k->rank.requests -= at_rank;
    node_replica_answered(k, outcome, now_ms);
    node_breaker_ended(k, outcome, now_ms);
}

/* Equally frequent failures at all other replicas are no reason to avoid a replica. */
void node_replica_tally(struct node_replica *k, bool failed, const struct node_replica *replicas,
                        unsigned count, uint64_t now_ms)
{
    struct node_tally others = {0}, *t = &k->trouble.tally;
    const double fade = 1 - 1.0 / NODE_TALLY_RECENT;
    t->attempts = t->attempts * fade + 1;
    t->failures = t->failures * fade + failed;
    if (!failed)
        return;
    for (unsigned i = 0; i < count; i++) {
        const struct node_replica *other = &replicas[i];
        if (other == k || other->absent)
            continue;
        others.attempts += other->trouble.tally.attempts;
        others.failures += other->trouble.tally.failures;
    }
    if (t->failures < NODE_TALLY_FAILURES_MIN || t->failures * NODE_TALLY_SHARE < t->attempts ||
        t->failures * others.attempts < NODE_TALLY_OTHERS * others.failures * t->attempts)
        return;
    node_replica_fails(k, false, now_ms);
    k->trouble.back_ms = k->trouble.failing.until_ms;
}

/* --- the metrics ----------------------------------------------------------------------------- */

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

/* Sums over fewer ranks than before are no sign of a restart. Such readings are skipped, until the
 * missing rank seems to be gone for good. */
static bool rank_is_missing(struct node_replica *k, const struct node_scrape *s)
{
    bool missing =
        s->series > 0 && s->series < k->scrape.series && node_scrape_same_life(&k->scrape, s);
    k->scraped.ranks_missing = missing ? k->scraped.ranks_missing + 1 : 0;
    return missing && k->scraped.ranks_missing <= RULE(FEW);
}

bool node_replica_misses_ranks(const struct node_replica *k)
{
    return k->scraped.ranks_missing > 0 && k->scraped.ranks_missing <= RULE(FEW);
}

bool node_replica_scraped(struct node_replica *k, const struct node_scrape *s, uint64_t now_ms)
{
    if (rank_is_missing(k, s))
        return false;
    node_replica_size_told(k, s->cache_tokens);
    if (node_scrape_sizes_only(s)) {
        if (s->cache_tokens > 0)
            k->scrape.cache_tokens = s->cache_tokens;
        if (s->block_tokens > 0)
            k->scrape.block_tokens = s->block_tokens;
        return false;
    }
    struct node_scrape now = *s;
    now.adapters = slice_of(NULL, 0); /* borrowed from the text */
    if (s->adapter_slots > 0)
        k->told.adapter_slots = (uint32_t)number_min(s->adapter_slots, UINT16_MAX);
    keep_if_missing(&now.cache_tokens, k->scrape.cache_tokens);
    keep_if_missing(&now.block_tokens, k->scrape.block_tokens);
    bool was_asleep = k->asleep;
    bool restarted = k->scraped_ms != 0 && has_restarted(&k->scrape, &now);
    if (k->scraped_ms != 0 && !restarted) {
        keep_if_missing(&now.start_time_s, k->scrape.start_time_s);
        keep_if_missing(&now.prefix_queries, k->scrape.prefix_queries);
        keep_if_missing(&now.prefix_hits, k->scrape.prefix_hits);
        keep_if_missing(&now.tier_hits, k->scrape.tier_hits);
        keep_if_missing(&now.prompt_tokens, k->scrape.prompt_tokens);
        keep_if_missing(&now.generation_tokens, k->scrape.generation_tokens);
        keep_if_missing(&now.series, k->scrape.series); /* other routers' readings have none */
    }
    if (restarted)
        k->foreign = (struct node_foreign){0};
    node_foreign_scraped(&k->foreign, &k->load,
                         (double)k->rank.requests + (double)k->rank.requests_remote, &k->scrape,
                         &now, now_ms);
    if (k->scraped_ms != 0 && !restarted)
        node_replica_speed_scraped(k, &k->scrape, &now, (double)(now_ms - k->scraped_ms) / 1000,
                                   now_ms);
    bool works = node_signs_scraped(&k->signs, k->scraped_ms != 0 ? &k->scrape : NULL, &now,
                                    restarted, now_ms);
    if (works && k->scraped.source == 0) /* another router's reading is no observation by this
                                          * router */
        k->cache.sums.work++;
    k->scrape = now;
    k->scraped_ms = now_ms > 0 ? now_ms : 1;
    k->asleep = now.sleeping > 0;
    node_replica_window(k, restarted, now_ms);
    if (restarted) {
        k->restarts++;
        k->trouble.back_ms = now_ms;
        process_renewed(k);
    }
    /* An engine going to sleep drops the cache (vLLM, levels 1 and 2). */
    return restarted || (k->asleep && !was_asleep);
}
