/* Replicas that come, go, drain and restart, as seen by all routers. */
#include "node/cluster/replication.h"

#include "base/err.h"
#include "tests/lib/test.h"
#include "tests/lib/world/look.h"
#include <stdio.h>

static void a_drain_applies_at_every_router(void **state)
{
    (void)state;
    struct world c;
    start(&c, 3, 2);
    int slot = node_router_replica_find(c.nodes[0].node->router, SLICE("replica-0:8000"));
    node_router_replica_drain(c.nodes[0].node->router, (unsigned)slot, true);
    node_replication_run(c.nodes[0].node->replication, c.now_us);
    world_run(&c, 50 * MS);
    struct chain chain;
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned s = 0; s < 10; s++) {
            world_prompt(&chain, s, 4000);
            struct node_decision d = world_choose(&c, i, &chain);
            assert_slice_equal(name_at(&c, i, d.replica), "replica-1:8000");
            world_finish(&c, i, d, &no_usage);
        }
    }
    /* Another router may undo the drain. */
    slot = node_router_replica_find(c.nodes[2].node->router, SLICE("replica-0:8000"));
    assert_int_equal(node_router_replica_health(c.nodes[2].node->router, (unsigned)slot),
                     NODE_HEALTH_DRAINING);
    node_router_replica_drain(c.nodes[2].node->router, (unsigned)slot, false);
    node_replication_run(c.nodes[2].node->replication, c.now_us);
    world_run(&c, 50 * MS);
    slot = node_router_replica_find(c.nodes[0].node->router, SLICE("replica-0:8000"));
    assert_int_equal(node_router_replica_health(c.nodes[0].node->router, (unsigned)slot),
                     NODE_HEALTH_UP);
    world_close(&c);
}

/* A source lists a replica, drops the name, and lists the name again. */
static void a_sources_replica_is_added_and_dropped_at_run_time(void **state)
{
    (void)state;
    struct world c;
    start(&c, 2, 1);
    struct node_router *r0 = c.nodes[0].node->router, *r1 = c.nodes[1].node->router;
    struct slice name = SLICE("pod-1:8000");
    int slot = node_router_name(r0, name, NODE_ENGINE_VLLM);
    assert_true(slot >= 0);
    assert_int_equal(node_router_name(r0, name, NODE_ENGINE_AUTO), slot);
    assert_int_equal(node_router_replica_engine(r0, (unsigned)slot), NODE_ENGINE_VLLM);
    node_replication_run(c.nodes[0].node->replication, c.now_us);
    world_run(&c, 200 * MS);
    assert_true(told(&c, 0, "pod-1:8000") && told(&c, 1, "pod-1:8000"));

    /* Router 0 uses the replica until all requests there are over; router 1 does not use it. This
     * is no operator's drain. */
    node_router_vanish(r0, (unsigned)slot, true);
    node_replication_run(c.nodes[0].node->replication, c.now_us);
    world_run(&c, 200 * MS);
    node_router_probed(r0, (unsigned)slot, (struct node_check){.ok = true}, c.now_us / 1000);
    assert_int_equal(node_router_replica_health(r0, (unsigned)slot), NODE_HEALTH_DRAINING);
    assert_true(has(&c, 0, "pod-1:8000") && !has(&c, 1, "pod-1:8000"));
    int other = node_router_replica_find(r1, name);
    assert_int_not_equal(node_router_replica_health(r1, (unsigned)other), NODE_HEALTH_DRAINING);

    assert_int_equal(node_router_name(r0, name, NODE_ENGINE_AUTO), slot);
    assert_int_equal(node_router_replica_health(r0, (unsigned)slot), NODE_HEALTH_UP);
    node_replication_run(c.nodes[0].node->replication, c.now_us);
    world_run(&c, 200 * MS);
    assert_true(has(&c, 1, "pod-1:8000"));

    node_router_vanish(r0, (unsigned)slot, true);
    node_router_unname(r0, name);
    node_router_unname(r0, name);
    node_replication_run(c.nodes[0].node->replication, c.now_us);
    world_run(&c, 200 * MS);
    assert_true(!has(&c, 0, "pod-1:8000") && !told(&c, 0, "pod-1:8000"));
    assert_true(!has(&c, 1, "pod-1:8000") && !told(&c, 1, "pod-1:8000"));
    world_close(&c);
}

