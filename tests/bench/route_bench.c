/* Routing quality in virtual time: real node_router code, simulated replicas, real sessions.
 *
 *     route_bench DIRECTORY [--whole] [--policy NAME] [--cache TOKENS] [--sessions N] ...
 *
 * (settings and their bounds are the table of route_settings.h; tests/bench/route.sh unpacks the
 * traces)
 *
 * Each replica has an exact LRU cache of 64-token blocks, one prefill server, first come first
 * served, and decodes all its streams in steps of a + b * (tokens in running contexts), and one
 * chunk of prefill more while a prefill is going on (part 1 of ../shared/design/routing.md).
 * Sessions run in a closed loop: answer, think (a minute at most), next turn; a new session starts
 * when one ends. The
 * router sees what it would see in service: first bytes, ends, usage, scraped counters.
 *
 * With --routers N each request goes to a random one of N routers, which share what they know over
 * simulated links of --delay milliseconds one way, or do not (--shared 0).
 *
 * The column "spread" is the deviation over the replicas of the tokens that they computed, as a
 * share of their mean.
 *
 * With --speed F engines and clients are F times faster, and all seconds printed are F times those
 * that passed: without the router's millisecond clock and its settings that speak of time, nothing
 * would change. --told 0 leaves rates and pace at the router's defaults, which are off by F then.
 * --half 2 takes the second half of the sessions, which no setting was chosen by.
 *
 * The row "oracle" is the rule of cache_aware with perfect knowledge: it looks into the caches and
 * queues. One seed gives the same table every time, but for the column of CPU time.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "base/checkpoint.h"
#include "base/err.h"
#include "base/prng.h"
#include "node/route/cost.h"
#include "node/route/router.h"
#include "tests/bench/route_cache.h"
#include "tests/bench/route_settings.h"
#include "tests/lib/alone.h"
#include "tests/lib/coding_sessions.h"
#include "tests/lib/lru.h"
#include "tests/lib/world/use.h"

enum { REPLICAS_MAX = 64, SLOTS_MAX = 64 * REPLICAS_MAX, NONE = LRU_NONE };

/* --- replicas, sessions --------------------------------------------------------------------- */

struct slot {    /* one conversation at a time */
    int session; /* NONE: no more */
    unsigned turn;
    double next_s; /* INFINITY while a request is in flight */
    /* the request in flight */
    unsigned router, replica;
    struct node_booking booking;
    double sent_s, first_s, step_end;
    uint32_t held;
    int next; /* in the line of its replica */
};

struct replica {
    struct lru cache;
    int head, tail; /* line of slots; the head is computed */
    double prefill_end_s;
    double steps, at_s; /* decode steps done so far, and when that was */
    double context;     /* of streams being decoded */
    unsigned decoding, in_flight;
    double in_flight_context;
    double queries, hits, prompts, outputs;
};

struct result {
    double *ttft;
    unsigned count;
    double prompt, cached, ttft_sum, tpot_sum, end_sum, cpu_s;
    unsigned streams;
};

static struct bench {
    const struct coding_sessions *sessions;
    const unsigned *order;
    unsigned next_session;
    double now_s, output_mean;
    struct replica replicas[REPLICAS_MAX];
    struct slot slots[SLOTS_MAX];
    unsigned slot_count;
    bool routed; /* else by the oracle */
    struct world routers;
    struct prng prng;
    struct result result;
    double next_tick_s;
} * w;

static const struct session_request *slot_request(const struct slot *s)
{
    return &w->sessions->sessions[s->session].requests[s->turn];
}

static uint64_t now_ms(void)
{
    return (uint64_t)llround(w->now_s * 1000);
}

static double step_s(const struct replica *k)
{
    double chunk_s = k->head == NONE ? 0 : set.chunk_tokens / set.rate;
    return set.step_base_s + set.step_context_s * k->context + chunk_s;
}

/* Brings the count of steps up to now; called before anything that changes their pace. */
static void steps_advance(struct replica *k)
{
    k->steps += (w->now_s - k->at_s) / step_s(k);
    k->at_s = w->now_s;
}

static void prefill_begin(struct replica *k)
{
    if (k->head == NONE)
        return;
    struct slot *s = &w->slots[k->head];
    const struct session_request *q = slot_request(s);
    s->held = cache_match(&k->cache, q);
    cache_prompt(&k->cache, q, s->held, w->now_s);
    double cached = (double)s->held * SESSION_BLOCK_TOKENS;
    k->prefill_end_s = w->now_s + (q->prompt_tokens - cached) / set.rate;
    k->queries += q->prompt_tokens;
    k->hits += cached;
    k->prompts += q->prompt_tokens;
}

