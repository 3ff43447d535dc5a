/* How well the rule chooses from 1 to hundreds of requests that run at once: a real router, the
 * engine simulator's own scheduler and cache, virtual time.
 *
 *     crowd_bench [--users N] [--rate TOKENS] [--output TOKENS] [--policy NAME] ...
 *
 * Users of ten tenants each hold conversations: a tenant's system prompt, then turns of a few
 * hundred tokens. A user asks, waits for the whole answer, thinks, asks again; after some turns a
 * new conversation begins. More users mean more requests at once. One seed gives the same table
 * every time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/checkpoint.h"
#include "base/err.h"
#include "base/prng.h"
#include "node/route/router.h"
#include "tests/engine-sim/model.h"
#include "tests/lib/alone.h"

enum { REPLICAS = 8, USERS_MAX = 4096, TURNS_MAX = 64, BLOCK_TOKENS = 64, BLOCK_BYTES = 256 };

static struct {
    double users, rate, step_ms, context_ns, cache, running, output, turn, system, think_s, seconds;
    double slow; /* times slower is replica 0 */
    double seed, told, whole, scrapes;
    const char *policy;
} set = {
    .users = 32,
    .rate = 10000,
    .step_ms = 15,
    .context_ns = 30,
    .cache = 400000,
    .running = 256,
    .output = 300,
    .turn = 400,
    .system = 1500,
    .think_s = 10,
    .seconds = 300,
    .slow = 1,
    .seed = 1,
    .scrapes = 1,
    .policy = "cache_aware",
};

struct user {
    uint64_t seeds[TURNS_MAX]; /* of the parts of the conversation */
    unsigned sizes[TURNS_MAX];
    unsigned turns, turns_max;
    double next_s, sent_s, first_s;
    unsigned replica;
    struct node_booking booking;
    struct sim_request request;
    uint64_t prompt_tokens;
};

static struct sim_model *engines[REPLICAS];
static struct user users[USERS_MAX];
static struct node_router *router;
static struct prng prng;
static double now_s = 10;
static struct {
    double ttft, end, step, prompt, cached, running, squares;
    unsigned count, seen;
    double *ttfts;
    double work[REPLICAS];
} sum;

static double exponential(double mean)
{
    return -log(1 - prng_unit(&prng)) * mean;
}

static void conversation_begin(struct user *u)
{
    u->turns = 1;
    u->turns_max = 2 + (unsigned)prng_below(&prng, 12);
    u->seeds[0] = prng_below(&prng, 10) + 1;
    u->sizes[0] = (unsigned)set.system;
}

static void turn_add(struct user *u, uint64_t seed, unsigned tokens)
{
    u->seeds[u->turns] = seed;
    u->sizes[u->turns++] = tokens;
}

/* The tokens of the conversation, and the chain that the skimmer would make of them. */
static void prompt_make(struct user *u, struct chain *chain)
{
    sim_chain_init(&u->request.chain, BLOCK_TOKENS, 0);
    for (unsigned i = 0; i < u->turns; i++) {
        for (unsigned t = 0; t < u->sizes[i]; t++)
            sim_chain_add(&u->request.chain, (uint32_t)hash_mix(u->seeds[i] * 1000003 + t));
    }
    *chain = (struct chain){.bytes = u->request.chain.tokens * (BLOCK_BYTES / BLOCK_TOKENS)};
    for (unsigned i = 0; i < CHECKPOINT_MAX && checkpoint_blocks(i) <= u->request.chain.block_count;
         i++) {
        uint32_t blocks = checkpoint_blocks(i);
        chain->points[chain->length++] =
            (struct chain_point){.id = u->request.chain.blocks[blocks - 1] | 1,
                                 .blocks = blocks,
                                 .code = checkpoint_code(i)};
    }
}

static uint64_t now_ms(void)
{
    return (uint64_t)(now_s * 1000);
}

