/* The distribution of work over several engines while routers learn the engines' speeds (fleet.h):
 * real routers with shared knowledge, engines in virtual time. */
#include "node/replica/fleet.h"

#include <math.h>

#include "base/check.h"
#include "base/err.h"
#include "node/replica/speed.h"
#include "node/route/router_internal.h"
#include "tests/lib/alone.h"
#include "tests/lib/test.h"
#include "tests/lib/world/use.h"

enum { ENGINES_MAX = 8, CLIENTS_MAX = 48, PROMPT_TOKENS = 1200, OUTPUT = 32 };

static const double step_s = 0.010;

/* First come, first served; computed prompts are decoded at a steady pace. */
struct engine {
    double tokens_per_s;
    double step_s;         /* 0: step_s */
    unsigned slow_answers; /* the next `slow_answers` answers begin */
    double slow_ms;        /* `slow_ms` later */
    double free_ms;        /* when the queue is empty */
    unsigned served;
};

struct client {
    struct node_router *r; /* the router to ask now; then a random router */
    struct node_decision d;
    bool began;
    unsigned prompt_tokens, output;
    double first_ms, end_ms;
};

struct service {
    struct world world;
    struct engine engines[ENGINES_MAX];
    struct client clients[CLIENTS_MAX];
    unsigned router_count, client_count;
    unsigned prompt_tokens, spread; /* of a prompt, and the largest random addition */
    bool whole;                     /* answers are not streamed */
    uint64_t now_ms, sent;
};

static void start(struct service *s, unsigned routers, unsigned engines, unsigned clients,
                  double prior)
{
    *s = (struct service){
        .router_count = routers, .client_count = clients, .prompt_tokens = PROMPT_TOKENS};
    struct node_config config = alone_config();
    config.router.prior.prefill_tokens_per_s *= prior;
    config.router.prior.decode_step_ms /= prior;
    struct world *w = &s->world;
    world_open(w, routers, 1);
    w->net.delay_min_us = w->net.delay_max_us = 500;
    world_configure(w, &config, true);
    w->checks = false; /* checks of the whole index would take nearly all of the time */
    world_start_all(w);
    s->now_ms = world_ms(w) + 1;
    for (unsigned i = 0; i < routers * engines; i++) {
        struct node_router *r = w->nodes[i / engines].node->router;
        char name[] = {'e', (char)('0' + i % engines)};
        assert_int_equal(node_router_name(r, slice_of(name, sizeof name), NODE_ENGINE_VLLM),
                         i % engines);
        node_router_probed(r, i % engines, (struct node_check){.ok = true}, s->now_ms);
        world_touch(&w->nodes[i / engines]);
    }
    for (unsigned k = 0; k < engines; k++)
        s->engines[k].tokens_per_s = 10000;
}

/* Sends a prompt unknown to all engines. */
static void send(struct service *s, struct client *c)
{
    static struct chain chain;
    s->sent++;
    c->began = false;
    c->prompt_tokens = s->prompt_tokens;
    c->output = OUTPUT;
    if (s->spread > 0) { /* long prompts with short answers, and the reverse */
        c->prompt_tokens += (unsigned)(hash_mix(s->sent) % s->spread);
        c->output += (unsigned)(hash_mix(s->sent + 1000) % (4 * OUTPUT));
    }
    world_prompt(&chain, s->sent, c->prompt_tokens);
    struct node_request request = {
        .chain = &chain, .body_bytes = chain.bytes, .replica_wanted = -1, .answer_whole = s->whole};
    unsigned number = (unsigned)(s->sent % s->router_count);
    c->r = s->world.nodes[number].node->router;
    assert_int_equal(node_router_place(c->r, &request, NULL, s->now_ms, &c->d), ERR_OK);
    world_touch(&s->world.nodes[number]);
    struct engine *e = &s->engines[c->d.replica];
    e->served++;
    double sent_ms = (double)s->now_ms + (double)(s->sent % 10) / 10; /* finer than the clock */
    e->free_ms = fmax(e->free_ms, sent_ms) + c->prompt_tokens / e->tokens_per_s * 1000;
    if (e->slow_answers > 0) {
        e->slow_answers--;
        e->free_ms += e->slow_ms;
    }
    c->first_ms = e->free_ms;
    c->end_ms = c->first_ms + (c->output - 1) * (e->step_s > 0 ? e->step_s : step_s) * 1000;
}

