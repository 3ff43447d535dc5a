/* Data-parallel ranks as seen by several routers: only router 0 reads their number, and all routers
 * use them. */
#include "node/replica/rank.h"
#include "node/replica/scrape.h"
#include "node/route/router_internal.h"
#include "tests/lib/test.h"
#include "tests/lib/world/look.h"

static void read_metrics(struct world *c, unsigned node, unsigned ranks)
{
    struct node_router *r = c->nodes[node].node->router;
    struct node_scrape all = node_scrape_unknown, each[NODE_RANKS_MAX];
    int slot = node_router_replica_find(r, SLICE("replica-0:8000"));
    all.running = 0;
    all.ranks = ranks;
    (void)node_router_scraped(r, (unsigned)slot, &all, world_ms(c));
    for (unsigned i = 0; i < ranks; i++) {
        each[i] = node_scrape_unknown;
        each[i].running = i;
    }
    node_router_ranks_scraped(r, (unsigned)slot, each, ranks, world_ms(c));
}

/* Reads the metrics once a second, as every reader does. */
static void read_for(struct world *c, unsigned node, unsigned ranks, unsigned seconds)
{
    for (unsigned i = 0; i < seconds; i++) {
        read_metrics(c, node, ranks);
        world_run(c, S);
    }
}

static bool has_rank(struct world *c, unsigned node, unsigned rank)
{
    char text[NODE_RANK_NAME_BYTES];
    (void)node_rank_name_write(SLICE("replica-0:8000"), rank, text);
    return has(c, node, text);
}

static void the_reader_of_ranks_announces_them_to_all(void **state)
{
    (void)state;
    struct world c;
    start(&c, 3, 1);
    read_for(&c, 0, 2, 3);
    for (unsigned i = 0; i < 3; i++)
        assert_true(has_rank(&c, i, 0) && has_rank(&c, i, 1) && !has_rank(&c, i, 2));
    struct chain chain;
    world_prompt(&chain, 1, 8000);
    struct node_decision first = world_choose(&c, 1, &chain);
    assert_true(first.rank >= 0);
    world_finish(&c, 1, first, &no_usage);
    world_run(&c, S);
    struct node_decision again = world_choose(&c, 2, &chain);
    assert_int_equal(again.rank, first.rank);
    assert_true(again.cached_tokens > 0);
    world_finish(&c, 2, again, &no_usage);
    world_run(&c, 5 * S);
    assert_true(world_agrees(&c));
    world_close(&c);
}

static void ranks_survive_the_death_of_their_reader(void **state)
{
    (void)state;
    struct world c;
    start(&c, 3, 1);
    read_for(&c, 0, 2, 3);
    world_kill(&c, 0);
    world_run(&c, 60 * S);
    assert_true(has_rank(&c, 1, 0) && has_rank(&c, 2, 1));
    read_for(&c, 1, 2, 5);
    assert_true(has_rank(&c, 1, 0) && has_rank(&c, 2, 1));
    world_close(&c);
}

/* The engine restarts with fewer ranks. */
static void removed_ranks_disappear_at_all_routers(void **state)
{
    (void)state;
    struct world c;
    start(&c, 3, 1);
    read_for(&c, 0, 3, 3);
    assert_true(has_rank(&c, 2, 2));
    read_for(&c, 0, 2, 8);
    for (unsigned i = 0; i < 3; i++)
        assert_true(has_rank(&c, i, 1) && !has_rank(&c, i, 2));
    read_for(&c, 0, 0, 8);
    for (unsigned i = 0; i < 3; i++)
        assert_true(!has_rank(&c, i, 0) && has(&c, i, "replica-0:8000"));
    world_close(&c);
}

/* To a build without ranks the other routers report the replica down: such a build would find no
 * address in the name. */
static void to_older_builds_a_rank_is_down(void **state)
{
    (void)state;
    struct world c;
    start(&c, 2, 1);
    read_for(&c, 0, 2, 3);
    const struct node_router *r = c.nodes[1].node->router;
    unsigned slot = (unsigned)node_router_replica_find(r, SLICE("replica-0:8000@1"));
    assert_int_equal(r->replicas[slot].hint, NODE_HEALTH_DOWN);
    assert_int_equal(node_router_replica_health(r, slot), NODE_HEALTH_UP);
    world_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reader_of_ranks_announces_them_to_all),
        cmocka_unit_test(ranks_survive_the_death_of_their_reader),
        cmocka_unit_test(removed_ranks_disappear_at_all_routers),
        cmocka_unit_test(to_older_builds_a_rank_is_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