static void send(struct user *u)
{
    static struct chain chain;
    if (u->turns == 0 || u->turns > u->turns_max)
        conversation_begin(u);
    turn_add(u, hash_mix((uint64_t)(now_s * 1e6) + (uint64_t)(u - users)),
             50 + (unsigned)fmin(exponential(set.turn), 20000));
    u->request = (struct sim_request){.output_seed = u->seeds[u->turns - 1]};
    prompt_make(u, &chain);
    u->request.output_tokens = 1 + (unsigned)fmin(exponential(set.output), 4000);
    u->prompt_tokens = u->request.chain.tokens;
    struct node_request request = {.chain = &chain,
                                   .body_bytes = chain.bytes,
                                   .replica_wanted = -1,
                                   .answer_whole = set.whole > 0};
    struct node_decision d;
    CHECK(node_router_choose(router, &request, NULL, now_ms(), &d) == ERR_OK);
    u->replica = d.replica;
    u->booking = d.booking;
    u->sent_s = now_s;
    u->first_s = -1;
    u->next_s = INFINITY;
    CHECK(sim_model_submit(engines[d.replica], &u->request, (uint64_t)(now_s * 1e9)) == 0);
}

static void ended(struct user *u)
{
    struct node_usage usage = {(int64_t)u->prompt_tokens,
                               (int64_t)u->request.cached_tokens,
                               u->request.output_tokens,
                               {0}};
    if (set.whole > 0)
        (void)node_router_first_byte(router, u->booking, now_ms());
    node_router_finish(router, u->booking, NODE_OUTCOME_OK, &usage, now_ms());
    if (now_s > 10 + set.seconds / 3) { /* it has learned something by then */
        double ttft = u->first_s - u->sent_s;
        sum.ttft += ttft;
        sum.ttfts[sum.count++] = ttft;
        sum.end += now_s - u->sent_s;
        sum.prompt += (double)u->prompt_tokens;
        sum.cached += (double)u->request.cached_tokens;
        sum.work[u->replica] += (double)(u->prompt_tokens - u->request.cached_tokens);
    }
    turn_add(u, u->request.output_seed + 7, u->request.output_tokens);
    sim_chain_free(&u->request.chain);
    free(u->request.blocks);
    u->next_s = now_s + exponential(set.think_s);
}

static void changed(unsigned r)
{
    struct sim_request *q;
    while ((q = sim_model_changed(engines[r])) != NULL) {
        struct user *u = (struct user *)((char *)q - offsetof(struct user, request));
        if (u->first_s < 0) {
            u->first_s = now_s;
            if (set.whole <= 0)
                node_router_first_byte(router, u->booking, now_ms());
        }
        if (q->state == SIM_DONE)
            ended(u);
    }
}

static void tick(void)
{
    node_router_tick(router, now_ms());
    for (unsigned r = 0; r < REPLICAS; r++) {
        const struct sim_counters *n = sim_model_counters(engines[r]);
        double running = sim_model_running(engines[r]);
        sum.running += running;
        sum.squares += running * running;
        sum.seen++;
        if (set.scrapes <= 0)
            continue;
        struct node_scrape s = node_scrape_unknown;
        s.running = running;
        s.waiting = sim_model_waiting(engines[r]);
        s.cache_usage = (double)sim_cache_used(sim_model_cache(engines[r])) /
                        sim_cache_blocks(sim_model_cache(engines[r]));
        s.cache_tokens = set.cache;
        s.block_tokens = BLOCK_TOKENS;
        s.prefix_queries = (double)n->prefix_queries;
        s.prefix_hits = (double)n->prefix_hits;
        s.prompt_tokens = (double)n->prompt_tokens;
        s.generation_tokens = (double)n->generation_tokens;
        s.preemptions = (double)n->preemptions;
        s.start_time_s = 1;
        s.vllm = true;
        CHECK(!node_router_scraped(router, r, &s, now_ms()));
    }
}

