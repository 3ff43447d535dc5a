/* Many adapters of skewed popularity on engines that hold a few each, in virtual time: real
 * routers, the engine simulator's own scheduler and slots. Adapters are to stay where they are
 * held. */
#include "tests/lib/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/checkpoint.h"
#include "base/err.h"
#include "base/prng.h"
#include "node/replica/model.h"
#include "node/route/router.h"
#include "tests/engine-sim/model.h"
#include "tests/lib/alone.h"
#include "tests/lib/world/use.h"

enum { ENGINES_MAX = 64, ENGINES = 8, SLOTS = 16, ADAPTERS = 200, REQUESTS_MAX = 40000 };

#define NS_IN_MS 1000000u

struct fleet {
    unsigned routers, requests, engines;
    unsigned burst; /* requests that come at the same moment */
    bool adapters;
    unsigned delay_ms, loss_ppm; /* between routers */
    double per_s;                /* requests */
    double skew;                 /* of popularity: Zipf's exponent */
    double load_s;
    bool told; /* the engines say how many slots they have, and what runs */
};

struct job {
    struct sim_request request;
    unsigned router, adapter, engine;
    struct node_booking booking;
    bool began;
    uint64_t sent_ms;
    uint64_t at_us;   /* when it is sent, since the start */
    struct job *next; /* at its engine */
};

struct result {
    uint64_t loads, best;
    double ttft_s;
    unsigned most, least; /* requests of one engine */
    double spread;        /* deviation over the engines of the tokens computed, as a share */
};

static struct world world;
static struct sim_model *engines[ENGINES_MAX];
static struct job *inside[ENGINES_MAX];
static struct job jobs[REQUESTS_MAX];

static struct node_router *router_at(unsigned i)
{
    return world.nodes[i].node->router;
}

static void name_of(unsigned adapter, char out[16])
{
    (void)snprintf(out, 16, "adapter-%u", adapter);
}

static void workload(const struct fleet *f)
{
    struct prng prng;
    double weights[ADAPTERS], sum = 0, at_s = 0;
    prng_seed(&prng, 7);
    for (unsigned i = 0; i < ADAPTERS; i++)
        sum += weights[i] = pow(i + 1, -f->skew);
    for (unsigned i = 0; i < f->requests; i++) {
        double draw = prng_unit(&prng) * sum;
        unsigned adapter = 0;
        while (adapter + 1 < ADAPTERS && (draw -= weights[adapter]) > 0)
            adapter++;
        if (i % f->burst == 0)
            at_s += -log(1 - prng_unit(&prng)) * f->burst / f->per_s;
        jobs[i] = (struct job){.adapter = adapter,
                               .router = (unsigned)prng_below(&prng, f->routers),
                               .at_us = (uint64_t)(at_s * 1e6)};
    }
}

/* Loads of one engine that has all the slots and evicts what was used least recently, as these do:
 * what a fleet would need where nothing is held twice, and nothing waits. */
static uint64_t best_of(const struct fleet *f)
{
    unsigned used[ADAPTERS] = {0}; /* number of the request and 1; 0: not held */
    unsigned held = 0;
    uint64_t loads = 0;
    for (unsigned i = 0; i < f->requests; i++) {
        bool loaded = used[jobs[i].adapter] == 0;
        used[jobs[i].adapter] = i + 1;
        loads += loaded;
        held += loaded;
        if (held <= ENGINES * SLOTS)
            continue;
        unsigned victim = jobs[i].adapter;
        for (unsigned k = 0; k < ADAPTERS; k++) {
            if (used[k] != 0 && used[k] < used[victim])
                victim = k;
        }
        used[victim] = 0;
        held--;
    }
    return loads;
}

static void routers_start(const struct fleet *f)
{
    struct node_config config = alone_config();
    config.state.index_bytes = 16 << 20;
    world_open(&world, f->routers, 1);
    world.checks = false;
    world.net.delay_min_us = world.net.delay_max_us = 1000;
    world_configure(&world, &config, f->routers > 1);
    world_start_all(&world);
    struct slice ids[ADAPTERS + 1] = {SLICE("base")};
    char names[ADAPTERS][16];
    for (unsigned i = 0; i < ADAPTERS; i++) {
        name_of(i, names[i]);
        ids[i + 1] = slice_of_cstr(names[i]);
    }
    for (unsigned i = 0; i < f->routers; i++) {
        for (unsigned k = 0; k < f->engines; k++) {
            char name[32];
            (void)snprintf(name, sizeof name, "engine-%u:8000", k);
            assert_int_equal(node_router_name(router_at(i), slice_of_cstr(name), NODE_ENGINE_VLLM),
                             k);
            node_router_probed(router_at(i), k, (struct node_check){.ok = true}, world_ms(&world));
            assert_int_equal(node_router_models(router_at(i), k, ids, ADAPTERS + 1), ERR_OK);
        }
        for (unsigned a = 0; a < ADAPTERS; a++)
            node_models_adapter(node_router_model_table(router_at(i)), ids[a + 1], SLICE("base"));
        world_touch(&world.nodes[i]);
    }
}

