/* Several routers' knowledge of a shared replica, in virtual time. */
#include <math.h>
#include <stdio.h>

#include "base/check.h"
#include "node/replica/speed.h"
#include "node/route/router_internal.h"
#include "tests/lib/test.h"
#include "tests/lib/world/use.h"

enum { S = 1000000, MS = 1000 };

/* --- an engine -------------------------------------------------------------------------------- */

/* First come, first served: the engine computes prompts one after the other, and without prompts it
 * decodes all streams together. */
enum { JOBS = 12 };
static const double rate = 20000, step_base_s = 0.010, step_context_s = 50e-9;

struct job {
    unsigned router;
    struct node_decision d;
    uint64_t number; /* in the order of arrival; 0: none */
    double tokens, left, steps;
};

struct engine {
    struct job jobs[JOBS];
    uint64_t came;
    unsigned output; /* tokens of an answer: the more, the less time goes into prompts */
    double rate;     /* 0: rate */
};

static void engine_send(struct engine *e, struct world *c, struct job *job)
{
    static struct chain chain;
    e->came++;
    unsigned tokens = 2000 + (unsigned)(e->came % 5) * 1000;
    world_prompt(&chain, e->came, tokens);
    *job = (struct job){.router = (unsigned)(e->came % c->count),
                        .number = e->came,
                        .tokens = tokens,
                        .left = tokens};
    job->d = world_choose(c, job->router, &chain);
}

static struct job *engine_first(struct engine *e)
{
    struct job *first = NULL;
    for (unsigned i = 0; i < JOBS; i++) {
        struct job *job = &e->jobs[i];
        if (job->left > 0 && (first == NULL || job->number < first->number))
            first = job;
    }
    return first;
}

static void engine_decode(struct engine *e, struct world *c, double seconds)
{
    double context = 0;
    for (unsigned i = 0; i < JOBS; i++)
        context += e->jobs[i].tokens;
    for (unsigned i = 0; i < JOBS; i++) {
        struct job *job = &e->jobs[i];
        job->steps += seconds / (step_base_s + step_context_s * context);
        if (job->number == 0 || job->steps < e->output)
            continue;
        struct node_usage usage = {(int64_t)job->tokens, 0, e->output + 1, {0}};
        world_finish(c, job->router, job->d, &usage);
        engine_send(e, c, job);
    }
}

static void engine_run(struct engine *e, struct world *c, unsigned ms)
{
    for (unsigned i = 0; i < ms; i++) {
        if (i < JOBS * 50 && i % 50 == 0 && e->jobs[i / 50].number == 0)
            engine_send(e, c, &e->jobs[i / 50]);
        world_run(c, 1 * MS);
        struct job *first = engine_first(e);
        if (first == NULL) {
            engine_decode(e, c, 0.001);
            continue;
        }
        first->left -= (e->rate > 0 ? e->rate : rate) / 1000;
        if (first->left <= 0) {
            node_router_first_byte(c->nodes[first->router].node->router, first->d.booking,
                                   world_ms(c));
            node_replication_run(c->nodes[first->router].node->replication, c->now_us);
        }
    }
}

/* --- tests ------------------------------------------------------------------------------------ */

static void start(struct world *c, unsigned routers)
{
    world_open(c, routers, 1);
    for (unsigned i = 0; i < routers; i++)
        world_start(c, i);
    world_settle(c);
    for (unsigned i = 0; i < routers; i++)
        (void)world_replica(c, i, "replica-0:8000");
    world_run(c, 500 * MS);
}

static struct node_replica *replica_at(struct world *c, unsigned router)
{
    return &c->nodes[router].node->router->replicas[0];
}

static void assert_near(double actual, double expected, double share)
{
    if (fabs(actual - expected) > share * expected)
        fail_msg("%g is not %g", actual, expected);
}