static void run(void)
{
    double tick_s = now_s + 1;
    while (now_s < 10 + set.seconds) {
        double at_s = tick_s;
        struct user *sending = NULL;
        int engine = -1;
        for (unsigned i = 0; i < (unsigned)set.users; i++) {
            if (users[i].next_s < at_s) {
                at_s = users[i].next_s;
                sending = &users[i];
            }
        }
        for (unsigned r = 0; r < REPLICAS; r++) {
            double event_s = (double)sim_model_next_event_ns(engines[r]) / 1e9;
            if (event_s < at_s) {
                at_s = event_s;
                engine = (int)r;
            }
        }
        now_s = fmax(now_s, at_s);
        if (engine >= 0) {
            sim_model_advance(engines[engine], sim_model_next_event_ns(engines[engine]));
            changed((unsigned)engine);
        } else if (sending) {
            send(sending);
        } else {
            tick();
            tick_s += 1;
        }
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        double *value;
    } settings[] = {
        {"--users", &set.users},        {"--rate", &set.rate},       {"--step", &set.step_ms},
        {"--context", &set.context_ns}, {"--cache", &set.cache},     {"--running", &set.running},
        {"--output", &set.output},      {"--turn", &set.turn},       {"--system", &set.system},
        {"--think", &set.think_s},      {"--seconds", &set.seconds}, {"--slow", &set.slow},
        {"--seed", &set.seed},          {"--whole", &set.whole},     {"--scrapes", &set.scrapes}};
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--policy") == 0)
            set.policy = argv[i + 1];
        for (unsigned k = 0; k < ARRAY_LEN(settings); k++) {
            if (strcmp(argv[i], settings[k].name) == 0)
                *settings[k].value = strtod(argv[i + 1], NULL);
        }
    }
    CHECK(set.users <= USERS_MAX);
    prng_seed(&prng, (uint64_t)set.seed);
    struct node_config config = alone_config();
    config.router.policy = set.policy;
    router = alone_router(&config);
    sum.ttfts = calloc(4000000, sizeof *sum.ttfts);
    CHECK(sum.ttfts != NULL);
    for (unsigned r = 0; r < REPLICAS; r++) {
        double slow = r == 0 ? set.slow : 1;
        struct sim_model_config engine = {
            .prefill_tokens_per_s = set.rate / slow,
            .decode_base_ns = set.step_ms * 1e6 * slow,
            .decode_context_token_ns = set.context_ns * slow,
            .prefill_chunk = 2048,
            .running_max = (uint32_t)set.running,
            .block_tokens = BLOCK_TOKENS,
            .cache_blocks = (uint32_t)(set.cache / BLOCK_TOKENS),
        };
        engines[r] = sim_model_create(&engine);
        char name[32];
        int len = snprintf(name, sizeof name, "replica-%u:8000", r);
        CHECK(node_router_name(router, slice_of(name, (size_t)len), NODE_ENGINE_VLLM) == (int)r);
        node_router_probed(router, r, true, false, now_ms());
    }
    for (unsigned i = 0; i < (unsigned)set.users; i++)
        users[i].next_s = now_s + prng_unit(&prng) * (set.think_s + 5);
    run();
    qsort(sum.ttfts, sum.count, sizeof(double), by_value);
    double mean = sum.running / sum.seen, work = 0;
    for (unsigned r = 0; r < REPLICAS; r++)
        work += sum.work[r];
    printf("%-13s n %5.1f +-%4.2f  answers %6u  cached %4.1f %%  ttft %.3f p50 %.3f p99 %.2f  end "
           "%.2f  share0 %.3f\n",
           set.policy, mean, sqrt(fmax(sum.squares / sum.seen - mean * mean, 0)) / mean, sum.count,
           100 * sum.cached / sum.prompt, sum.ttft / sum.count, sum.ttfts[sum.count / 2],
           sum.ttfts[sum.count * 99 / 100], sum.end / sum.count, sum.work[0] / work);
    return 0;
}
