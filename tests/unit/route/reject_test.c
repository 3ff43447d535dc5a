/* Replicas that reject what others accept: where requests go, at one router and at several. */
#include "base/check.h"
#include "node/route/router_internal.h"
#include "tests/lib/router_help.h"

static struct node_rejection rejection(unsigned replica, uint64_t now_ms)
{
    return (struct node_rejection){
        .replica = replica, .kind = 8, .status = 401, .client = 7, .sent_ms = now_ms};
}

static void caught(struct node_router *r, unsigned replica, uint64_t now_ms)
{
    struct node_rejection x = rejection(replica, now_ms);
    assert_true(node_reject_is_worth(node_router_reject_own(r, &x)));
    node_router_reject_doubt(r, &x, true);
    assert_true(node_router_reject_contradicted(r, &x, now_ms));
    node_router_reject_doubt(r, &x, false);
}

/* How many of so many requests, which stay there, go to each. */
static void place(struct node_router *r, unsigned requests, bool again, uint64_t now_ms,
                  unsigned *got)
{
    struct node_decision d[64];
    for (unsigned i = 0; i < requests; i++) {
        struct node_request request = request_of(prompt(100 + i, 2000));
        request.kind = 8;
        request.again = again;
        assert_int_equal(node_router_choose(r, &request, NULL, now_ms, &d[i]), ERR_OK);
        got[d[i].server]++;
    }
    for (unsigned i = 0; i < requests; i++)
        node_router_finish(r, d[i].booking, NODE_OUTCOME_NOT_SENT, NULL, now_ms);
}

static void what_rejects_gets_nothing(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 4);
    unsigned got[4] = {0};
    caught(r, 1, START_MS);
    place(r, 32, true, START_MS, got);
    assert_int_equal(got[1], 0);
    struct node_standing s = node_router_replica_standing(r, 1, START_MS);
    assert_int_equal(s.why, NODE_STANDING_REJECTS);
    assert_true(s.avoided);
    assert_int_equal(s.until_ms, START_MS + NODE_REJECT_BACKOFF_MS);
    node_router_check(r);
    /* What cannot be sent again is no trial; one that can is, and only one. */
    uint64_t later = START_MS + NODE_REJECT_BACKOFF_MS;
    s = node_router_replica_standing(r, 1, later);
    assert_int_equal(s.why, NODE_STANDING_REJECTS);
    assert_false(s.avoided);
    place(r, 32, false, later, got);
    assert_int_equal(got[1], 0);
    place(r, 32, true, later, got);
    assert_int_equal(got[1], 1);
    assert_true(node_router_accepted(r, 1, 8, 7, later));
    place(r, 32, true, later, got);
    assert_true(got[1] > 1);
    alone_destroy(r);
}

/* More than half are caught: those that were first stay avoided, the others get one request each
 * 250 ms, and are free with the first that they accept. */
static void at_most_half_are_avoided(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 4);
    unsigned got[4] = {0};
    for (unsigned i = 0; i < 3; i++)
        caught(r, i, START_MS + i);
    place(r, 32, true, START_MS + 10, got);
    assert_int_equal(got[0] + got[1], 0);
    assert_int_equal(got[2], 1);
    place(r, 32, true, START_MS + 10 + NODE_REJECT_PACE_MS - 1, got);
    assert_int_equal(got[2], 1);
    place(r, 32, true, START_MS + 10 + NODE_REJECT_PACE_MS, got);
    assert_int_equal(got[2], 2);
    assert_int_equal(got[0] + got[1], 0);
    alone_destroy(r);
}

static void where_it_is_the_only_one_it_is_used(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 2);
    unsigned got[2] = {0};
    caught(r, 0, START_MS);
    node_router_replica_drain(r, 1, true);
    place(r, 8, true, START_MS + 1, got);
    assert_int_equal(got[0], 8);
    alone_destroy(r);
}

static void another_process_is_another_replica(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 2);
    unsigned got[2] = {0};
    caught(r, 0, START_MS);
    node_router_probed(r, 0, false, true, START_MS + 1);
    node_router_probed(r, 0, true, false, START_MS + 2);
    assert_false(node_router_rejects(r, 0, 8));
    assert_int_equal(r->rejecting_count, 0);
    place(r, 8, true, START_MS + 20000, got);
    assert_true(got[0] > 0);
    alone_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_rejects_gets_nothing),
        cmocka_unit_test(at_most_half_are_avoided),
        cmocka_unit_test(where_it_is_the_only_one_it_is_used),
        cmocka_unit_test(another_process_is_another_replica),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
