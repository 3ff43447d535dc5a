/* Simultaneous requests with an equal beginning: a copy of the prefix serves all of them
 * (docs/adr/0043). */
#include "node/route/followers.h"

#include "node/route/router_internal.h"
#include "tests/lib/router_help.h"

static struct node_followers f;

static int clear(void **state)
{
    (void)state;
    f = (struct node_followers){0};
    return 0;
}

static void only_recent_followers_count(void **state)
{
    (void)state;
    assert_int_equal(node_followers_within(&f, 7, 1e9, 5000), 0);
    for (unsigned i = 0; i < 4; i++)
        node_followers_note(&f, 7, 1000 + 100 * i);
    assert_int_equal(node_followers_within(&f, 7, 1000, 1300), 4);
    assert_int_equal(node_followers_within(&f, 7, 150, 1300), 2);
    assert_int_equal(node_followers_within(&f, 7, 1000, 9000), 0);
    assert_int_equal(node_followers_within(&f, 8, 1000, 1300), 0);
}

static void the_last_eight_followers_are_remembered(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 20; i++)
        node_followers_note(&f, 7, i);
    assert_int_equal(node_followers_within(&f, 7, 1000, 20), NODE_FOLLOWERS_MAX);
    assert_int_equal(node_followers_within(&f, 7, 2, 20), 2); /* of 18 and 19 */
}

/* Each key has two possible rows. When a third key needs a row, it takes the row unused for
 * longest. */
static void a_burst_survives_other_prefixes(void **state)
{
    (void)state;
    enum { ROWS = NODE_FOLLOWERS_ROWS };
    node_followers_note(&f, 7, 1000);
    node_followers_note(&f, 7 + ROWS, 1001);
    assert_int_equal(node_followers_within(&f, 7, 1000, 1001), 1);
    node_followers_note(&f, 7, 1002);
    node_followers_note(&f, 7 + 2 * ROWS, 1003); /* in the place of the second */
    assert_int_equal(node_followers_within(&f, 7, 1000, 1003), 2);
    assert_int_equal(node_followers_within(&f, 7 + ROWS, 1000, 1003), 0);
    assert_int_equal(node_followers_within(&f, 7 + 2 * ROWS, 1000, 1003), 1);
}

/* Both replicas have work. A single request with a recomputed prefix holds up the other replica's
 * requests; each request of a burst holds up only a part. */
static void a_burst_delays_other_requests_only_in_part(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 2);
    struct node_request request = request_of(prompt(1, 20000));
    request.replica_wanted = 0;
    struct node_decision d;
    assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_OK);
    request = request_of(prompt(2, 20000));
    request.replica_wanted = 1;
    assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_OK);

    uint64_t now = START_MS + 1000;
    request = request_of(prompt(1, 20000));
    json_t *root = explain(r, &request, now);
    double alone = explained(root, 1, "decode_s");
    json_decref(root);
    request.replica_wanted = 0;
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(node_router_place(r, &request, NULL, now, &d), ERR_OK);
    request.replica_wanted = -1;
    root = explain(r, &request, now);
    double among = explained(root, 1, "decode_s");
    json_decref(root);
    assert_true(alone > 1.2); /* a request runs there, and 20,000 tokens take 2 s */
    assert_true(among < 0.4 * alone);
    node_router_check(r);
    alone_destroy(r);
}

/* If a burst arrives over four routers, each sees a fourth. */
static void each_other_router_is_assumed_to_have_as_many(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 2);
    struct node_decision d;
    struct node_request request = request_of(prompt(1, 20000));
    request.replica_wanted = 0;
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_OK);
    request.replica_wanted = -1;
    for (unsigned routers = 1; routers <= 4; routers *= 4) {
        r->routers = routers;
        json_t *root = explain(r, &request, START_MS);
        assert_near(explained(root, 0, "followers"), 0, 0);           /* no copy is needed there */
        assert_near(explained(root, 1, "followers"), 2 * routers, 0); /* the first had no prefix */
        json_decref(root);
    }
    alone_destroy(r);
}

/* Another attempt of a request does not follow the first attempt. */
static void a_retry_does_not_follow_itself(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 3);
    struct node_decision d;
    struct node_request request = request_of(prompt(1, 20000));
    for (int k = 0; k < 2; k++) { /* two replicas have the prefix */
        request.replica_wanted = k;
        assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_OK);
    }
    request.replica_wanted = -1;
    assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_OK);
    const struct node_replica_set excluded = {{1ull << d.replica}};
    assert_int_equal(node_router_place(r, &request, &excluded, START_MS, &d), ERR_OK);
    request = request_of(prompt(1, 20000));
    json_t *root = explain(r, &request, START_MS);
    node_router_check(r);
    json_decref(root);
    assert_int_equal(node_followers_within(&r->followers, r->deepest.id, 1000, START_MS), 1);
    alone_destroy(r);
}

/* Chunks may be anywhere in a prompt: none is the deepest. */
static void chunks_have_no_followers(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 2);
    struct node_decision d;
    struct node_request request = request_of(prompt(1, 20000));
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_OK);
    struct chain chunks = *prompt(1, 20000);
    chunks.chunks = true;
    request = request_of(&chunks);
    json_t *root = explain(r, &request, START_MS);
    json_decref(root);
    assert_true(r->deepest.id == 0);
    alone_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(only_recent_followers_count, clear),
        cmocka_unit_test_setup(the_last_eight_followers_are_remembered, clear),
        cmocka_unit_test_setup(a_burst_survives_other_prefixes, clear),
        cmocka_unit_test(a_burst_delays_other_requests_only_in_part),
        cmocka_unit_test(each_other_router_is_assumed_to_have_as_many),
        cmocka_unit_test(a_retry_does_not_follow_itself),
        cmocka_unit_test(chunks_have_no_followers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
