#include "node/cluster/replication.h"

#include <jansson.h>
#include <stdio.h>

#include "base/err.h"
#include "node/cluster/digests.h"
#include "node/cluster/replication_internal.h" /* a jump of the clock is hard to time */
#include "node/route/affinity.h"
#include "node/route/request.h"
#include "tests/lib/alone.h"
#include "tests/lib/test.h"
#include "tests/lib/world/look.h"

/* --- reports between routers ----------------------------------------------------------------- */

static void turns_over_three_routers_find_the_cache(void **state)
{
    (void)state;
    struct world c;
    start(&c, 3, 4);
    struct chain chain;
    char first[64] = "";
    for (unsigned turn = 0; turn < 9; turn++) {
        world_prompt(&chain, 7, 4000 + 500 * turn);
        struct node_decision d = world_choose(&c, turn % 3, &chain);
        char name[64];
        assert_true(slice_to_cstr(name_at(&c, turn % 3, d.replica), name, sizeof name));
        if (turn == 0)
            memcpy(first, name, sizeof first);
        else
            assert_true(d.cached_tokens > 3000 + 500 * (turn - 1));
        assert_string_equal(name, first);
        world_run(&c, 50 * MS);
        world_finish(&c, turn % 3, d, &no_usage);
        world_run(&c, 50 * MS);
    }
    assert_true(world_until(&c, 5 * S, world_agrees));
    world_close(&c);
}

static void one_routers_requests_are_load_for_all(void **state)
{
    (void)state;
    struct world c;
    start(&c, 3, 2);
    struct chain chain;
    world_prompt(&chain, 1, 20000);
    struct node_decision a = world_choose(&c, 0, &chain);
    char busy[64];
    assert_true(slice_to_cstr(name_at(&c, 0, a.replica), busy, sizeof busy));
    world_run(&c, 20 * MS);
    for (unsigned i = 1; i < 3; i++)
        assert_true(number_of(&c, i, busy, "load", "prefill_tokens_of_others") == 20000);
    /* Another prompt goes to another replica, though router 1 has sent nothing to the first
     * replica. */
    world_prompt(&chain, 2, 20000);
    struct node_decision b = world_choose(&c, 1, &chain);
    assert_false(slice_equal(name_at(&c, 1, b.replica), slice_of_cstr(busy)));
    world_finish(&c, 0, a, &no_usage);
    world_finish(&c, 1, b, &no_usage);
    world_run(&c, 20 * MS);
    for (unsigned i = 0; i < 3; i++)
        assert_true(number_of(&c, i, busy, "load", "requests_of_others") == 0);
    world_close(&c);
}

static void the_load_of_a_killed_router_is_removed(void **state)
{
    (void)state;
    struct world c;
    start(&c, 3, 1);
    struct chain chain;
    world_prompt(&chain, 1, 20000);
    (void)world_choose(&c, 2, &chain);
    world_run(&c, 50 * MS);
    assert_true(number_of(&c, 0, "replica-0:8000", "load", "requests_of_others") == 1);
    world_kill(&c, 2);
    world_run(&c, 3 * S);
    for (unsigned i = 0; i < 2; i++) {
        assert_true(number_of(&c, i, "replica-0:8000", "load", "requests_of_others") == 0);
        assert_int_equal(c.nodes[i].events[NODE_REPLICATION_MEMBER_DEAD], 1);
        /* The load counts in a decision, not only in the table. */
        world_prompt(&chain, 3, 4000);
        struct node_decision d = world_choose(&c, i, &chain);
        world_finish(&c, i, d, &no_usage);
    }
    /* The dead router's observations stay. */
    world_prompt(&chain, 1, 20000);
    assert_true(world_choose(&c, 0, &chain).cached_tokens > 19000);
    world_close(&c);
}