/* Router 1's probe has detected a router at the address; router 0 has not probed yet. */
static void a_router_listed_as_a_replica_is_never_used(void **state)
{
    (void)state;
    struct world c;
    start(&c, 2, 1);
    struct node_router *r0 = c.nodes[0].node->router, *r1 = c.nodes[1].node->router;
    struct slice name = SLICE("new:8000");
    assert_true(node_router_replica_wish(r0, name, NODE_REPLICA_ADD, NODE_ENGINE_AUTO) >= 0);
    int engine = node_router_replica_find(r0, SLICE("replica-0:8000"));
    node_router_replica_drain(r0, (unsigned)engine, true); /* no better replica is left */
    node_replication_run(c.nodes[0].node->replication, c.now_us);
    world_run(&c, 500 * MS);
    int slot = node_router_replica_find(r1, name);
    node_router_found_router(r1, (unsigned)slot, SLICE("r9"), world_ms(&c));
    assert_int_equal(node_router_replica_health(r1, (unsigned)slot), NODE_HEALTH_ROUTER);
    node_replication_run(c.nodes[1].node->replication, c.now_us);
    world_run(&c, 500 * MS);
    struct node_request request = {.replica_wanted = -1};
    struct node_decision d;
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(
            node_router_place_by_load(c.nodes[i].node->router, &request, NULL, world_ms(&c), &d),
            ERR_UNREACHABLE);
    world_close(&c);
}

static void replicas_are_added_and_removed_at_run_time(void **state)
{
    (void)state;
    struct world c;
    start(&c, 3, 1);
    struct node_router *r0 = c.nodes[0].node->router, *r1 = c.nodes[1].node->router;
    struct slice name = SLICE("new:8000");
    assert_int_equal(node_router_replica_wish(r0, name, NODE_REPLICA_REMOVE, NODE_ENGINE_AUTO),
                     ERR_NOT_FOUND);
    assert_true(node_router_replica_wish(r0, name, NODE_REPLICA_ADD, NODE_ENGINE_SGLANG) >= 0);
    assert_int_equal(node_router_replica_wish(r0, name, NODE_REPLICA_ADD, NODE_ENGINE_AUTO),
                     ERR_EXISTS);
    assert_true(told(&c, 0, "new:8000"));
    node_replication_run(c.nodes[0].node->replication, c.now_us);
    world_run(&c, 500 * MS);
    for (unsigned i = 0; i < 3; i++) {
        assert_true(has(&c, i, "new:8000") && told(&c, i, "new:8000"));
        unsigned slot = (unsigned)node_router_replica_find(c.nodes[i].node->router, name);
        assert_int_equal(node_router_replica_engine(c.nodes[i].node->router, slot),
                         NODE_ENGINE_SGLANG);
    }
    assert_true(node_router_replica_wish(r1, name, NODE_REPLICA_REMOVE, NODE_ENGINE_AUTO) >= 0);
    /* An operator's removal overrides any configuration. */
    assert_true(node_router_replica_wish(r1, SLICE("replica-0:8000"), NODE_REPLICA_REMOVE,
                                         NODE_ENGINE_AUTO) >= 0);
    node_replication_run(c.nodes[1].node->replication, c.now_us);
    world_run(&c, 500 * MS);
    for (unsigned i = 0; i < 3; i++) {
        assert_false(has(&c, i, "new:8000") || told(&c, i, "new:8000"));
        assert_false(has(&c, i, "replica-0:8000"));
        assert_null(replica_json(&c, i, "new:8000"));
        struct chain chain;
        world_prompt(&chain, 1, 1000);
        struct node_request request = {.chain = &chain, .replica_wanted = -1};
        struct node_decision d;
        assert_int_equal(
            node_router_place(c.nodes[i].node->router, &request, NULL, world_ms(&c), &d),
            ERR_UNREACHABLE);
    }
    assert_true(node_router_replica_wish(r1, SLICE("replica-0:8000"), NODE_REPLICA_ADD,
                                         NODE_ENGINE_AUTO) >= 0);
    node_replication_run(c.nodes[1].node->replication, c.now_us);
    world_run(&c, 500 * MS);
    for (unsigned i = 0; i < 3; i++)
        assert_true(has(&c, i, "replica-0:8000") && told(&c, i, "replica-0:8000"));
    world_close(&c);
}