static void engines_start(const struct fleet *f)
{
    const struct sim_model_config config = {
        .prefill_tokens_per_s = 8000,
        .decode_base_ns = 15.0 * NS_IN_MS,
        .decode_context_token_ns = 30,
        .running_max = 64,
        .block_tokens = 16,
        .cache_blocks = 20000,
        .adapters_max = SLOTS,
        .adapter_load_ns = (uint64_t)(f->load_s * 1e9),
    };
    for (unsigned k = 0; k < f->engines; k++) {
        engines[k] = sim_model_create(&config);
        inside[k] = NULL;
    }
}

/* The engine's time is that of the world. */
static uint64_t now_ns(void)
{
    return world.now_us * 1000;
}

static void moved(struct job *j, struct result *result)
{
    struct node_router *r = router_at(j->router);
    uint64_t now_ms = world_ms(&world);
    if (!j->began) {
        j->began = true;
        result->ttft_s += (double)(now_ms - j->sent_ms) / 1000;
        node_router_first_byte(r, j->booking, now_ms);
    }
    if (j->request.state == SIM_DONE) {
        struct node_usage usage = {.prompt_tokens = (int64_t)j->request.prompt_tokens,
                                   .cached_tokens = (int64_t)j->request.cached_tokens,
                                   .completion_tokens = j->request.generated};
        node_router_finish(r, j->booking, NODE_OUTCOME_OK, &usage, now_ms);
        sim_chain_free(&j->request.chain);
        free(j->request.blocks);
    }
    world_touch(&world.nodes[j->router]);
}

static void engine_run(unsigned k, struct result *result)
{
    struct sim_request *request;
    sim_model_advance(engines[k], now_ns());
    while ((request = sim_model_changed(engines[k])) != NULL)
        moved((struct job *)request, result); /* its first member */
}

static void send(const struct fleet *f, struct job *j, unsigned number)
{
    char name[16];
    struct chain chain;
    name_of(j->adapter, name);
    unsigned tokens = 200 + number * 7919 % 600;
    world_prompt(&chain, number + 1, tokens);
    struct node_request request = {.model = f->adapters ? slice_of_cstr(name) : SLICE("base"),
                                   .chain = &chain,
                                   .body_bytes = chain.bytes,
                                   .replica_wanted = -1};
    struct node_decision d;
    j->sent_ms = world_ms(&world);
    assert_int_equal(node_router_place(router_at(j->router), &request, NULL, j->sent_ms, &d),
                     ERR_OK);
    world_touch(&world.nodes[j->router]);
    j->booking = d.booking;
    j->engine = d.replica;
    j->request = (struct sim_request){.output_seed = number,
                                      .output_tokens = 20 + number * 31 % 80,
                                      .adapter = f->adapters ? j->adapter + 1 : 0};
    sim_chain_init(&j->request.chain, 16, number);
    for (unsigned i = 0; i < tokens; i++)
        sim_chain_add(&j->request.chain, i);
    assert_int_equal(sim_model_submit(engines[d.replica], &j->request, now_ns()), 0);
}

static void scrape(const struct fleet *f)
{
    for (unsigned k = 0; k < f->engines && f->told; k++) {
        struct node_scrape s = node_scrape_unknown;
        s.vllm = true;
        s.start_time_s = 1;
        s.running = sim_model_running(engines[k]);
        s.waiting = sim_model_waiting(engines[k]);
        s.adapter_slots = SLOTS;
        for (unsigned i = 0; i < f->routers; i++)
            (void)node_router_scraped(router_at(i), k, &s, world_ms(&world));
    }
}