static void a_joiner_has_the_whole_state_when_ready(void **state)
{
    (void)state;
    struct world c;
    world_open(&c, 3, 2);
    for (unsigned i = 0; i < 2; i++)
        world_start(&c, i);
    world_settle(&c);
    for (unsigned i = 0; i < 2; i++)
        (void)world_replica(&c, i, "replica-0:8000");
    world_run(&c, 100 * MS);
    struct chain chain;
    for (unsigned s = 0; s < 10; s++) {
        world_prompt(&chain, s, 8000);
        world_finish(&c, s % 2, world_choose(&c, s % 2, &chain), &no_usage);
        world_run(&c, 10 * MS);
    }
    (void)world_choose(&c, 0, &chain);
    world_start(&c, 2);
    assert_false(node_replication_ready(c.nodes[2].node->replication));
    world_settle(&c);
    /* No replica is configured here: the others sent the name. */
    int slot = node_router_replica_find(c.nodes[2].node->router, SLICE("replica-0:8000"));
    assert_true(slot >= 0);
    assert_true(node_router_replica_present(c.nodes[2].node->router, (unsigned)slot));
    assert_true(c.nodes[2].has[slot]);
    assert_true(number_of(&c, 2, "replica-0:8000", "load", "requests_of_others") == 1);
    /* Router 2 has not probed the replica yet; the others report that it is up. */
    for (unsigned s = 0; s < 10; s++) {
        world_prompt(&chain, s, 8000);
        struct node_decision d = world_choose(&c, 2, &chain);
        assert_true(d.cached_tokens > 7000);
        world_finish(&c, 2, d, &no_usage);
    }
    assert_int_equal(c.nodes[2].events[NODE_REPLICATION_READY], 1);
    assert_true(world_until(&c, 5 * S, world_agrees));
    world_close(&c);
}

static void the_first_router_gets_ready_alone(void **state)
{
    (void)state;
    struct world c;
    world_open(&c, 3, 3);
    /* The seed is down. */
    world_start(&c, 1);
    world_run(&c, 2500 * MS);
    assert_false(node_replication_ready(c.nodes[1].node->replication));
    world_run(&c, 1 * S);
    assert_true(node_replication_ready(c.nodes[1].node->replication));
    world_start(&c, 0);
    world_start(&c, 2);
    world_settle(&c);
    world_close(&c);
}

static void routers_started_together_get_ready_soon(void **state)
{
    (void)state;
    struct world c;
    world_open(&c, 3, 3);
    c.seeds = 2; /* router 0 has a seed too: by the settings no router is the first */
    c.nodes[0].config.replication.has_seeds = true;
    for (unsigned i = 0; i < 3; i++)
        world_start(&c, i);
    world_run(&c, 2 * S);
    for (unsigned i = 0; i < 3; i++)
        assert_true(node_replication_ready(c.nodes[i].node->replication));
    world_close(&c);
}

/* An answer without streaming does not show when the prefill ends. */
static void prefill_of_whole_answers_ends_by_estimate(void **state)
{
    (void)state;
    struct world c;
    start(&c, 2, 1);
    struct chain chain;
    world_prompt(&chain, 1, 5000); /* prefill takes half a second */
    struct node_request request = {.chain = &chain, .replica_wanted = -1, .answer_whole = true};
    struct node_decision d;
    assert_int_equal(node_router_place(c.nodes[0].node->router, &request, NULL, world_ms(&c), &d),
                     0);
    node_replication_run(c.nodes[0].node->replication, c.now_us);
    world_run(&c, 400 * MS);
    const char *name = "replica-0:8000";
    assert_true(number_of(&c, 1, name, "load", "prefill_tokens_of_others") == 5000);
    world_run(&c, 350 * MS);
    assert_true(number_of(&c, 1, name, "load", "prefill_tokens_of_others") == 0);
    assert_true(number_of(&c, 1, name, "load", "requests_of_others") == 1);
    world_close(&c);
}

static bool router_1_calls(struct world *w)
{
    return world_call_of(w, 1) != NULL;
}

static bool router_2_is_ready(struct world *w)
{
    return node_replication_ready(w->nodes[2].node->replication);
}