/* Membership silently admitted twice as many routers as a router keeps reports of. */
static void a_router_beyond_the_limit_is_refused_and_named(void **state)
{
    (void)state;
    struct world c;
    world_open(&c, 4, 9);
    for (unsigned i = 0; i < c.count; i++)
        c.nodes[i].config.replication.gossip.routers_max = 3;
    for (unsigned i = 0; i < 4; i++) {
        world_start(&c, i);
        world_run(&c, S);
        (void)world_replica(&c, i, "replica-0:8000");
    }
    world_run(&c, 10 * S);
    for (unsigned i = 0; i < 4; i++)
        assert_true(node_replication_ready(c.nodes[i].node->replication));
    for (unsigned i = 0; i < 4; i += 3) { /* router 0, the seed, and router 3 report that */
        assert_int_equal(c.nodes[i].events[NODE_REPLICATION_ROUTERS_FULL], 1);
        assert_string_equal(c.nodes[i].detail[NODE_REPLICATION_ROUTERS_FULL], c.nodes[3].name);
    }
    struct chain chain;
    world_prompt(&chain, 1, 20000);
    struct node_decision d = world_choose(&c, 1, &chain);
    world_finish(&c, 1, d, &no_usage);
    world_run(&c, 60 * S);
    c.nodes[3].up = false; /* the others are equal, including their reports about routers */
    assert_true(world_agrees(&c));
    c.nodes[3].up = true;
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(c.nodes[i].events[NODE_REPLICATION_MEMBER_DEAD], 0);
    /* Router 1 leaves, and the waiting router is admitted. */
    world_kill(&c, 1);
    world_settle(&c);
    assert_true(world_until(&c, 10 * S, world_agrees));
    world_close(&c);
}

/* Routers with room for four names, each forgotten after ten seconds. */
static void start_small(struct world *c, unsigned count)
{
    world_open(c, count, 1);
    for (unsigned i = 0; i < count; i++) {
        struct node_state_config *config = &c->nodes[i].config.state;
        config->names_max = 4;
        config->generation_ms = 1000;
        config->ttl_ms = 10000;
        config->names_ttl_s = 10;
        world_start(c, i);
        world_run(c, 100 * MS);
    }
    world_settle(c);
}

static int add(struct world *c, unsigned node, const char *name)
{
    int result = node_router_replica_wish(c->nodes[node].node->router, slice_of_cstr(name),
                                          NODE_REPLICA_ADD, NODE_ENGINE_AUTO);
    node_replication_run(c->nodes[node].node->replication, c->now_us);
    return result;
}

/* All routers see their replicas up: otherwise each router would prefer the names it configured. */
static void see_up(struct world *c)
{
    for (unsigned i = 0; i < c->count; i++) {
        struct node_router *r = c->nodes[i].node->router;
        for (unsigned k = 0; k < node_router_replica_count(r); k++)
            if (node_router_replica_present(r, k))
                node_router_probed(r, k, (struct node_check){.ok = true}, c->now_us / 1000);
    }
    world_run(c, 2 * S);
}

static void remove_everywhere(struct world *c, unsigned node, const char *name)
{
    assert_true(node_router_replica_wish(c->nodes[node].node->router, slice_of_cstr(name),
                                         NODE_REPLICA_REMOVE, NODE_ENGINE_AUTO) >= 0);
    node_replication_run(c->nodes[node].node->replication, c->now_us);
}

/* An operator must learn of the refused engine before traffic needs that engine, and need not add
 * it again. */
static void replicas_beyond_the_limit_wait_and_are_named(void **state)
{
    (void)state;
    struct world c;
    start_small(&c, 2);
    const char *const names[] = {"one:80", "two:80", "three:80", "four:80"};
    for (unsigned i = 0; i < 4; i++)
        assert_true(add(&c, i % 2, names[i]) >= 0);
    world_run(&c, 2 * S);
    see_up(&c);
    assert_int_equal(add(&c, 0, "five:80"), ERR_AGAIN);
    world_run(&c, 2 * S);
    assert_int_equal(node_router_name(c.nodes[1].node->router, SLICE("six:80"), NODE_ENGINE_AUTO),
                     ERR_FULL);
    world_run(&c, 30 * S);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(c.nodes[i].events[NODE_REPLICATION_REPLICAS_FULL], 1);
        assert_string_equal(c.nodes[i].detail[NODE_REPLICATION_REPLICAS_FULL], "five:80");
        assert_false(has(&c, i, "five:80") || has(&c, i, "six:80"));
    }
    remove_everywhere(&c, 1, "two:80");
    remove_everywhere(&c, 1, "three:80");
    world_run(&c, 15 * S); /* the names are forgotten */
    for (unsigned i = 0; i < 2; i++) {
        assert_true(has(&c, i, "five:80") && told(&c, i, "five:80"));
        assert_true(has(&c, i, "six:80") && told(&c, i, "six:80"));
        assert_false(told(&c, i, "two:80"));
    }
    unsigned events = c.nodes[0].events[NODE_REPLICATION_REPLICAS_FULL];
    world_run(&c, 120 * S);
    assert_int_equal(c.nodes[0].events[NODE_REPLICATION_REPLICAS_FULL], events);
    assert_true(world_until(&c, 5 * S, world_agrees));
    world_close(&c);
}