/* The replica always has work from all routers; each router still learns from its own timings. */
static void own_timings_teach_despite_other_routers_load(void **state)
{
    (void)state;
    static const unsigned outputs[] = {50, 400}; /* prompts take 4/5 of the time, or 1/3 */
    for (unsigned run = 0; run < ARRAY_LEN(outputs); run++) {
        struct world c;
        struct engine e = {.output = outputs[run]};
        start(&c, 2 + run);
        engine_run(&e, &c, 40000);
        for (unsigned i = 0; i < c.count; i++) {
            const struct node_replica *k = replica_at(&c, i);
            assert_true(k->shown.rate.samples > NODE_LEARNED_FEW);
            assert_near(k->believed.tokens_per_s, rate, 0.05);
            if (run == 0)
                continue; /* no evidence of the pace */
            assert_true(k->shown.pace.samples > NODE_LEARNED_FEW);
            double context = JOBS * 4000.0; /* typical */
            assert_near(node_believed_step_s(&k->believed, context),
                        step_base_s + step_context_s * context, 0.1);
        }
        world_close(&c);
    }
}

/* A queue formed before the replica was known to be five times slower than believed. A fifth of the
 * prompts' time was deducted from the first streams' time, and the rest was believed to be steps:
 * 0.4 s instead of 0.012 s. No stream between so many prompts ever corrected this. */
static void a_queue_at_a_slow_engine_is_not_its_pace(void **state)
{
    (void)state;
    struct world c;
    struct engine e = {.output = 50, .rate = 2000};
    start(&c, 1);
    engine_run(&e, &c, 60000);
    const struct node_replica *k = replica_at(&c, 0);
    assert_near(k->believed.tokens_per_s, e.rate, 0.05);
    assert_true(k->believed.step_base_s < 0.03);
    world_close(&c);
}

/* Requests one after the other, at each router in turn: first a prompt of 5,000 tokens, then a
 * repetition of the prompt a given number of requests before. The repeated prompt is cached if the
 * engine has room for all prompts in between. `told`: answers report cached tokens; otherwise only
 * the engine's counters do, which each router reads. */
enum { PROMPTS_REPORTED = 80, PROMPTS_MAX = 1000 };
struct service {
    struct world c;
    uint64_t came, seed;
    double queries, hits;
    unsigned held; /* prompts with room in the engine's cache: the last used */
    uint64_t used[PROMPTS_MAX];
};

static void scrape_all(struct service *w)
{
    struct node_scrape s = node_scrape_unknown;
    s.prefix_queries = s.prompt_tokens = w->queries;
    s.prefix_hits = w->hits;
    s.start_time_s = 1;
    s.cache_tokens = PROMPTS_REPORTED * 5000;
    for (unsigned i = 0; i < w->c.count; i++) {
        if (w->c.nodes[i].up)
            (void)node_router_scraped(w->c.nodes[i].node->router, 0, &s, world_ms(&w->c));
    }
}

static bool is_held(const struct service *w, uint64_t seed)
{
    unsigned since = 0;
    for (unsigned i = 0; i < PROMPTS_MAX; i++)
        since += w->used[i] > w->used[seed];
    return w->used[seed] != 0 && since < w->held;
}

static void ask(struct service *w, uint64_t seed, bool told)
{
    static struct chain chain;
    world_prompt(&chain, 100 + seed, 5000);
    bool hit = is_held(w, seed);
    w->used[seed] = w->came + 1;
    unsigned router = (unsigned)(w->came++ % w->c.count);
    if (!w->c.nodes[router].up)
        router = (router + 1) % w->c.count;
    struct node_decision d = world_choose(&w->c, router, &chain);
    world_run(&w->c, 500 * MS);
    int64_t cached = hit ? 4992 : 0;
    struct node_usage usage = {5000, told ? cached : -1, 10, {0}};
    world_finish(&w->c, router, d, &usage);
    w->queries += 5000;
    w->hits += (double)cached;
    world_run(&w->c, 500 * MS);
    if (w->came % 5 == 0)
        scrape_all(w);
}

/* Every other request repeats an earlier request. */
static void service_run(struct service *w, unsigned requests, bool told)
{
    for (unsigned i = 0; i < requests / 2; i++) {
        ask(w, ++w->seed, told);
        uint64_t back = 1 + w->seed * 29 % PROMPTS_REPORTED;
        if (back < w->seed)
            ask(w, w->seed - back, told);
    }
}

static double factor_after(unsigned routers, unsigned router, bool told)
{
    struct service w = {.held = PROMPTS_REPORTED / 4};
    start(&w.c, routers);
    scrape_all(&w);
    service_run(&w, 400, told);
    double factor = replica_at(&w.c, router)->belief.factor;
    world_close(&w.c);
    return factor;
}

/* A quarter of the reported size. Each of four routers sees a quarter of the answers, and gets the
 * others' evidence. From counters a router knows only the expected hits of its own requests. */