static void a_broken_snapshot_is_taken_from_another_router(void **state)
{
    (void)state;
    struct world c;
    world_open(&c, 3, 4);
    world_start(&c, 0);
    world_start(&c, 1);
    world_settle(&c);
    c.nodes[0].calls_refused = true;
    world_start(&c, 2);
    assert_true(world_until(&c, 4 * S, router_2_is_ready));
    world_close(&c);
}

/* The call is closed; otherwise each try would carry the whole state, and tries follow within
 * milliseconds. */
static void an_abandoned_snapshot_closes_its_call(void **state)
{
    (void)state;
    struct world c;
    world_open(&c, 2, 4);
    world_start(&c, 0);
    world_settle(&c);
    world_start(&c, 1);
    struct node_replication *n = c.nodes[1].node->replication;
    assert_true(world_until(&c, 400 * MS, router_1_calls));
    const struct world_call *call = world_call_of(&c, 1);
    uint32_t id = call->id;
    assert_int_equal(call->kind, NODE_CALL_SNAPSHOT);
    struct slice not_ready = slice_of("\1\0\0\0\0\0\0\0", 8);
    assert_int_equal(node_replication_answer(n, id, not_ready, c.now_us), ERR_CLOSED);
    assert_int_equal(node_replication_answer(n, id, not_ready, c.now_us), ERR_CLOSED);
    world_settle(&c); /* the joiner asks again, and reads the second answer to the end */
    assert_int_equal(stat_of(&c, 1, "snapshots", "taken"), 1);
    assert_int_equal(stat_of(&c, 1, "snapshots", "failed"), 0);
    world_close(&c);
}

/* When the clock is set back, the state with the first half of the snapshot is dropped. */
static void setting_the_clock_back_aborts_a_snapshot(void **state)
{
    (void)state;
    struct world c;
    start(&c, 2, 1);
    struct chain chain;
    world_prompt(&chain, 1, 8000);
    world_finish(&c, 0, world_choose(&c, 0, &chain), &no_usage);
    world_run(&c, 2 * S);
    struct node_replication *n = c.nodes[1].node->replication;
    n->snapshot_of = gossip_node_id(c.nodes[0].name); /* for repair */
    n->join_due_us = 0;
    assert_true(world_until(&c, 400 * MS, router_1_calls));
    const struct world_call *call = world_call_of(&c, 1);
    uint32_t id = call->id;
    while (call->serve == NULL)
        world_run(&c, 100);
    node_join_again(n, c.now_us);
    assert_int_equal(node_replication_answer(n, id, slice_of("\2", 1), c.now_us), ERR_CLOSED);
    node_replication_answered(n, id, ERR_OK, c.now_us);
    assert_false(node_replication_ready(n));
    world_settle(&c);
    assert_true(world_until(&c, 5 * S, world_agrees));
    world_close(&c);
}

/* --- replicas -------------------------------------------------------------------------------- */

/* --- restarts of engines --------------------------------------------------------------------- */

/* --- learned values -------------------------------------------------------------------------- */

static void stored_responses_are_found_by_other_routers(void **state)
{
    (void)state;
    struct world c;
    start(&c, 3, 3);
    struct node_affinity *a[3];
    struct hash_secret secret;
    hash_secret_from_seed(&secret, 1);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(node_affinity_create(&a[i], &secret, 64), 0);
        node_affinity_share(a[i], c.nodes[i].node->router);
    }
    int slot = node_router_replica_find(c.nodes[1].node->router, SLICE("replica-2:8000"));
    node_affinity_put(a[1], SLICE("resp_42"), (unsigned)slot);
    node_replication_run(c.nodes[1].node->replication, c.now_us);
    world_run(&c, 50 * MS);
    assert_true(node_affinity_peek(a[2], SLICE("resp_42")) >= 0);
    node_affinity_share(a[2], NULL); /* only this router's own table, which is empty */
    assert_int_equal(node_affinity_get(a[2], SLICE("resp_42")), -1);
    node_affinity_share(a[2], c.nodes[2].node->router);
    for (unsigned i = 0; i < 3; i++) {
        int found = node_affinity_get(a[i], SLICE("resp_42"));
        assert_true(found >= 0);
        assert_slice_equal(name_at(&c, i, (unsigned)found), "replica-2:8000");
        assert_int_equal(node_affinity_get(a[i], SLICE("resp_43")), -1);
    }
    for (unsigned i = 0; i < 3; i++)
        node_affinity_destroy(a[i]);
    world_close(&c);
}