/* Each half filled the last place with a name, and refused the other half's name for ever. Now a
 * half keeps the names it sees up. The other half's name waits until there is room. */
static void two_halves_adding_a_last_name_converge(void **state)
{
    (void)state;
    struct world c;
    start_small(&c, 4);
    assert_true(add(&c, 0, "one:80") >= 0 && add(&c, 0, "two:80") >= 0);
    assert_true(add(&c, 0, "three:80") >= 0);
    world_run(&c, 3 * S);
    for (unsigned i = 0; i < 2; i++)
        for (unsigned k = 2; k < 4; k++)
            world_cut(&c, i, k);
    assert_true(add(&c, 0, "left:80") >= 0);
    world_run(&c, 3 * S);
    assert_true(add(&c, 2, "right:80") >= 0);
    world_run(&c, S);
    see_up(&c);
    world_run(&c, 30 * S);
    assert_true(has(&c, 1, "left:80") && has(&c, 3, "right:80"));
    world_heal(&c);
    world_run(&c, 30 * S);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(has(&c, i, "left:80"), i < 2);
        assert_int_equal(has(&c, i, "right:80"), i >= 2);
    }
    remove_everywhere(&c, 3, "one:80");
    world_run(&c, 20 * S);
    for (unsigned i = 0; i < 4; i++)
        assert_true(has(&c, i, "right:80") && has(&c, i, "left:80"));
    assert_true(world_until(&c, 10 * S, world_agrees));
    world_close(&c);
}

/* A router with other settings keeps the engines busy too, so the router's load counts. The
 * observations do not count, because they name other prompts or other times. */
static void observations_under_other_settings_do_not_count(void **state)
{
    (void)state;
    static const char *const differs[] = {"generation 20s, here 8s",
                                          "the hash line of the key file"};
    for (unsigned k = 0; k < 2; k++) {
        struct world c;
        world_open(&c, 2, 1);
        c.nodes[0].config.state.index_bytes = c.nodes[1].config.state.index_bytes = 20 << 20;
        if (k == 0)
            c.nodes[1].config.state.generation_ms = 20000;
        else
            c.nodes[1].keyring.hash[0] ^= 1;
        world_start(&c, 0);
        world_start(&c, 1);
        world_settle(&c);
        for (unsigned i = 0; i < 2; i++) {
            assert_int_equal(c.nodes[i].events[NODE_REPLICATION_MISMATCH], 1);
            world_replica(&c, i, "replica-0:8000");
        }
        assert_string_equal(c.nodes[0].detail[NODE_REPLICATION_MISMATCH], differs[k]);
        struct chain chain;
        world_prompt(&chain, 1, 8000);
        (void)world_choose(&c, 1, &chain);
        world_run(&c, S);
        assert_true(number_of(&c, 0, "replica-0:8000", "load", "requests_of_others") == 1);
        if (k == 0)
            assert_true(cached(&c, 0, 1) == 0);
        world_run(&c, 120 * S);
        assert_int_equal(c.nodes[0].events[NODE_REPLICATION_MISMATCH], 1);
        assert_int_equal(c.nodes[1].events[NODE_REPLICATION_MISMATCH], 1);
        assert_int_equal(c.nodes[0].events[NODE_REPLICATION_CLOCK_BACK], 0);
        world_close(&c);
    }
}

/* Two clusters with the same key file: an address of the first cluster belongs to the second
 * now. */