static void begin(struct service *s, struct client *c)
{
    if (s->whole || c->began || c->end_ms == 0 || (double)s->now_ms < floor(c->first_ms))
        return;
    c->began = true;
    node_router_first_byte(c->r, c->d.booking, s->now_ms);
}

static void serve(struct service *s, struct client *c)
{
    begin(s, c);
    if (c->end_ms > 0 && (double)s->now_ms < c->end_ms)
        return;
    if (c->end_ms > 0) {
        if (s->whole)
            node_router_first_byte(c->r, c->d.booking, s->now_ms);
        struct node_usage usage = {c->prompt_tokens, 0, c->output, {0}};
        node_router_finish(c->r, c->d.booking, NODE_OUTCOME_OK, &usage, s->now_ms);
    }
    send(s, c);
    begin(s, c);
}

/* All clients send requests one after the other, until `requests` more were sent. */
static void run(struct service *s, unsigned requests)
{
    uint64_t end = s->sent + requests;
    while (s->sent < end) {
        s->now_ms++;
        world_run_until(&s->world, s->now_ms * 1000);
        for (unsigned i = 0; i < s->client_count && s->sent < end; i++)
            serve(s, &s->clients[i]);
    }
}

/* The engine's share of the next `requests` requests. */
static double share(struct service *s, unsigned engine, unsigned requests)
{
    unsigned before = s->engines[engine].served;
    run(s, requests);
    return (s->engines[engine].served - before) / (double)requests;
}

static void assert_between(double value, double least, double most)
{
    if (!(value >= least && value <= most))
        fail_msg("%g is not between %g and %g", value, least, most);
}

static const struct node_replica *believed(const struct service *s, unsigned engine)
{
    struct node_router *r = s->world.nodes[0].node->router;
    node_router_fleet_believe(r, s->now_ms);
    return &r->replicas[engine];
}

static const unsigned clients[] = {1, 2, 4};

/* Every engine's first answer is slow. An engine was judged by the first answer for ever: the other
 * engine got all the work, so the first engine could never show equal speed. */
static void a_slow_first_answer_starves_no_replica(void **state)
{
    (void)state;
    for (unsigned i = 0; i < ARRAY_LEN(clients); i++) {
        for (unsigned slow = 1; slow <= 2; slow++) {
            struct service s;
            start(&s, 1, 2, clients[i], 1);
            s.engines[0].slow_answers = slow;
            s.engines[0].slow_ms = 2000;
            run(&s, 10);
            assert_between(share(&s, 0, 60), 0.35, 0.65);
            world_close(&s.world);
        }
    }
}

static void a_wrong_prior_starves_no_replica(void **state)
{
    (void)state;
    static const double priors[] = {1 / 30.0, 30};
    for (unsigned p = 0; p < ARRAY_LEN(priors); p++) {
        for (unsigned i = 0; i < ARRAY_LEN(clients); i++) {
            struct service s;
            start(&s, 1, 2, clients[i], priors[p]);
            run(&s, 10);
            assert_between(share(&s, 0, 60), 0.35, 0.65);
            for (unsigned k = 0; k < 2; k++) {
                assert_between(believed(&s, k)->believed.tokens_per_s, 8000, 12500);
                assert_between(believed(&s, k)->believed.step_base_s, 0.5 * step_s, 1.5 * step_s);
            }
            world_close(&s.world);
        }
    }
}

/* Each router sees a part of the samples, and the others' figures. */
static void several_routers_starve_no_replica_either(void **state)
{
    (void)state;
    static const double priors[] = {1 / 30.0, 1, 30};
    for (unsigned p = 0; p < ARRAY_LEN(priors); p++) {
        struct service s;
        start(&s, 4, 4, 8, priors[p]);
        s.engines[0].slow_answers = 2;
        s.engines[0].slow_ms = 2000;
        run(&s, 40);
        unsigned before[4];
        for (unsigned k = 0; k < 4; k++)
            before[k] = s.engines[k].served;
        run(&s, 400);
        for (unsigned k = 0; k < 4; k++)
            assert_between(s.engines[k].served - before[k], 60, 140);
        world_close(&s.world);
    }
}