static void a_session_goes_to_the_same_replica_from_every_router(void **state)
{
    (void)state;
    /* The policy has no state: it hashes names under the secret of the cluster. */
    struct node_router *r[2];
    const char *names[] = {"a:1", "b:1", "c:1", "d:1"};
    for (unsigned i = 0; i < 2; i++) {
        struct node_config config = alone_config();
        config.router.policy = "session";
        r[i] = alone_router(&config);
        for (unsigned k = 0; k < 4; k++)
            assert_true(node_router_name(r[i], slice_of_cstr(names[i == 0 ? k : 3 - k]),
                                         NODE_ENGINE_AUTO) >= 0);
    }
    for (unsigned s = 0; s < 100; s++) {
        char key[16];
        int len = snprintf(key, sizeof key, "session-%u", s);
        struct node_request request = {.session = slice_of(key, (size_t)len), .replica_wanted = -1};
        struct node_decision d[2];
        for (unsigned i = 0; i < 2; i++)
            assert_int_equal(node_router_place(r[i], &request, NULL, 1000, &d[i]), 0);
        assert_true(slice_equal(node_router_replica_name(r[0], d[0].replica),
                                node_router_replica_name(r[1], d[1].replica)));
    }
    for (unsigned i = 0; i < 2; i++)
        alone_destroy(r[i]);
}

/* --- anti-entropy and time -------------------------------------------------------------------- */

static void differences_after_a_partition_are_repaired(void **state)
{
    (void)state;
    struct world c;
    start(&c, 2, 1);
    world_cut(&c, 0, 1);
    world_run(&c, 5 * S);
    for (unsigned s = 0; s < 10; s++) {
        struct chain chain;
        world_prompt(&chain, s, 8000);
        world_finish(&c, s % 2, world_choose(&c, s % 2, &chain), &no_usage);
        world_run(&c, 100 * MS);
    }
    assert_false(world_agrees(&c));
    world_link(&c, 0, 1)->cut = world_link(&c, 1, 0)->cut = false;
    world_settle(&c);
    assert_true(world_until(&c, 30 * S, world_agrees));
    for (unsigned s = 0; s < 10; s++)
        assert_true(cached(&c, 1 - s % 2, s) > 7000);
    world_close(&c);
}

/* The difference is larger than a sketch can report, so both take snapshots. */
static void large_differences_are_repaired_by_snapshots(void **state)
{
    (void)state;
    struct world c;
    start(&c, 3, 1);
    for (unsigned i = 0; i < 2; i++)
        world_cut(&c, i, 2);
    world_run(&c, 5 * S);
    for (unsigned s = 0; s < 800; s++) {
        struct chain chain;
        unsigned node = s % 2 == 0 ? 0 : 2;
        world_prompt(&chain, s, 100000);
        world_finish(&c, node, world_choose(&c, node, &chain), &no_usage);
        if (s % 50 == 0)
            world_run(&c, 10 * MS);
    }
    world_heal(&c);
    world_settle(&c);
    assert_true(world_until(&c, 40 * S, world_agrees));
    double too_many = 0;
    for (unsigned i = 0; i < 3; i++) {
        too_many += stat_of(&c, i, "reconcile", "rounds_too_many");
        assert_true(stat_of(&c, i, "snapshots", "taken") <= 2); /* at the join, and now */
    }
    assert_true(too_many > 0);
    world_close(&c);
}

