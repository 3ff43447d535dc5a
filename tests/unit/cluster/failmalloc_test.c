/* Out of memory while two routers meet, the second takes the first router's state, and both choose
 * replicas. */
#include "tests/lib/failmalloc.h"

#include "base/err.h"
#include "node/cluster/replication.h"
#include "tests/lib/test.h"
#include "tests/lib/world/memory.h"
#include "tests/lib/world/use.h"

enum { ROUTERS = 2, S = 1000000 };

static struct world world;

static void use(unsigned number, uint64_t seed)
{
    struct world_node *n = &world.nodes[number];
    struct node_router *r = n->node->router;
    uint64_t now_ms = world_ms(&world);
    int at = node_router_name(r, SLICE("host-0:8000"), NODE_ENGINE_VLLM);
    if (at < 0)
        at = node_router_replica_find(r, SLICE("host-0:8000"));
    if (at < 0)
        return;
    node_router_probed(r, (unsigned)at, (struct node_check){.ok = true}, now_ms);
    struct chain chain;
    world_prompt(&chain, seed, 4000);
    struct node_request request = {
        .chain = &chain, .body_bytes = chain.bytes, .replica_wanted = -1};
    struct node_decision d;
    if (node_router_place(r, &request, NULL, now_ms, &d) == ERR_OK)
        world_finish(&world, number, d, &no_usage);
    world_touch(n);
}

static void ignore_answers(void *context, struct slice json)
{
    (void)context, (void)json;
}

static void look(unsigned number)
{
    struct node_replication *n = world.nodes[number].node->replication;
    struct buf text = {0};
    DISCARD(node_replication_members_json(n, world.now_us, &text));
    DISCARD(node_replication_digests_json(n, 0, &text));
    DISCARD(node_replication_stats_json(n, world.now_us, &text));
    struct prometheus metrics = prometheus_of(&text, "grapevine_");
    node_replication_metrics(n, world.now_us, &metrics);
    DISCARD(prometheus_finish(&metrics));
    DISCARD(node_replication_ask(n, NODE_CALL_DIGESTS, slice_of("", 0), S, world.now_us,
                                 ignore_answers, NULL));
    buf_free(&text);
}

/* Reports are not compared: if there is no memory for a member, the member's reports do not count
 * until this router restarts. */
static bool settled(struct world *w)
{
    struct crdt_digest d[ROUTERS];
    for (unsigned i = 0; i < ROUTERS; i++) {
        if (!node_replication_ready(w->nodes[i].node->replication))
            return false;
        crdt_state_digest(world_state(&w->nodes[i]), 0, &d[i]);
    }
    return d[0].registry == d[1].registry && d[0].index == d[1].index;
}

static void open_world(void)
{
    failmalloc_spare(true);
    world_open(&world, ROUTERS, 3);
    world.checks = false;
    for (unsigned i = 0; i < ROUTERS; i++) {
        struct node_config *config = &world.nodes[i].config;
        config->replication.gossip.ring_bytes = 1 << 18;
        config->state.names_max = 16; /* fast to make and to check */
        config->state.replicas_max = crdt_registry_slots(config->state.names_max);
        config->state.index_bytes = 4 << 20;
    }
    failmalloc_spare(false);
}

static void two_routers(bool may_fail)
{
    open_world();
    int err = world_try_start(&world, 0);
    if (err == ERR_OK) {
        use(0, 1);
        err = world_try_start(&world, 1);
    }
    assert_true(err == ERR_OK || (may_fail && err == ERR_NOMEM));
    if (err == ERR_OK) {
        world_run(&world, S);
        use(1, 2);
        world_run(&world, S / 2);
        look(0);
        world_run(&world, S / 2);
        failmalloc_enough();
        for (unsigned i = 0; i < ROUTERS; i++)
            use(i, 3 + i);
        assert_true(world_until(&world, 10 * S, settled));
        for (unsigned i = 0; i < ROUTERS; i++)
            node_check(world.nodes[i].node);
    }
    world_close(&world);
}

static void test_two_routers(void **state)
{
    (void)state;
    world_spare_by = failmalloc_spare;
    print_message("%u allocations\n", failmalloc_each(two_routers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_two_routers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