/* The chain that the skimmer would make of it: 64 tokens are 256 bytes. */
static void chain_of(const struct session_request *q, struct chain *chain)
{
    chain->bytes = (uint64_t)q->prompt_tokens * 4;
    chain->length = 0;
    chain->token_ids = chain->chunks = false;
    chain->content = (struct chain_content){0};
    for (unsigned i = 0; i < CHECKPOINT_MAX && checkpoint_blocks(i) <= q->block_count; i++) {
        uint32_t blocks = checkpoint_blocks(i);
        chain->points[chain->length++] =
            (struct chain_point){.id = hash_mix((uint64_t)q->blocks[blocks - 1] + 1),
                                 .blocks = blocks,
                                 .code = checkpoint_code(i)};
    }
}

static double in_flight_mean(void)
{
    double sum = 0;
    for (unsigned r = 0; r < set.replicas; r++)
        sum += w->replicas[r].in_flight;
    return sum / set.replicas;
}

static double oracle_cost(unsigned r, const struct session_request *q)
{
    const struct replica *k = &w->replicas[r];
    uint32_t held = cache_match(&k->cache, q);
    /* The line: what is left of the head, and what the others will find uncached. */
    double queue_s = k->head == NONE ? 0 : k->prefill_end_s - w->now_s;
    for (int i = k->head == NONE ? NONE : w->slots[k->head].next; i != NONE; i = w->slots[i].next) {
        const struct session_request *other = slot_request(&w->slots[i]);
        queue_s +=
            (other->prompt_tokens - (double)cache_match(&k->cache, other) * SESSION_BLOCK_TOKENS) /
            set.rate;
    }
    struct node_cost_input in = {
        .queue_s = queue_s,
        .prompt_tokens = q->prompt_tokens,
        .cached_tokens = (double)held * SESSION_BLOCK_TOKENS,
        .output_tokens = w->output_mean,
        .displaced_tokens = cache_displaced(&k->cache, q, held, w->now_s, set.horizon_s),
        .requests = k->in_flight,
        .requests_typical = in_flight_mean(),
        .context_tokens = k->in_flight_context,
        .tokens_per_s = set.rate,
        .step_context_s = set.step_context_s,
        .displaced_weight = set.displaced_weight,
        .decode_weight = set.decode_weight,
        .weight = 1,
    };
    return node_cost_of(&in).total_s;
}

static unsigned oracle_choose(const struct session_request *q)
{
    double costs[REPLICAS_MAX] = {0}, least = INFINITY;
    for (unsigned r = 0; r < set.replicas; r++) {
        costs[r] = oracle_cost(r, q);
        least = fmin(least, costs[r]);
    }
    unsigned chosen = 0;
    uint64_t equals = 0;
    for (unsigned r = 0; r < set.replicas; r++) {
        if (costs[r] <= least + fmax(0.001, least * set.near_tie) &&
            prng_below(&w->prng, ++equals) == 0)
            chosen = r;
    }
    return chosen;
}

static double cpu_now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct node_router *router_at(unsigned number)
{
    return w->routers.nodes[number].node->router;
}

static unsigned choose(struct slot *s, const struct session_request *q)
{
    if (!w->routed)
        return oracle_choose(q);
    s->router = set.routers > 1 ? (unsigned)prng_below(&w->prng, (uint64_t)set.routers) : 0;
    static struct chain chain;
    chain_of(q, &chain);
    struct node_request request = {
        .session = slice_of_cstr(w->sessions->sessions[s->session].id),
        .chain = &chain,
        .body_bytes = chain.bytes,
        .replica_wanted = -1,
    };
    struct node_decision decision;
    double before = cpu_now_s();
    int err = node_router_choose(router_at(s->router), &request, NULL, now_ms(), &decision);
    w->result.cpu_s += cpu_now_s() - before;
    CHECK(err == ERR_OK);
    s->booking = decision.booking;
    world_touch(&w->routers.nodes[s->router]);
    return decision.replica;
}