static void losses_are_repaired(void **state)
{
    (void)state;
    struct world c;
    start(&c, 4, 4);
    c.net.loss = 0.1;
    struct chain chain;
    for (unsigned s = 0; s < 400; s++) {
        world_prompt(&chain, s % 50, 2000 + 100 * (s % 7));
        struct node_decision d = world_choose(&c, s % 4, &chain);
        world_run(&c, 5 * MS);
        world_finish(&c, s % 4, d, &no_usage);
    }
    assert_true(world_until(&c, 20 * S, world_agrees));
    c.net.loss = 0;
    world_run(&c, 10 * S);
    /* If nothing changes, rounds find no difference and cost two packets. */
    double equal = stat_of(&c, 0, "reconcile", "rounds_equal");
    world_run(&c, 5 * S);
    assert_true(stat_of(&c, 0, "reconcile", "rounds_equal") >= equal + 3);
    world_close(&c);
}

/* --- questions -------------------------------------------------------------------------------- */

static char answers[1 << 16];

static void on_answers(void *context, struct slice json)
{
    unsigned *count = context;
    (*count)++;
    assert_true(slice_to_cstr(json, answers, sizeof answers));
}

static void a_call_to_all_collects_every_answer(void **state)
{
    (void)state;
    struct world c;
    start(&c, 3, 2);
    say(&c, 1, 1);
    assert_true(world_until(&c, 5 * S, world_agrees));
    unsigned count = 0;
    assert_int_equal(node_replication_ask(c.nodes[0].node->replication, NODE_CALL_DIGESTS,
                                          slice_of("", 0), 2 * S, c.now_us, on_answers, &count),
                     0);
    world_run(&c, 100 * MS);
    assert_int_equal(count, 1);
    assert_int_equal(node_digests_differ(slice_of_cstr(answers)), 0);

    struct chain chain;
    world_prompt(&chain, 1, 8000);
    struct node_request request = {.model = SLICE("m"), .chain = &chain, .replica_wanted = -1};
    struct buf packed = {0};
    assert_int_equal(node_request_pack(&request, &packed), 0);
    assert_int_equal(node_replication_ask(c.nodes[2].node->replication, NODE_CALL_EXPLAIN,
                                          buf_slice(&packed), 2 * S, c.now_us, on_answers, &count),
                     0);
    world_run(&c, 100 * MS);
    assert_int_equal(count, 2);
    json_t *root = json_loads(answers, 0, NULL);
    assert_non_null(root);
    const char *choice = NULL;
    for (unsigned i = 0; i < 3; i++) {
        const json_t *node = json_object_get(root, c.nodes[i].name);
        const char *its = json_string_value(json_object_get(node, "choice"));
        assert_non_null(its);
        if (choice)
            assert_string_equal(its, choice);
        choice = its;
    }
    json_decref(root);
    /* Bytes that are no valid request. */
    struct node_serve *serve;
    assert_int_equal(node_replication_serve(c.nodes[0].node->replication, NODE_CALL_EXPLAIN,
                                            slice_of("\xff\xff\xff", 3), c.now_us, &serve),
                     ERR_SYNTAX);
    assert_int_equal(
        node_replication_serve(c.nodes[0].node->replication, 99, slice_of("", 0), c.now_us, &serve),
        ERR_UNSUPPORTED);
    buf_free(&packed);
    world_close(&c);
}