static void the_cache_size_is_learned_by_one_or_four_routers(void **state)
{
    (void)state;
    assert_near(factor_after(1, 0, true), 0.25, 0.2);
    assert_true(factor_after(1, 0, false) < 0.5);
    double four = factor_after(4, 3, true);
    assert_true(four > 0.2 && four < 0.6);
}

/* A router that comes or goes brings or takes sums: the resulting change is no evidence. */
static void a_window_in_which_the_routers_change_is_skipped(void **state)
{
    (void)state;
    struct service w = {.held = PROMPTS_REPORTED / 4};
    start(&w.c, 3);
    scrape_all(&w);
    service_run(&w, 60, false);
    struct node_replica *k = replica_at(&w.c, 0);
    assert_true(k->cache.others.who != 0 && k->cache.others.sums.prompt_tokens > 50000);
    uint64_t who = k->cache.others.who;
    world_kill(&w.c, 2);
    world_run(&w.c, 15 * S);
    double before = k->belief.factor;
    w.queries += 20000; /* unknown to all routers */
    scrape_all(&w);
    assert_true(k->cache.others.who != who && k->cache.window.who == k->cache.others.who);
    assert_true(k->cache.window.queries == w.queries);
    assert_true(k->belief.factor == before);
    service_run(&w, 300, true); /* and continues with the remaining routers */
    assert_true(k->belief.factor < 0.7);
    world_close(&w.c);
}

/* --- figures that are shared ----------------------------------------------------------------- */

static const double text_ratio = 7; /* bytes per token; 4 are believed at first */

/* Prompts one after the other at router `router`, of a model of the replica, computed at
 * `tokens_per_s`. */
static void work(struct world *c, unsigned router, unsigned requests, double tokens_per_s)
{
    static struct chain chain;
    static uint64_t seed = 1000;
    for (unsigned i = 0; i < requests; i++) {
        world_prompt(&chain, ++seed, 8000);
        double tokens = (double)chain.bytes / text_ratio;
        struct node_request request = {.model = SLICE("m"), .chain = &chain, .replica_wanted = -1};
        struct world_node *n = &c->nodes[router];
        struct node_decision d;
        assert_int_equal(node_router_place(n->node->router, &request, NULL, world_ms(c), &d), 0);
        node_replication_run(n->node->replication, c->now_us);
        world_run(c, (uint64_t)(tokens / tokens_per_s * S));
        node_router_first_byte(n->node->router, d.booking, world_ms(c));
        world_run(c, 300 * MS); /* 10 ms a step */
        struct node_usage usage = {(int64_t)tokens, 0, 31, {0}};
        world_finish(c, router, d, &usage);
    }
}

static void list_models(struct world *c, unsigned router)
{
    struct slice model = SLICE("m");
    assert_int_equal(node_router_models(c->nodes[router].node->router, 0, &model, 1), 0);
}

static void start_working(struct world *c, unsigned routers)
{
    start(c, routers);
    for (unsigned i = 0; i < routers; i++)
        list_models(c, i);
}

static double model_ratio(struct world *c, unsigned router)
{
    const struct node_router *r = c->nodes[router].node->router;
    return node_ratio_value(&node_models_row(r->models, SLICE("m"))->bytes_per_token);
}

static void restart(struct world *c, unsigned router)
{
    world_kill(c, router);
    world_run(c, 15 * S);
    world_start(c, router);
    world_settle(c);
    (void)world_replica(c, router, "replica-0:8000");
    list_models(c, router);
    world_run(c, 3 * S);
}

static void a_learned_token_ratio_reaches_all_routers(void **state)
{
    (void)state;
    struct world c;
    start_working(&c, 3);
    for (unsigned i = 0; i < 3; i++)
        assert_near(model_ratio(&c, i), 4, 1e-9);
    work(&c, 0, 8, 20000);
    world_run(&c, 3 * S);
    for (unsigned i = 0; i < 3; i++)
        assert_near(model_ratio(&c, i), text_ratio, 0.05);
    /* Few own samples do not outweigh a doubtful figure, many do. */
    struct node_model *row = node_models_row(c.nodes[1].node->router->models, SLICE("m"));
    node_model_bytes_believe(row, 4);
    static const struct chain_content unknown;
    static const int64_t untold[CHAIN_MEDIA];
    node_model_bytes_add(row, 300, &unknown, 70, untold);
    world_run(&c, 3 * S);
    assert_near(model_ratio(&c, 1), text_ratio, 0.05);
    for (unsigned i = 0; i < NODE_LEARNED_FEW; i++)
        node_model_bytes_add(row, 1000000, &unknown, 2e5, untold);
    double own = model_ratio(&c, 1);
    world_run(&c, 3 * S);
    assert_true(own < 6 && model_ratio(&c, 1) == own);
    world_close(&c);
}

