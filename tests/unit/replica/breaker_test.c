/* A replica in trouble, and three routers, which learn of each other's back-offs at once. */
#include "node/replica/standing.h"

#include "tests/lib/test.h"

enum { ROUTERS = 3 };

static struct node_replica at[ROUTERS];
static uint64_t now;

static void start(void)
{
    static const struct node_replica_config config = {
        .prefill_tokens_per_s = 1000, .decode_step_ms = 20, .bytes_per_token = 4};
    now = 100000;
    for (unsigned i = 0; i < ROUTERS; i++) {
        node_replica_init(&at[i], SLICE("r"), NODE_ENGINE_VLLM, 1, &config);
        (void)node_replica_probed(&at[i], (struct node_check){.ok = true}, now);
    }
}

/* Every router gets the others' present reports. The routers take turns in the order of their
 * numbers. */
static void gossip(void)
{
    uint8_t reports[ROUTERS];
    for (unsigned i = 0; i < ROUTERS; i++)
        reports[i] = node_breaker_report(&at[i], now);
    for (unsigned i = 0; i < ROUTERS; i++) {
        struct node_breaker_heard h = {0};
        for (unsigned j = 0; j < ROUTERS; j++) {
            if (j != i)
                node_breaker_heard_add(&h, reports[j], at[j].breaker.cured, j < i);
        }
        node_breaker_hear(&at[i], &h, now);
    }
}

static void wait_ms(uint64_t ms)
{
    for (uint64_t end = now + ms; now < end;) {
        now += end - now < 100 ? end - now : 100;
        gossip();
    }
}

static void send(unsigned i)
{
    node_breaker_sent(&at[i], now);
    at[i].load.requests++;
    gossip();
}

static void ends(unsigned i, enum node_outcome outcome)
{
    at[i].load.requests--;
    if (outcome == NODE_OUTCOME_OK) {
        node_breaker_worked(&at[i], now);
        node_replica_answering(&at[i], now, now);
    }
    node_replica_answered(&at[i], outcome, now);
    node_breaker_ended(&at[i], outcome, now);
    gossip();
}

static void answers(unsigned i, enum node_outcome outcome)
{
    send(i);
    ends(i, outcome);
}

/* Bit i: router i avoids the replica. */
static unsigned avoided(void)
{
    unsigned set = 0;
    for (unsigned i = 0; i < ROUTERS; i++)
        set |= (unsigned)node_replica_avoided(&at[i], now) << i;
    return set;
}

static void fails_at(unsigned i)
{
    for (int n = 0; n < 3; n++)
        answers(i, NODE_OUTCOME_ENGINE_ERROR);
}

static void a_single_trial_serves_all_routers(void **state)
{
    (void)state;
    start();
    assert_int_equal(avoided(), 0);
    fails_at(2);
    assert_int_equal(avoided(), 7);
    wait_ms(999);
    assert_int_equal(avoided(), 7);
    wait_ms(1);
    assert_int_equal(avoided(), 6); /* router 0's turn */
    send(0);
    assert_int_equal(avoided(), 7);
    wait_ms(5000);
    assert_int_equal(avoided(), 7); /* no router follows while the trial runs */
    ends(0, NODE_OUTCOME_OK);
    assert_int_equal(avoided(), 0); /* all use it at once */
    wait_ms(60000);
    assert_int_equal(avoided(), 0);
}

static void an_idle_router_leaves_the_trial_to_the_next(void **state)
{
    (void)state;
    start();
    fails_at(0);
    wait_ms(1000);
    assert_int_equal(avoided(), 6);
    wait_ms(NODE_BREAKER_TURN_MS);
    assert_int_equal(avoided(), 4);
    wait_ms(NODE_BREAKER_TURN_MS);
    assert_int_equal(avoided(), 0);
    send(1);
    assert_int_equal(avoided(), 7);
    ends(1, NODE_OUTCOME_OK);
    assert_int_equal(avoided(), 0);
    assert_false(node_replica_backing_off(&at[0], now));
}