/* Another machine, or a cache of another kind: a really slower engine gets less. */
static void a_slower_engine_is_recognised_after_a_few_answers(void **state)
{
    (void)state;
    struct service s;
    start(&s, 1, 4, 4, 1);
    s.engines[0].tokens_per_s = 2000;
    run(&s, 40);
    assert_between(believed(&s, 0)->believed.tokens_per_s, 1800, 2200);
    assert_between(believed(&s, 1)->believed.tokens_per_s, 9000, 11000);
    assert_between(share(&s, 0, 200), 0, 0.1);
    world_close(&s.world);
}

/* Rates were learned when answers ended, which take half a minute here. */
static void first_bytes_teach_before_answers_end(void **state)
{
    (void)state;
    struct service s;
    start(&s, 1, 4, 24, 1);
    for (unsigned k = 0; k < 4; k++)
        s.engines[k].step_s = 1;
    s.engines[0].tokens_per_s = 500;
    run(&s, 24);
    for (unsigned i = 0; i < 10000; i++) {
        s.now_ms++;
        world_run_until(&s.world, s.now_ms * 1000);
        for (unsigned c = 0; c < s.client_count; c++)
            begin(&s, &s.clients[c]);
    }
    assert_between(believed(&s, 0)->believed.tokens_per_s, 400, 600);
    assert_between(believed(&s, 1)->believed.tokens_per_s, 8000, 12500);
    world_close(&s.world);
}

/* The answers take five times as long, too. Therefore the engine stayed idle although three others
 * had a queue. If the others have no queue, it stays idle. */
static void a_slower_engine_gets_a_share_by_its_speed(void **state)
{
    (void)state;
    static const struct {
        unsigned routers, clients;
        double least, most;
    } runs[] = {{1, 2, 0, 0.02}, {1, 24, 0.05, 0.08}, {2, 24, 0.05, 0.08}};
    for (unsigned i = 0; i < ARRAY_LEN(runs); i++) {
        struct service s;
        start(&s, runs[i].routers, 4, runs[i].clients, 1);
        s.engines[0].tokens_per_s = 2000;
        for (unsigned k = 0; k < 4; k++)
            s.engines[k].step_s = k == 0 ? 0.1 : 0.02;
        run(&s, 1500);
        assert_between(share(&s, 0, 1500), runs[i].least, runs[i].most); /* 0.0625 would be fair */
        world_close(&s.world);
    }
}

/* The engine was slow for a while: a co-tenant, a throttled card. No report shows when that
 * ended. */
static void an_engine_judged_slow_is_tried_again(void **state)
{
    (void)state;
    struct service s;
    start(&s, 1, 2, 1, 1);
    s.engines[0].tokens_per_s = 500;
    run(&s, 60);
    assert_between(share(&s, 0, 20), 0, 0.05);
    s.engines[0].tokens_per_s = 10000;
    uint64_t before_ms = s.now_ms;
    while (share(&s, 0, 40) < 0.35)
        assert_true(s.now_ms < before_ms + 60 * 1000);
    world_close(&s.world);
}

/* An engine was slow only in decode steps: two minutes after the last answer the engine gets
 * another request. */
static void an_engine_slow_in_decode_is_tried_again(void **state)
{
    (void)state;
    struct service s;
    start(&s, 1, 2, 1, 1);
    s.engines[0].step_s = 5 * step_s;
    run(&s, 60);
    unsigned before = s.engines[0].served;
    uint64_t before_ms = s.now_ms;
    while (s.now_ms < before_ms + 600 * 1000)
        run(&s, 10);
    assert_between(s.engines[0].served - before, 2, 8); /* five times in ten minutes */
    s.engines[0].step_s = step_s;
    before_ms = s.now_ms;
    while (share(&s, 0, 40) < 0.35)
        assert_true(s.now_ms < before_ms + 600 * 1000);
    world_close(&s.world);
}