static void a_hung_router_delays_an_answer_by_the_time_limit(void **state)
{
    (void)state;
    struct world c;
    start(&c, 3, 2);
    assert_true(world_until(&c, 5 * S, world_agrees));
    unsigned count = 0;
    world_kill(&c, 1);
    assert_int_equal(node_replication_ask(c.nodes[0].node->replication, NODE_CALL_DIGESTS,
                                          slice_of("", 0), 1 * S, c.now_us, on_answers, &count),
                     0);
    world_run(&c, 1100 * MS);
    assert_int_equal(count, 1);
    json_t *root = json_loads(answers, 0, NULL);
    assert_non_null(json_object_get(json_object_get(root, "router-1"), "error"));
    json_decref(root);
    /* Nor does a call wait for a dead responder: the connection stays open, and no bytes come. */
    world_start(&c, 1);
    world_settle(&c);
    for (unsigned i = 0; i < 3; i++)
        world_cut(&c, i, 1);
    c.call_stall_us = 60 * S;
    assert_int_equal(node_replication_ask(c.nodes[0].node->replication, NODE_CALL_DIGESTS,
                                          slice_of("", 0), 60 * S, c.now_us, on_answers, &count),
                     0);
    world_run(&c, 200 * MS);
    assert_int_equal(count, 1);
    world_run(&c, 5 * S);
    assert_int_equal(count, 2);
    root = json_loads(answers, 0, NULL);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(root, "router-1"), "error")),
        err_text(ERR_UNREACHABLE));
    json_decref(root);
    struct buf lost = {0};
    assert_int_equal(node_replication_not_asked_json(c.nodes[0].node->replication, c.now_us, &lost),
                     0);
    assert_slice_equal(buf_slice(&lost), "{\"router-1\":\"dead\"}");
    buf_free(&lost);
    world_close(&c);
}

static void json_and_metrics_are_well_formed(void **state)
{
    (void)state;
    struct world c;
    start(&c, 3, 2);
    say(&c, 0, 1);
    world_run(&c, 3 * S);
    struct buf text = {0};
    assert_int_equal(node_replication_members_json(c.nodes[1].node->replication, c.now_us, &text),
                     0);
    json_t *root = json_loadb(text.at, text.len, 0, NULL);
    assert_int_equal(json_array_size(root), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *m = json_array_get(root, i);
        assert_string_equal(json_string_value(json_object_get(m, "state")), "alive");
        assert_true(json_is_true(json_object_get(m, "ready")));
        assert_int_equal(json_object_size(json_object_get(m, "vector")), 3);
        assert_string_equal(json_string_value(json_object_get(m, "admin")), "127.0.0.1:9000");
        assert_null(json_object_get(m, "mismatch"));
    }
    json_decref(root);
    json_decref(stats(&c, 1));
    buf_clear(&text);
    struct prometheus metrics = prometheus_of(&text, "grapevine_");
    node_replication_metrics(c.nodes[1].node->replication, c.now_us, &metrics);
    assert_int_equal(prometheus_finish(&metrics), 0);
    assert_true(text.len > 0 && text.at[text.len - 1] == '\n');
    buf_free(&text);
    world_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_over_three_routers_find_the_cache),
        cmocka_unit_test(one_routers_requests_are_load_for_all),
        cmocka_unit_test(the_load_of_a_killed_router_is_removed),
        cmocka_unit_test(a_joiner_has_the_whole_state_when_ready),
        cmocka_unit_test(the_first_router_gets_ready_alone),
        cmocka_unit_test(routers_started_together_get_ready_soon),
        cmocka_unit_test(prefill_of_whole_answers_ends_by_estimate),
        cmocka_unit_test(a_broken_snapshot_is_taken_from_another_router),
        cmocka_unit_test(an_abandoned_snapshot_closes_its_call),
        cmocka_unit_test(setting_the_clock_back_aborts_a_snapshot),
        cmocka_unit_test(stored_responses_are_found_by_other_routers),
        cmocka_unit_test(a_session_goes_to_the_same_replica_from_every_router),
        cmocka_unit_test(differences_after_a_partition_are_repaired),
        cmocka_unit_test(large_differences_are_repaired_by_snapshots),
        cmocka_unit_test(losses_are_repaired),
        cmocka_unit_test(a_call_to_all_collects_every_answer),
        cmocka_unit_test(a_hung_router_delays_an_answer_by_the_time_limit),
        cmocka_unit_test(json_and_metrics_are_well_formed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