static void send(struct slot *s)
{
    const struct session_request *q = slot_request(s);
    s->replica = choose(s, q);
    s->sent_s = w->now_s;
    s->next_s = INFINITY;
    s->next = NONE;
    struct replica *k = &w->replicas[s->replica];
    steps_advance(k);
    k->in_flight++;
    k->in_flight_context += q->prompt_tokens;
    int number = (int)(s - w->slots);
    bool idle = k->head == NONE;
    *(idle ? &k->head : &w->slots[k->tail].next) = number;
    k->tail = number;
    if (idle)
        prefill_begin(k);
}

static void turn_next(struct slot *s)
{
    s->turn++;
    while (s->session == NONE || s->turn >= w->sessions->sessions[s->session].count) {
        s->session = NONE;
        s->next_s = INFINITY;
        if (w->next_session == w->sessions->count)
            return;
        s->session = (int)w->order[w->next_session++];
        s->turn = 0;
    }
    double think_s = slot_request(s)->think_s;
    s->next_s =
        w->now_s + (set.think_max_s > 0 ? fmin(think_s, set.think_max_s) : think_s) / set.speed;
}

static void finish(struct slot *s)
{
    const struct session_request *q = slot_request(s);
    struct replica *k = &w->replicas[s->replica];
    k->in_flight--;
    k->in_flight_context -= q->prompt_tokens;
    k->outputs += q->output_tokens;
    struct result *r = &w->result;
    r->ttft[r->count++] = s->first_s - s->sent_s;
    r->ttft_sum += s->first_s - s->sent_s;
    r->end_sum += w->now_s - s->sent_s;
    r->prompt += q->prompt_tokens;
    r->cached += (double)s->held * SESSION_BLOCK_TOKENS;
    if (q->output_tokens > 1) {
        r->tpot_sum += (w->now_s - s->first_s) / (q->output_tokens - 1);
        r->streams++;
    }
    if (w->routed) {
        struct node_usage usage = {
            .prompt_tokens = q->prompt_tokens,
            .cached_tokens = set.cached_told > 0 ? (int64_t)s->held * SESSION_BLOCK_TOKENS : -1,
            .completion_tokens = q->output_tokens,
        };
        node_router_finish(router_at(s->router), s->booking, NODE_OUTCOME_OK, &usage, now_ms());
        world_touch(&w->routers.nodes[s->router]);
    }
    turn_next(s);
}

static void prefill_done(struct replica *k)
{
    struct slot *s = &w->slots[k->head];
    const struct session_request *q = slot_request(s);
    steps_advance(k);
    k->head = s->next;
    if (k->head == NONE)
        k->tail = NONE;
    s->first_s = w->now_s;
    if (w->routed) {
        node_router_first_byte(router_at(s->router), s->booking, now_ms());
        world_touch(&w->routers.nodes[s->router]);
    }
    if (q->output_tokens > 1) {
        s->step_end = k->steps + q->output_tokens - 1;
        k->context += q->prompt_tokens;
        k->decoding++;
    } else {
        s->step_end = -1;
        finish(s);
    }
    prefill_begin(k);
}

static void decode_done(struct slot *s)
{
    struct replica *k = &w->replicas[s->replica];
    steps_advance(k);
    k->context -= slot_request(s)->prompt_tokens;
    k->decoding--;
    s->step_end = -1;
    finish(s);
}

static void tick(void)
{
    w->next_tick_s += 1;
    if (!w->routed)
        return;
    if (fmod(w->next_tick_s, 5) >= 1)
        return;
    for (unsigned r = 0; r < set.replicas; r++) {
        const struct replica *k = &w->replicas[r];
        struct node_scrape scrape = {.running = k->in_flight,
                                     .waiting = 0,
                                     .cache_usage = -1,
                                     .cache_tokens = set.believed_cache > 0 ? -1 : set.cache_tokens,
                                     .block_tokens = SESSION_BLOCK_TOKENS,
                                     .prefix_queries = k->queries,
                                     .prefix_hits = k->hits,
                                     .prompt_tokens = k->prompts,
                                     .generation_tokens = k->outputs,
                                     .start_time_s = 1,
                                     .sleeping = -1,
                                     .vllm = true};
        for (unsigned i = 0; i < set.routers; i++)
            CHECK(!node_router_scraped(router_at(i), r, &scrape, now_ms()));
    }
}

/* --- the loop ------------------------------------------------------------------------------- */