struct held {
    double rate, bytes, step_s, factor;
    uint64_t rate_samples, bytes_samples, pace_samples;
};

static struct held held_at(struct world *c, unsigned router)
{
    const struct node_replica *k = replica_at(c, router);
    return (struct held){.rate = k->believed.tokens_per_s,
                         .bytes = node_ratio_value(&k->cache.bytes_per_token),
                         .step_s = node_believed_step_s(&k->believed, 8000),
                         .factor = k->belief.factor,
                         .rate_samples = k->shown.rate.samples,
                         .bytes_samples = k->cache.bytes_samples,
                         .pace_samples = k->shown.pace.samples};
}

static void assert_held(const struct held *now, const struct held *then, double share)
{
    assert_near(now->rate, then->rate, share);
    assert_near(now->bytes, then->bytes, share);
    assert_near(now->step_s, then->step_s, share);
    assert_true(now->rate_samples > 0 && now->rate_samples <= then->rate_samples);
    assert_true(now->bytes_samples > 0 && now->bytes_samples <= then->bytes_samples);
    assert_true(now->pace_samples > 0 && now->pace_samples <= then->pace_samples);
}

/* Makes all routers believe in half the size: each applies the others' corrections. */
static void believe_half(struct world *c)
{
    for (unsigned i = 0; i < c->count; i++) {
        struct node_replica *k = replica_at(c, i);
        k->belief.factor = 0.5;
        k->cache.size_learned = true;
        k->cache.size_held = (struct node_size_held){.log = 4 * log(0.5), .weight = 4};
    }
}

/* All restart in turn; only the first had learned anything by itself. */
static void learned_values_survive_a_rolling_restart(void **state)
{
    (void)state;
    struct world c;
    start_working(&c, 3);
    work(&c, 0, 40, 20000);
    believe_half(&c);
    world_run(&c, 3 * S);
    struct held then = held_at(&c, 0);
    assert_near(then.rate, 20000, 0.05);
    assert_near(then.bytes, text_ratio, 0.02);
    assert_near(then.step_s, 0.010, 0.1);
    assert_int_equal(then.rate_samples, 40);
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < 3; i++) {
            restart(&c, i);
            struct held now = held_at(&c, i);
            assert_held(&now, &then, 0.021);
            assert_near(model_ratio(&c, i), text_ratio, 0.03);
            assert_true(now.factor > 0.49 && now.factor < 0.7); /* returns to 1 slowly */
        }
    }
    /* Received values weigh as if learned here. */
    work(&c, 2, 1, 5000);
    assert_near(held_at(&c, 2).rate, then.rate, 0.1);
    world_close(&c);
}

/* Repeated again and again, without anything new. */
static void an_echo_changes_nothing(void **state)
{
    (void)state;
    struct world c;
    start_working(&c, 3);
    work(&c, 0, 30, 20000);
    work(&c, 1, 7, 18000);
    world_run(&c, 3 * S);
    struct held then[3];
    for (unsigned i = 0; i < 3; i++) {
        then[i] = held_at(&c, i);
        assert_true(then[i].rate_samples <= 37 && then[i].bytes_samples <= 37);
        assert_true(then[i].pace_samples <= 37);
    }
    /* If two figures have equally many samples, no router takes the other's: they would swap for
     * ever. */
    node_speed_hear(&replica_at(&c, 2)->shown.rate, 10000, then[1].rate_samples, world_ms(&c));
    world_run(&c, 2 * S);
    then[2] = held_at(&c, 2);
    for (unsigned s = 0; s < 120; s++) {
        for (unsigned i = 0; i < 3; i++) {
            struct node_replica *k = replica_at(&c, i);
            c.nodes[i].node->router->slots[0].told.learned = (struct crdt_learned){0};
            k->cache.sums.told += s % 3 == i; /* so that the row is news */
        }
        world_run(&c, 1 * S);
    }
    for (unsigned i = 0; i < 3; i++) {
        struct held now = held_at(&c, i);
        assert_true(now.rate_samples <= 37 && now.bytes_samples <= 37 && now.pace_samples <= 37);
        assert_held(&now, &then[i], 0.001);
        assert_int_equal(now.rate_samples, then[1].rate_samples);
    }
    world_close(&c);
}