/* A new pod is believed to be like the fleet at once. The defaults may be far too fast, and all
 * requests would go there. */
static void a_new_replica_is_believed_like_the_fleet(void **state)
{
    (void)state;
    struct service s;
    start(&s, 1, 2, 1, 30);
    run(&s, 20);
    struct node_router *r = s.world.nodes[0].node->router;
    assert_int_equal(node_router_name(r, SLICE("new"), NODE_ENGINE_VLLM), 2);
    node_router_probed(r, 2, (struct node_check){.ok = true}, s.now_ms);
    s.engines[2].tokens_per_s = 10000;
    s.now_ms += 20;
    send(&s, &s.clients[1]);
    assert_between(r->replicas[2].believed.tokens_per_s, 8000, 12500);
    world_close(&s.world);
}

/* Two of three decode slowly, so the fleet counts as slow. A new engine, as fast as the third, was
 * believed to be like the fleet, and got nothing for minutes. */
static void a_new_fast_engine_is_tried_among_slow_engines(void **state)
{
    (void)state;
    struct service s;
    start(&s, 1, 3, 2, 1);
    s.engines[1].step_s = s.engines[2].step_s = 5 * step_s;
    run(&s, 60);
    struct node_router *r = s.world.nodes[0].node->router;
    assert_int_equal(node_router_name(r, SLICE("new"), NODE_ENGINE_VLLM), 3);
    node_router_probed(r, 3, (struct node_check){.ok = true}, s.now_ms);
    s.engines[3].tokens_per_s = s.engines[0].tokens_per_s;
    run(&s, 20);
    assert_between(share(&s, 3, 100), 0.3, 0.7);
    world_close(&s.world);
}

static void a_single_stall_changes_the_belief_little(void **state)
{
    (void)state;
    struct service s;
    start(&s, 1, 1, 1, 1);
    run(&s, 40);
    s.engines[0].slow_answers = 1;
    s.engines[0].slow_ms = 60000;
    run(&s, 3);
    assert_between(believed(&s, 0)->believed.tokens_per_s, 8500, 11000);
    world_close(&s.world);
}

/* A fleet without streaming clients stayed at the defaults for ever. */
static void whole_answers_teach_as_well(void **state)
{
    (void)state;
    static const double priors[] = {1 / 30.0, 1, 30};
    for (unsigned p = 0; p < ARRAY_LEN(priors); p++) {
        for (unsigned routers = 1; routers <= (p == 0 ? 4 : 1); routers += 3) {
            struct service s;
            start(&s, routers, 4, 6, priors[p]);
            s.whole = true;
            s.prompt_tokens = 100;
            s.spread = 4000;
            run(&s, 400);
            for (unsigned k = 0; k < 4; k++) {
                assert_between(believed(&s, k)->believed.tokens_per_s, 6000, 14000);
                assert_between(believed(&s, k)->believed.step_base_s, 0.7 * step_s, 1.4 * step_s);
                assert_between(share(&s, k, 200), 0.12, 0.45);
            }
            world_close(&s.world);
        }
    }
}

/* Slower altogether, as other hardware is: one factor for both speeds shows soon. Slower in prefill
 * alone: this takes more answers than such an engine gets, and is known in part. */
static void a_slower_engine_is_recognised_by_whole_answers(void **state)
{
    (void)state;
    for (unsigned alone = 0; alone < 2; alone++) {
        struct service s;
        start(&s, 1, 4, 8, 1);
        s.whole = true;
        s.prompt_tokens = 100;
        s.spread = 4000;
        s.engines[0].tokens_per_s = 2000;
        s.engines[0].step_s = alone ? step_s : 5 * step_s;
        run(&s, 300);
        assert_between(believed(&s, 0)->believed.tokens_per_s, 1200, alone ? 5500 : 3000);
        assert_between(believed(&s, 1)->believed.tokens_per_s, 6000, 14000);
        world_close(&s.world);
    }
}

/* No prompt has 512 tokens. The clock has milliseconds, and such a prompt takes a third of a
 * millisecond. */