static void routers_make(const char *policy)
{
    double believed = set.believed_cache > 0 ? set.believed_cache : 1;
    struct node_config config = alone_config();
    struct node_router_config *c = &config.router;
    config.state.generation_ms = (uint32_t)(set.generation_s * 1000);
    c->policy = policy;
    c->seed = (uint64_t)set.seed;
    c->displaced_weight = set.displaced_weight;
    c->decode_weight = set.decode_weight;
    c->reuse_horizon_ms = (uint32_t)(set.horizon_s * 1000);
    c->near_tie = set.near_tie;
    c->cache_tokens = (uint64_t)(set.cache_tokens * believed);
    c->prefill_tokens_per_s *= set.believed_rate;
    if (set.told > 0) {
        c->prefill_tokens_per_s = set.rate * set.believed_rate;
        c->decode_step_ms = 20 / set.speed;
    }
    struct world *routers = &w->routers;
    world_open(routers, (unsigned)set.routers, (uint64_t)set.seed);
    routers->checks = false; /* once, at the end */
    routers->net.delay_min_us = routers->net.delay_max_us = (uint64_t)(set.delay_ms * 1000);
    world_configure(routers, &config, set.shared > 0 && set.routers > 1);
    world_start_all(routers);
    for (unsigned i = 0; i < set.routers; i++) {
        for (unsigned r = 0; r < set.replicas; r++) {
            char name[32];
            int len = snprintf(name, sizeof name, "replica-%u:8000", r);
            CHECK(node_router_name(router_at(i), slice_of(name, (size_t)len), NODE_ENGINE_VLLM) >=
                  0);
            node_router_probed(router_at(i), r, true, false, world_ms(routers));
        }
        world_touch(&routers->nodes[i]);
    }
}