static void run(const struct fleet *f, struct result *result)
{
    *result = (struct result){.least = UINT32_MAX};
    workload(f);
    result->best = f->adapters ? best_of(f) : 0;
    double sum = 0, squares = 0;
    engines_start(f);
    routers_start(f);
    world.net.loss = f->loss_ppm / 1e6;
    world.net.delay_min_us = world.net.delay_max_us = f->delay_ms * 1000;
    unsigned counts[ENGINES_MAX] = {0}, sent = 0;
    uint64_t start_us = world.now_us, tick_us = start_us + 1000000;
    for (bool more = true; more;) {
        uint64_t at_us = sent < f->requests ? start_us + jobs[sent].at_us : UINT64_MAX;
        more = at_us != UINT64_MAX;
        for (unsigned k = 0; k < f->engines; k++) {
            uint64_t due_ns = sim_model_next_event_ns(engines[k]);
            uint64_t due_us = due_ns == SIM_NEVER ? UINT64_MAX : (due_ns + 999) / 1000;
            more = more || due_ns != SIM_NEVER;
            at_us = due_us < at_us ? due_us : at_us;
        }
        if (!more)
            break;
        at_us = tick_us < at_us ? tick_us : at_us;
        world_run_until(&world, at_us);
        for (unsigned k = 0; k < f->engines; k++)
            engine_run(k, result);
        if (at_us == tick_us) {
            tick_us += 5000000;
            scrape(f);
        }
        while (sent < f->requests && start_us + jobs[sent].at_us <= world.now_us) {
            send(f, &jobs[sent], sent);
            counts[jobs[sent++].engine]++;
        }
    }
    for (unsigned k = 0; k < f->engines; k++) {
        result->loads += sim_model_counters(engines[k])->adapter_loads;
        result->most = counts[k] > result->most ? counts[k] : result->most;
        result->least = counts[k] < result->least ? counts[k] : result->least;
        double tokens = (double)sim_model_counters(engines[k])->prompt_tokens;
        sum += tokens;
        squares += tokens * tokens;
        sim_model_destroy(engines[k]);
    }
    double mean = sum / f->engines;
    result->spread = sqrt(fmax(squares / f->engines - mean * mean, 0)) / mean;
    result->ttft_s /= f->requests;
    for (unsigned i = 0; i < f->routers; i++)
        node_router_check(router_at(i));
    world_close(&world);
}

/* Skewed popularity: the most wanted one of 200 has a sixth of the requests. */
static void adapters_stay_where_they_are(void **state)
{
    (void)state;
    const struct {
        struct fleet fleet;
        double most; /* loads, against the best */
    } cases[] = {
        {{1, 10000, ENGINES, 1, true, 1, 0, 20, 1.0, 0.5, true}, 1.1}, /* busy */
        {{1, 6000, ENGINES, 1, true, 1, 0, 3, 1.2, 1, true}, 1.1},     /* nearly idle */
        {{4, 10000, ENGINES, 1, true, 1, 0, 3, 1.0, 0.5, true},
         1.2}, /* several routers, each seeing a quarter of it */
        {{4, 10000, ENGINES, 1, true, 1, 0, 20, 1.0, 0.5, true}, 1.2},
        {{4, 10000, ENGINES, 1, true, 1, 0, 60, 1.0, 0.3, true},
         1.25}, /* lines differ by more than a load: wanted adapters were everywhere (1.46) */
        {{8, 10000, ENGINES, 1, true, 1, 0, 40, 1.0, 0.3, true}, 1.2},
    };
    for (size_t i = 0; i < TEST_ROUNDS(ARRAY_LEN(cases)); i++) {
        const struct fleet *f = &cases[i].fleet;
        struct result r;
        run(f, &r);
        print_message("%u routers, %g/s, skew %g, %g s a load: %llu loads of %u, best %llu "
                      "(%.2f); first token after %.3f s; %u to %u requests each\n",
                      f->routers, f->per_s, f->skew, f->load_s, (unsigned long long)r.loads,
                      f->requests, (unsigned long long)r.best, (double)r.loads / (double)r.best,
                      r.ttft_s, r.least, r.most);
        assert_true((double)r.loads <= cases[i].most * (double)r.best);
    }
}

/* First tokens come hardly later than with one router, which sees all, and no engine has more work
 * than the others. */
static void bursts_are_spread(void **state)
{
    (void)state;
    struct fleet f = {1, 16000, 64, 32, false, 1, 0, 400, 1, 0, false};
    struct result alone;
    run(&f, &alone);
    const struct {
        unsigned burst, delay_ms, loss_ppm;
        double later; /* than with one router */
    } cases[] = {{1, 20, 0, 1.2}, {32, 20, 0, 1.3}, {32, 500, 50000, 1.3}};
    for (size_t i = 0; i < TEST_ROUNDS(ARRAY_LEN(cases)); i++) {
        struct result r;
        f.routers = 8;
        f.burst = cases[i].burst;
        f.delay_ms = cases[i].delay_ms;
        f.loss_ppm = cases[i].loss_ppm;
        run(&f, &r);
        print_message("%u routers, bursts of %u, %u ms late, %u ppm lost: first token after "
                      "%.4f s (one router: %.4f s), spread %.3f\n",
                      f.routers, f.burst, f.delay_ms, f.loss_ppm, r.ttft_s, alone.ttft_s, r.spread);
        assert_true(r.ttft_s <= cases[i].later * alone.ttft_s);
        assert_true(r.spread <= 0.06);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adapters_stay_where_they_are),
        cmocka_unit_test(bursts_are_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