/* Seen by a router with few samples, while the routers with many have nothing to do. */
static void all_routers_follow_a_replicas_slowdown(void **state)
{
    (void)state;
    struct world c;
    start_working(&c, 3);
    work(&c, 0, 120, 20000);
    world_run(&c, 3 * S);
    for (unsigned i = 0; i < 3; i++)
        assert_near(held_at(&c, i).rate, 20000, 0.05);
    /* 90 s of prefill, of which the last 20 count most. */
    work(&c, 1, 100, 5000);
    world_run(&c, 3 * S);
    for (unsigned i = 0; i < 3; i++)
        assert_near(held_at(&c, i).rate, 5000, 0.1);
    assert_true(held_at(&c, 0).rate_samples <= 220);
    /* Then another router takes over from there. */
    work(&c, 2, 100, 20000);
    world_run(&c, 3 * S);
    for (unsigned i = 0; i < 3; i++)
        assert_true(held_at(&c, i).rate > 12000);
    assert_true(held_at(&c, 0).rate_samples <= 320);
    world_close(&c);
}

/* Otherwise a router that has not yet noticed would report the old size to the others, and then get
 * it back. */
static void a_lost_cache_resets_its_learned_size(void **state)
{
    (void)state;
    struct world c;
    start_working(&c, 3);
    struct node_scrape scrape = node_scrape_unknown;
    for (unsigned life = 1; life <= 2; life++) {
        scrape.start_time_s = 1000 * life;
        for (unsigned i = 0; i < 3; i++) {
            (void)node_router_scraped(c.nodes[i].node->router, 0, &scrape, world_ms(&c));
            node_replication_run(c.nodes[i].node->replication, c.now_us);
            world_run(&c, 200 * MS);
        }
        if (life == 1)
            believe_half(&c);
        world_run(&c, 5 * S);
        for (unsigned i = 0; i < 3; i++)
            assert_near(held_at(&c, i).factor, life == 1 ? 0.5 : 1, 0.05);
    }
    world_close(&c);
}

/* All routers had the prompt in their index within milliseconds; the cache never had the prompt. */
static void a_refused_prompt_is_void_at_all_routers(void **state)
{
    (void)state;
    struct world c;
    static struct chain chain;
    start(&c, 3);
    for (unsigned i = 0; i < 3; i++) { /* all have something to report */
        world_prompt(&chain, 10 + i, 4000);
        struct node_usage usage = {4000, 0, 10, {0}};
        world_finish(&c, i, world_choose(&c, i, &chain), &usage);
    }
    world_run(&c, 3 * S);
    world_prompt(&chain, 1, 40000);
    struct node_decision d = world_choose(&c, 0, &chain);
    world_run(&c, 1 * S);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(replica_at(&c, i)->belief.void_count, 0);
    node_router_finish(c.nodes[0].node->router, d.booking, NODE_OUTCOME_OK, NULL, world_ms(&c));
    world_run(&c, 3 * S);
    for (unsigned i = 0; i < 3; i++) {
        const struct node_belief *b = &replica_at(&c, i)->belief;
        assert_int_equal(b->void_count, 1);
        assert_int_equal(b->voids[0].blocks, chain.points[chain.length - 1].blocks);
    }
    world_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_timings_teach_despite_other_routers_load),
        cmocka_unit_test(a_queue_at_a_slow_engine_is_not_its_pace),
        cmocka_unit_test(the_cache_size_is_learned_by_one_or_four_routers),
        cmocka_unit_test(a_window_in_which_the_routers_change_is_skipped),
        cmocka_unit_test(a_learned_token_ratio_reaches_all_routers),
        cmocka_unit_test(learned_values_survive_a_rolling_restart),
        cmocka_unit_test(a_refused_prompt_is_void_at_all_routers),
        cmocka_unit_test(an_echo_changes_nothing),
        cmocka_unit_test(all_routers_follow_a_replicas_slowdown),
        cmocka_unit_test(a_lost_cache_resets_its_learned_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