/* Does what comes next. False when nothing is left to do. */
static bool step(void)
{
    double at_s = INFINITY;
    struct slot *sending = NULL, *ending = NULL;
    struct replica *prefilled = NULL;
    for (unsigned i = 0; i < w->slot_count; i++) {
        struct slot *s = &w->slots[i];
        if (s->next_s < at_s) {
            at_s = s->next_s;
            sending = s;
        }
    }
    for (unsigned r = 0; r < set.replicas; r++) {
        struct replica *k = &w->replicas[r];
        if (k->head != NONE && k->prefill_end_s < at_s) {
            at_s = k->prefill_end_s;
            prefilled = k;
        }
    }
    for (unsigned i = 0; i < w->slot_count; i++) {
        struct slot *s = &w->slots[i];
        if (s->session == NONE || s->step_end < 0)
            continue;
        const struct replica *k = &w->replicas[s->replica];
        double end_s = k->at_s + (s->step_end - k->steps) * step_s(k);
        if (end_s < at_s) {
            at_s = end_s;
            ending = s;
            prefilled = NULL;
        }
    }
    if (isinf(at_s))
        return false;
    w->now_s = fmax(w->now_s, fmin(w->next_tick_s, at_s));
    if (w->routed)
        world_run_until(&w->routers, (uint64_t)llround(w->now_s * 1e6));
    if (w->next_tick_s < at_s) {
        tick();
        return true;
    }
    if (ending)
        decode_done(ending);
    else if (prefilled)
        prefill_done(prefilled);
    else if (sending)
        send(sending);
    return true;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Of the tokens that the replicas computed, over their mean. */
static double load_deviation(void)
{
    double sum = 0, squares = 0;
    for (unsigned i = 0; i < set.replicas; i++) {
        double computed = w->replicas[i].queries - w->replicas[i].hits;
        sum += computed;
        squares += computed * computed;
    }
    double mean = sum / set.replicas;
    return sqrt(fmax(squares / set.replicas - mean * mean, 0)) / mean;
}

static void print_predictions(void)
{
    struct buf text = {0};
    CHECK(node_router_replicas_json(router_at(0), now_ms(), &text) == ERR_OK);
    fprintf(stderr, "%.*s\n", (int)text.len, text.at);
    buf_free(&text);
}

static void run(const char *name, const struct coding_sessions *sessions, const unsigned *order,
                unsigned requests, double output_mean)
{
    w = calloc(1, sizeof *w);
    CHECK(w != NULL);
    w->sessions = sessions;
    w->order = order;
    w->output_mean = output_mean;
    w->result.ttft = calloc(requests, sizeof(double));
    CHECK(w->result.ttft != NULL);
    prng_seed(&w->prng, (uint64_t)set.seed);
    if (strcmp(name, "oracle") != 0) {
        w->routed = true;
        routers_make(name);
        w->now_s = w->next_tick_s = (double)w->routers.now_us / 1e6;
    }
    for (unsigned r = 0; r < set.replicas; r++) {
        lru_init(&w->replicas[r].cache, (int)(set.cache_tokens / SESSION_BLOCK_TOKENS));
        w->replicas[r].head = w->replicas[r].tail = NONE;
    }
    w->slot_count = (unsigned)(set.replicas * set.sessions);
    for (unsigned i = 0; i < w->slot_count; i++) {
        w->slots[i] = (struct slot){.session = NONE, .step_end = -1};
        turn_next(&w->slots[i]);
        w->slots[i].next_s +=
            prng_unit(&w->prng) * 60 / set.speed; /* they do not all begin at once */
    }
    while (step())
        ;
    struct result *r = &w->result;
    qsort(r->ttft, r->count, sizeof(double), by_value);
    double by = set.speed;
    printf("| %-12s | %5.1f %% | %6.2f s | %6.2f s | %6.2f s | %5.1f ms | %6.2f s | %6.2f | "
           "%5.1f us |\n",
           name, 100 * r->cached / r->prompt, by * r->ttft_sum / r->count,
           by * r->ttft[r->count / 2], by * r->ttft[r->count * 99 / 100],
           by * 1000 * r->tpot_sum / r->streams, by * r->end_sum / r->count, load_deviation(),
           1e6 * r->cpu_s / r->count);
    fflush(stdout);
    if (w->routed) {
        for (unsigned i = 0; i < set.routers; i++)
            node_router_check(router_at(i));
        if (getenv("ROUTE_BENCH_VERBOSE"))
            print_predictions();
        world_close(&w->routers);
    }
    for (unsigned i = 0; i < set.replicas; i++)
        lru_free(&w->replicas[i].cache);
    free(r->ttft);
    free(w);
}

int main(int argc, char **argv)
{
    for (int i = 2, taken; i < argc; i += taken) {
        taken = setting_take(&argv[i]);
        if (taken == 0) {
            fprintf(stderr, "route_bench: bad setting %s, see tests/bench/route_settings.h\n",
                    argv[i]);
            return 2;
        }
    }
    struct coding_sessions sessions;
    if (argc < 2 || coding_sessions_load(&sessions, argv[1], (unsigned)set.files,
                                         (uint32_t)set.prompt_max) != ERR_OK) {
        fprintf(stderr, "route_bench: needs a directory of coding sessions (tests/bench/route.sh "
                        "unpacks them)\n");
        return 2;
    }
    struct coding_sessions all_sessions = sessions;
    if (set.half > 0) {
        sessions.count /= 2;
        if (set.half > 1)
            sessions.sessions += all_sessions.count - sessions.count;
    }
    set.rate *= set.speed;
    set.step_base_s /= set.speed;
    set.step_context_s /= set.speed;
    unsigned requests = 0;
    double outputs = 0;
    unsigned *order = calloc(sessions.count, sizeof *order);
    CHECK(order != NULL);
    struct prng prng;
    prng_seed(&prng, (uint64_t)set.seed);
    for (unsigned i = 0; i < sessions.count; i++) {
        requests += sessions.sessions[i].count;
        for (unsigned j = 0; j < sessions.sessions[i].count; j++)
            outputs += sessions.sessions[i].requests[j].output_tokens;
        unsigned at = (unsigned)prng_below(&prng, i + 1);
        order[i] = order[at];
        order[at] = i;
    }
    printf(
        "%u sessions, %u requests; %.0f replicas of %.0f tokens, %.0f sessions each, seed %.0f\n",
        sessions.count, requests, set.replicas, set.cache_tokens, set.sessions, set.seed);
    if (set.routers > 1)
        printf("each request at a random one of %.0f routers, %s, links of %g ms\n", set.routers,
               set.shared > 0 ? "which share what they know" : "each for itself", set.delay_ms);
    printf("\n");
    printf("| policy       | cached  | TTFT mean|   p50    |   p99    | TPOT     | to the end | "
           "spread | decision |\n|---|---|---|---|---|---|---|---|---|\n");
    static const char *const all[] = {"round_robin",  "session",     "prefix_hash",
                                      "least_tokens", "cache_aware", "oracle"};
    for (unsigned i = 0; i < ARRAY_LEN(all); i++) {
        if (!set.policy || strcmp(set.policy, all[i]) == 0)
            run(all[i], &sessions, order, requests, outputs / requests);
    }
    free(order);
    coding_sessions_free(&all_sessions);
    return 0;
}