static void a_failed_trial_lengthens_all_back_offs(void **state)
{
    (void)state;
    start();
    fails_at(2);
    uint64_t away_ms = 1000;
    for (int round = 0; round < 7; round++) {
        wait_ms(away_ms - 1);
        assert_int_equal(avoided(), 7);
        wait_ms(1);
        assert_int_equal(avoided(), 6);
        answers(0, round % 2 == 0 ? NODE_OUTCOME_ENGINE_ERROR : NODE_OUTCOME_CONNECT_FAILED);
        assert_int_equal(avoided(), 7);
        away_ms = away_ms * 2 < 30000 ? away_ms * 2 : 30000;
    }
    assert_int_equal(node_replica_health(&at[1]), NODE_HEALTH_UP); /* only avoided, not down */
}

static void own_observations_outweigh_reports(void **state)
{
    (void)state;
    start();
    answers(1, NODE_OUTCOME_OK);
    fails_at(0);
    assert_int_equal(avoided(), 7); /* a success, but perhaps from before the failure */
    (void)node_replica_probed(&at[1], (struct node_check){.ok = true}, now);
    assert_int_equal(avoided(), 5); /* no failure since */
    at[1].load.requests = 1;
    ends(1, NODE_OUTCOME_ENGINE_ERROR);
    assert_int_equal(avoided(), 7); /* no longer */
    wait_ms(10000);
    start();
    answers(1, NODE_OUTCOME_OK);
    wait_ms(NODE_BREAKER_WORKED_MS);
    fails_at(0);
    assert_int_equal(avoided(), 7); /* the success is too long ago */
}

/* Router 0 has lost the connection to the engine, which is well. */
static void a_cut_off_routers_back_off_ends_soon_elsewhere(void **state)
{
    (void)state;
    start();
    fails_at(0);
    wait_ms(1000 + NODE_BREAKER_TURN_MS);
    answers(1, NODE_OUTCOME_OK);
    wait_ms(NODE_BREAKER_WORKED_MS);
    fails_at(0);
    assert_false(node_replica_avoided(&at[1], now)); /* router 1 itself has newer evidence */
    assert_true(node_replica_avoided(&at[2], now));
}

/* A health check without an answer keeps no router from the replica for long. */
static void a_warning_fades(void **state)
{
    (void)state;
    start();
    answers(1, NODE_OUTCOME_OK);
    fails_at(0);
    wait_ms(NODE_BREAKER_WARNED_MS - 1);
    assert_true(node_breaker_warned(&at[1], now));
    assert_int_equal(avoided(), 7);
    wait_ms(1);
    assert_int_equal(avoided(), 5);
}

static void a_dead_routers_back_off_ends(void **state)
{
    (void)state;
    start();
    fails_at(0);
    assert_int_equal(avoided(), 7);
    struct node_breaker_heard nobody = {0};
    for (unsigned i = 1; i < ROUTERS; i++)
        node_breaker_hear(&at[i], &nobody, now);
    assert_int_equal(avoided(), 1);
}

/* A draining server finishes earlier requests, and fails new requests. */
static void earlier_requests_do_not_end_a_back_off(void **state)
{
    (void)state;
    start();
    send(2);
    fails_at(2);
    ends(2, NODE_OUTCOME_OK);
    assert_int_equal(avoided() & 4, 4);
    wait_ms(1000);
    fails_at(2);
    wait_ms(1999);
    assert_int_equal(avoided() & 4, 4); /* twice as long */
}

/* Streams from before the trouble are no evidence of a cure. */
static void a_success_report_counts_only_during_a_trial_wait(void **state)
{
    (void)state;
    start();
    fails_at(2);
    at[1].breaker.cured++;
    gossip();
    assert_true(node_replica_avoided(&at[2], now));
    wait_ms(1000);
    assert_true(node_replica_backing_off(&at[2], now)); /* a trial is still to come */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_single_trial_serves_all_routers),
        cmocka_unit_test(an_idle_router_leaves_the_trial_to_the_next),
        cmocka_unit_test(a_failed_trial_lengthens_all_back_offs),
        cmocka_unit_test(own_observations_outweigh_reports),
        cmocka_unit_test(a_cut_off_routers_back_off_ends_soon_elsewhere),
        cmocka_unit_test(a_warning_fades),
        cmocka_unit_test(a_dead_routers_back_off_ends),
        cmocka_unit_test(earlier_requests_do_not_end_a_back_off),
        cmocka_unit_test(a_success_report_counts_only_during_a_trial_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