static void clusters_with_different_names_do_not_merge(void **state)
{
    (void)state;
    struct world c;
    world_open(&c, 3, 1);
    gossip_keyring_cluster(&c.nodes[0].keyring, SLICE("blue"));
    gossip_keyring_cluster(&c.nodes[1].keyring, SLICE("green"));
    gossip_keyring_cluster(&c.nodes[2].keyring, SLICE("blue"));
    for (unsigned i = 0; i < 3; i++)
        world_start(&c, i);
    world_replica(&c, 0, "blue:8000");
    world_run(&c, 200 * S);
    assert_true(told(&c, 2, "blue:8000"));
    assert_false(told(&c, 1, "blue:8000"));
    struct gossip_stats s; /* the seed's, because the others ask the seed */
    gossip_stats(node_replication_gossip(c.nodes[0].node->replication), &s);
    assert_true(s.other_cluster > 0);
    assert_int_equal(s.refused_key, 0);
    assert_int_equal(c.nodes[0].events[NODE_REPLICATION_OTHER_CLUSTER], 1); /* named once */
    world_close(&c);
}

/* Ids in a small table are unlike those in a table of any other size: the routers never agreed, and
 * reported nothing. */
static void small_indexes_of_different_sizes_are_reported(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes[2];
        bool unlike;
        const char *seen_by_first;
    } cases[] = {
        {{64 << 20, 20 << 20}, false, ""},
        {{14 << 20, 14 << 20}, false, ""},
        {{20 << 20, 14 << 20}, true, ", here 65536 (below 65536 ids differ: more index-bytes)"},
        {{15 << 20, 14 << 20}, true, " (below 65536 ids differ: more index-bytes)"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct world c;
        world_open(&c, 2, 1);
        for (unsigned i = 0; i < 2; i++) {
            c.nodes[i].config.state.index_bytes = cases[k].bytes[i];
            world_start(&c, i);
        }
        world_settle(&c);
        for (unsigned i = 0; i < 2; i++) {
            (void)world_replica(&c, i, "replica-0:8000");
            assert_int_equal(c.nodes[i].events[NODE_REPLICATION_MISMATCH], cases[k].unlike);
        }
        const char *detail = c.nodes[0].detail[NODE_REPLICATION_MISMATCH];
        if (cases[k].unlike) {
            assert_non_null(strstr(detail, "index of "));
            assert_non_null(strstr(detail, cases[k].seen_by_first));
        }
        say(&c, 0, 1);
        assert_int_equal(world_until(&c, 10 * S, world_agrees), !cases[k].unlike);
        world_close(&c);
    }
}

static void learned_figures_are_adopted(void **state)
{
    (void)state;
    struct world c;
    start(&c, 2, 1);
    struct chain chain;
    /* The replica computes 8,000 tokens in 400 ms, 20,000 a second; the router believes 10,000. */
    for (unsigned s = 0; s < 40; s++) {
        world_prompt(&chain, s, 8000);
        struct node_decision d = world_choose(&c, 0, &chain);
        world_run(&c, 400 * MS);
        struct node_usage usage = {
            .prompt_tokens = 8000, .cached_tokens = 0, .completion_tokens = 1};
        world_finish(&c, 0, d, &usage);
        world_run(&c, 100 * MS);
    }
    const char *name = "replica-0:8000";
    double own = number_of(&c, 0, name, "learned", "prefill_tokens_per_s");
    assert_true(own > 15000);
    double other = number_of(&c, 1, name, "learned", "prefill_tokens_per_s");
    assert_true(other > own * 0.95 && other < own * 1.05);
    world_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_drain_applies_at_every_router),
        cmocka_unit_test(a_sources_replica_is_added_and_dropped_at_run_time),
        cmocka_unit_test(a_router_listed_as_a_replica_is_never_used),
        cmocka_unit_test(replicas_are_added_and_removed_at_run_time),
        cmocka_unit_test(a_router_beyond_the_limit_is_refused_and_named),
        cmocka_unit_test(replicas_beyond_the_limit_wait_and_are_named),
        cmocka_unit_test(two_halves_adding_a_last_name_converge),
        cmocka_unit_test(observations_under_other_settings_do_not_count),
        cmocka_unit_test(clusters_with_different_names_do_not_merge),
        cmocka_unit_test(small_indexes_of_different_sizes_are_reported),
        cmocka_unit_test(learned_figures_are_adopted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