static void short_prompts_teach_as_well(void **state)
{
    (void)state;
    static const double rates[] = {300000, 1000};
    for (unsigned i = 0; i < ARRAY_LEN(rates); i++) {
        struct service s;
        start(&s, 1, 4, 4, 1);
        s.prompt_tokens = 60;
        s.spread = 80;
        for (unsigned k = 0; k < 4; k++) {
            s.engines[k].tokens_per_s = rates[i];
            s.engines[k].step_s = 0.002;
        }
        run(&s, 1000);
        for (unsigned k = 0; k < 4; k++)
            assert_between(believed(&s, k)->believed.tokens_per_s, 0.7 * rates[i], 1.4 * rates[i]);
        world_close(&s.world);
    }
}

/* Ten prompts in a row have images, which the engine fetches first. */
static void ten_slow_answers_change_the_belief_little(void **state)
{
    (void)state;
    struct service s;
    start(&s, 1, 2, 1, 1);
    run(&s, 60);
    s.engines[0].slow_answers = 10;
    s.engines[0].slow_ms = 1000;
    unsigned tries = 0;
    while (s.engines[0].slow_answers > 0 && ++tries < 200)
        run(&s, 1);
    assert_true(tries < 200);
    assert_between(believed(&s, 0)->believed.tokens_per_s, 8500, 11500);
    assert_between(share(&s, 0, 40), 0.3, 0.7);
    world_close(&s.world);
}

static void list(struct service *s, unsigned engine, struct slice model)
{
    for (unsigned i = 0; i < s->router_count; i++)
        assert_int_equal(node_router_models(s->world.nodes[i].node->router, engine, &model, 1),
                         ERR_OK);
}

/* Two large machines serve a model, and two small machines serve another model, which is ten times
 * slower there. A new replica is like the other replicas of the same model. */
static void another_model_has_another_rate(void **state)
{
    (void)state;
    struct service s;
    start(&s, 1, 5, 4, 1);
    for (unsigned k = 0; k < 5; k++)
        list(&s, k, k < 3 ? SLICE("large") : SLICE("small"));
    for (unsigned k = 0; k < 3; k++)
        s.engines[k].tokens_per_s = 1000;
    run(&s, 100);
    struct node_router *r = s.world.nodes[0].node->router;
    for (unsigned i = 0; i < 2; i++) {
        struct slice model = i == 0 ? SLICE("large") : SLICE("small");
        char name[] = {'n', (char)('0' + i)};
        assert_int_equal(node_router_name(r, slice_of(name, sizeof name), NODE_ENGINE_VLLM), 5 + i);
        node_router_probed(r, 5 + i, (struct node_check){.ok = true}, s.now_ms);
        list(&s, 5 + i, model);
    }
    assert_between(believed(&s, 5)->believed.tokens_per_s, 900, 1100);
    assert_between(believed(&s, 6)->believed.tokens_per_s, 9000, 11000);
    world_close(&s.world);
}

/* One engine of eight is five times slower: under load the share matches the speed. */
static void mixed_machines_are_recognised_within_a_minute(void **state)
{
    (void)state;
    for (unsigned routers = 1; routers <= 2; routers++) {
        struct service s;
        start(&s, routers, 8, 48, 1);
        s.engines[0].tokens_per_s = 2000;
        uint64_t start_ms = s.now_ms;
        while (s.now_ms < start_ms + 60000)
            run(&s, 10);
        assert_between(believed(&s, 0)->believed.tokens_per_s, 1700, 2400);
        double deserved = 0.2 / 7.2;
        assert_between(share(&s, 0, 2000), 0.8 * deserved, 1.2 * deserved);
        world_close(&s.world);
    }
}

