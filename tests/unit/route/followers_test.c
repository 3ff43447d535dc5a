/* Requests that begin alike and come together: a copy of their prefix serves all of them
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

static void those_of_the_last_moment_count(void **state)
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

static void the_last_eight_are_remembered(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 20; i++)
        node_followers_note(&f, 7, i);
    assert_int_equal(node_followers_within(&f, 7, 1000, 20), NODE_FOLLOWERS_MAX);
    assert_int_equal(node_followers_within(&f, 7, 2, 20), 2); /* of 18 and 19 */
}

static void a_row_is_the_last_prefix_s(void **state)
{
    (void)state;
    node_followers_note(&f, 7, 1000);
    node_followers_note(&f, 7 + NODE_FOLLOWERS_ROWS, 1001);
    assert_int_equal(node_followers_within(&f, 7, 1000, 1001), 0);
    assert_int_equal(node_followers_within(&f, 7 + NODE_FOLLOWERS_ROWS, 1000, 1001), 1);
}

/* Both replicas have work. One request that has the prefix computed again holds up what runs at the
 * other; of a burst each holds up a part of that. */
static void a_burst_is_no_tenant(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 2);
    struct node_request request = request_of(prompt(1, 20000));
    request.replica_wanted = 0;
    struct node_decision d;
    assert_int_equal(node_router_choose(r, &request, NULL, START_MS, &d), ERR_OK);
    request = request_of(prompt(2, 20000));
    request.replica_wanted = 1;
    assert_int_equal(node_router_choose(r, &request, NULL, START_MS, &d), ERR_OK);

    uint64_t now = START_MS + 1000;
    request = request_of(prompt(1, 20000));
    json_t *root = explain(r, &request, now);
    double alone = explained(root, 1, "decode_s");
    json_decref(root);
    request.replica_wanted = 0;
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(node_router_choose(r, &request, NULL, now, &d), ERR_OK);
    request.replica_wanted = -1;
    root = explain(r, &request, now);
    double among = explained(root, 1, "decode_s");
    json_decref(root);
    assert_true(alone > 1.2); /* one runs there, and 20,000 tokens take two seconds */
    assert_true(among < 0.4 * alone);
    node_router_check(r);
    alone_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(those_of_the_last_moment_count, clear),
        cmocka_unit_test_setup(the_last_eight_are_remembered, clear),
        cmocka_unit_test_setup(a_row_is_the_last_prefix_s, clear),
        cmocka_unit_test(a_burst_is_no_tenant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
