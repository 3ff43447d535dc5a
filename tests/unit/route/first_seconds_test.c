/* Knowledge of replicas in the first seconds: of replicas without streaming, and of fast but full
 * replicas (docs/adr/0042). */
#include "node/route/router_internal.h"
#include "tests/lib/router_help.h"

enum { TOKENS = 2000, SECOND = 1000 };

static struct node_request whole_prompt(unsigned seed, int replica)
{
    struct node_request request = request_of(prompt(seed, TOKENS));
    request.answer_whole = true;
    request.replica_wanted = replica;
    return request;
}

static struct node_decision send_whole(struct node_router *r, unsigned seed, int replica,
                                       uint64_t now_ms)
{
    struct node_request request = whole_prompt(seed, replica);
    struct node_decision d;
    assert_int_equal(node_router_place(r, &request, NULL, now_ms, &d), ERR_OK);
    return d;
}

static double uncached_s(struct node_router *r, unsigned replica, uint64_t now_ms)
{
    struct node_request request = whole_prompt(1000, -1);
    json_t *root = explain(r, &request, now_ms);
    double seconds = explained(root, replica, "uncached_s");
    json_decref(root);
    return seconds;
}

/* A slow engine gives no evidence before the first answers end: 65 prompts followed the first while
 * others had answered hundreds. */
static void overdue_answers_show_a_slow_engine(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 2);
    for (unsigned i = 0; i < 8; i++)
        (void)send_whole(r, i, 0, START_MS);
    assert_near(uncached_s(r, 0, START_MS + SECOND), uncached_s(r, 1, START_MS + SECOND), 1e-6);
    double late = uncached_s(r, 0, START_MS + 120 * SECOND);
    double fair = uncached_s(r, 1, START_MS + 120 * SECOND);
    /* Eight answers of 0.2 + 256 x 0.02 s each, for 120 s: 180 should have ended. None has, and two
     * count as the least: 180 / 2 = 90. */
    assert_near(late, 90 * fair, 0.1 * late);
    alone_destroy(r);
}

/* The more answers have ended there, the less the open answers prove: some are long. */
static void overdue_answers_count_less_among_many_ended(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 2);
    for (unsigned i = 0; i < 8; i++)
        (void)send_whole(r, i, 0, START_MS);
    uint64_t later = START_MS + 12 * SECOND; /* 18 answers should have ended */
    assert_true(uncached_s(r, 0, later) > 5 * uncached_s(r, 1, later));
    r->replicas[0].room.ended = 8;
    assert_true(uncached_s(r, 0, later) < 2 * uncached_s(r, 1, later));
    r->replicas[0].room.ended = 20;
    assert_near(uncached_s(r, 0, later), uncached_s(r, 1, later), 1e-6);
    alone_destroy(r);
}

/* The predicted time of a prompt at replica 0, once the first byte of a stream came after
 * `first_ms`. `watched`: the rendering of the client's prompts is still unknown. */
static double takes_s(uint64_t first_ms, bool watched)
{
    struct node_router *r = make("cache_aware", 2);
    struct node_request request = request_of(prompt(1, TOKENS));
    struct node_decision d;
    request.replica_wanted = 0;
    if (watched)
        request.rendered = (struct node_rendered){.key = 7, .stamp = 9};
    assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_OK);
    node_router_first_byte(r, d.booking, START_MS + first_ms);
    double seconds = uncached_s(r, 0, START_MS + 3 * SECOND);
    alone_destroy(r);
    return seconds;
}

/* The cache had a prompt with a changing first line that no model sees, unknown to the router. The
 * replica was believed 45 times as fast as the others, and drew two conversations of 100,000
 * tokens. */
static void an_unpredicted_hit_is_no_evidence_of_speed(void **state)
{
    (void)state;
    double prior_s = TOKENS / 10000.0;
    assert_true(takes_s(20, false) < 0.6 * prior_s); /* 100,000 tokens/s */
    assert_near(takes_s(20, true), prior_s, 0.01);
    assert_near(takes_s(2000, true), takes_s(2000, false), 1e-6); /* a hit is never slow */
}

/* Replica 0 decodes twice as fast and has as much as it ever ran; replica 1 is idle. */
static struct node_router *fast_and_full(void)
{
    struct node_router *r = make("cache_aware", 2);
    struct node_decision d[4];
    for (unsigned i = 0; i < 4; i++) {
        d[i] = send_whole(r, i, 0, START_MS);
        node_router_first_byte(r, d[i].booking, START_MS + 900);
    }
    for (unsigned k = 0; k < 2; k++) {
        struct node_replica *replica = &r->replicas[k];
        replica->believed.step_base_s = replica->believed.idle_step_base_s = k == 0 ? 0.02 : 0.04;
        replica->room.ran_anywhere = (struct node_room_amount){4, 4 * 2 * TOKENS};
    }
    r->fleet_stale = false;
    return r;
}

static double decode_s(struct node_router *r, unsigned replica)
{
    struct node_request request = whole_prompt(1000, -1);
    r->fleet_stale = false;
    json_t *root = explain(r, &request, START_MS + SECOND);
    double seconds = explained(root, replica, "decode_s");
    json_decref(root);
    return seconds;
}

/* Engines twice as fast drew all long answers, beyond their capacity, while slower engines were
 * idle. */
static void fast_steps_attract_no_load_beyond_capacity(void **state)
{
    (void)state;
    struct node_router *r = fast_and_full();
    double full_s = decode_s(r, 0), slower_s = decode_s(r, 1);
    assert_true(slower_s > 1); /* 256 steps of 0.04 s, for 0.02 s and a fifth */
    assert_true(full_s > slower_s);
    for (unsigned k = 0; k < 2; k++)
        r->replicas[k].room.ran_anywhere = (struct node_room_amount){64, 64 * 2 * TOKENS};
    assert_true(decode_s(r, 0) < slower_s - 1); /* room is left: the speed counts */
    alone_destroy(r);
}

/* The other replica is no better place if the answer would begin later there. */
static void a_later_start_elsewhere_outweighs_capacity(void **state)
{
    (void)state;
    struct node_router *r = fast_and_full();
    double full_s = decode_s(r, 0);
    struct node_request line = request_of(prompt(100, 60000));
    line.replica_wanted = 1;
    struct node_decision d;
    assert_int_equal(node_router_place(r, &line, NULL, START_MS + SECOND, &d), ERR_OK);
    r->replicas[1].room.ran_anywhere = (struct node_room_amount){64, 1e6};
    assert_true(decode_s(r, 0) < full_s - 1);
    alone_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overdue_answers_show_a_slow_engine),
        cmocka_unit_test(overdue_answers_count_less_among_many_ended),
        cmocka_unit_test(an_unpredicted_hit_is_no_evidence_of_speed),
        cmocka_unit_test(fast_steps_attract_no_load_beyond_capacity),
        cmocka_unit_test(a_later_start_elsewhere_outweighs_capacity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