static void beliefs_do_not_depend_on_the_order_of_replicas(void **state)
{
    (void)state;
    static const double rates[] = {9000, 500, 10000, 11000, 10500, 9500};
    struct node_replica_config config = {
        .prefill_tokens_per_s = 10000, .decode_step_ms = 20, .bytes_per_token = 4};
    static struct node_replica replicas[6];
    struct node_vote scratch[7];
    for (unsigned turn = 0; turn < 6; turn++) {
        for (unsigned i = 0; i < 6; i++) {
            struct node_replica *k = &replicas[(i + turn) % 6];
            node_replica_init(k, SLICE("r"), NODE_ENGINE_VLLM, i, &config);
            for (unsigned n = 0; n < 20; n++)
                assert_true(node_replica_rate_add(k, rates[i] * 2, 2, 1000));
        }
        node_fleet_believe(replicas, 6, &config, scratch, 1000);
        for (unsigned i = 0; i < 6; i++) {
            double expected = i == 1 ? 500 : 10000;
            assert_between(replicas[(i + turn) % 6].believed.tokens_per_s, expected * 0.999,
                           expected * 1.001);
        }
    }
}

/* Equal engines with a few similar answers each. Explained engine by engine, their speeds were
 * 50,000 to 700,000 tokens/s, and the fastest got everything (docs/adr/0036). */
static void few_whole_answers_keep_equal_engines_equal(void **state)
{
    (void)state;
    enum { REPLICAS = 12, ANSWERS = 8 };
    static const double rate = 136000, decode_s = 0.004;
    struct node_replica_config config = {
        .prefill_tokens_per_s = 10000, .decode_step_ms = 20, .bytes_per_token = 4};
    static struct node_replica replicas[REPLICAS];
    struct node_vote scratch[REPLICAS + 1];
    for (unsigned k = 0; k < REPLICAS; k++)
        node_replica_init(&replicas[k], SLICE("r"), NODE_ENGINE_VLLM, k, &config);
    for (unsigned i = 0; i < ANSWERS * REPLICAS; i++) {
        uint64_t now_ms = 1000 + 10 * i, drawn = hash_mix(i + 1);
        double tokens = 9000 + (double)(drawn % 2000), steps = 20 + (double)(drawn / 2000 % 10);
        double late = 1 + (double)(drawn >> 32 & 0xff) / 1024; /* up to a quarter */
        DISCARD(node_replica_whole_add(&replicas[i % REPLICAS],
                                       (tokens / rate + steps * decode_s) * late, tokens, steps, 0,
                                       now_ms));
        node_fleet_believe(replicas, REPLICAS, &config, scratch, now_ms);
        double least = INFINITY, most = 0;
        for (unsigned k = 0; k < REPLICAS; k++) {
            least = fmin(least, replicas[k].believed.tokens_per_s);
            most = fmax(most, replicas[k].believed.tokens_per_s);
        }
        assert_between(most / least, 1, 1.1);
    }
    assert_between(replicas[0].believed.tokens_per_s, 0.7 * rate, 1.2 * rate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_first_answer_starves_no_replica),
        cmocka_unit_test(a_wrong_prior_starves_no_replica),
        cmocka_unit_test(several_routers_starve_no_replica_either),
        cmocka_unit_test(a_slower_engine_is_recognised_after_a_few_answers),
        cmocka_unit_test(an_engine_judged_slow_is_tried_again),
        cmocka_unit_test(an_engine_slow_in_decode_is_tried_again),
        cmocka_unit_test(a_new_replica_is_believed_like_the_fleet),
        cmocka_unit_test(a_new_fast_engine_is_tried_among_slow_engines),
        cmocka_unit_test(a_single_stall_changes_the_belief_little),
        cmocka_unit_test(first_bytes_teach_before_answers_end),
        cmocka_unit_test(a_slower_engine_gets_a_share_by_its_speed),
        cmocka_unit_test(whole_answers_teach_as_well),
        cmocka_unit_test(a_slower_engine_is_recognised_by_whole_answers),
        cmocka_unit_test(short_prompts_teach_as_well),
        cmocka_unit_test(ten_slow_answers_change_the_belief_little),
        cmocka_unit_test(another_model_has_another_rate),
        cmocka_unit_test(mixed_machines_are_recognised_within_a_minute),
        cmocka_unit_test(few_whole_answers_keep_equal_engines_equal),
        cmocka_unit_test(beliefs_do_not_depend_on_the_order_of_replicas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
