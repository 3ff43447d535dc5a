/* The cost, in bytes of real messages, until routers agree again. */
#include "node/cluster/replication.h"

#include "base/err.h"
#include "crdt/section.h"
#include "crdt/sketch.h"
#include "node/cluster/replication_internal.h"
#include "tests/lib/states.h"
#include "tests/lib/test.h"
#include "tests/lib/world/look.h"

/* --- a cache is lost -------------------------------------------------------------------------- */

enum { ROUTERS = 4, ENTRIES = 50000, PROMPT_TOKENS = 20000 };

/* Work at all routers: observations are always on the way, so the digests are never equal. */
static void work(struct world *c, uint64_t us)
{
    static uint64_t seed = 1000000;
    struct chain chain;
    for (uint64_t end = c->now_us + us; c->now_us < end;) {
        unsigned i = (unsigned)(seed % ROUTERS);
        world_prompt(&chain, seed++, 2000);
        world_finish(c, i, world_choose(c, i, &chain), &no_usage);
        world_run(c, 1 * MS);
    }
}

static struct crdt_index_stats index_of(struct world *c, unsigned node)
{
    struct crdt_index_stats stats;
    crdt_index_stats(node_state_index(c->nodes[node].node->state), &stats);
    return stats;
}

/* Bytes of anti-entropy, in both directions, and of snapshots taken. */
static double agreeing_bytes(struct world *c, unsigned node)
{
    return stat_of(c, node, "reconcile", "bytes_out") + stat_of(c, node, "reconcile", "bytes_in") +
           stat_of(c, node, "snapshots", "bytes");
}

static void start_with_a_full_cache(struct world *c, const char *replica)
{
    world_open(c, ROUTERS, 7);
    c->checks = false; /* checks would walk the whole index */
    for (unsigned i = 0; i < ROUTERS; i++) {
        c->nodes[i].config.state.index_bytes = 64 << 20;
        world_start(c, i);
        world_run(c, 300 * MS); /* the routers' sweepers are not in step */
    }
    world_settle(c);
    for (unsigned i = 0; i < ROUTERS; i++) {
        (void)world_replica(c, i, "another:8000");
        (void)world_replica(c, i, replica);
    }
    struct chain chain;
    for (unsigned n = 0, entries = 0; entries < ENTRIES; n++) {
        struct world_node *at = &c->nodes[n % ROUTERS];
        int slot = node_router_replica_find(at->node->router, slice_of_cstr(replica));
        world_prompt(&chain, n, PROMPT_TOKENS);
        entries += (unsigned)crdt_state_observe(world_state(at), &chain, (unsigned)slot);
        world_touch(at);
        world_run(c, 5 * MS);
    }
    assert_true(world_until(c, 20 * S, world_agrees));
}

/* Sketches contain the rest of a lost cache until the sweep, which each router does at another
 * time. Because of "far behind", all routers once took whole snapshots, of 1 MB here. */
static void a_lost_cache_of_50000_entries_costs_less_than_200_kb(void **state)
{
    (void)state;
    struct world c;
    double before[ROUTERS], snapshots[ROUTERS];
    start_with_a_full_cache(&c, "replica:8000");
    work(&c, 5 * S);
    for (unsigned i = 0; i < ROUTERS; i++) {
        before[i] = agreeing_bytes(&c, i);
        snapshots[i] = stat_of(&c, i, "snapshots", "taken");
    }
    struct node_router *first = c.nodes[0].node->router;
    unsigned lost = (unsigned)node_router_replica_find(first, SLICE("replica:8000"));
    node_router_probed(first, lost, (struct node_check){.refused = true},
                       world_ms(&c)); /* this router's port refuses */
    node_router_probed(first, lost, (struct node_check){.ok = true}, world_ms(&c));
    work(&c, 10 * S);
    for (unsigned i = 0; i < ROUTERS; i++) {
        double cost = agreeing_bytes(&c, i) - before[i];
        print_message("%s: %.0f KB in 10 s\n", c.nodes[i].name, cost / 1000);
        assert_true(index_of(&c, i).forgotten >= ENTRIES);
        assert_int_equal(index_of(&c, i).retired, 0); /* and the sweep is done */
        assert_true(cost < 200e3);
    }
    work(&c, 20 * S);
    for (unsigned i = 0; i < ROUTERS; i++)
        assert_true(stat_of(&c, i, "snapshots", "taken") == snapshots[i]);
    assert_true(world_until(&c, 20 * S, world_agrees));
    world_close(&c);
}

/* --- a cut is requested again and again ----------------------------------------------------- */

/* The number of walks of the router's index in 30 s. */
static unsigned walks_for(struct world *c, uint32_t from, uint16_t width)
{
    struct node_replication *n = c->nodes[0].node->replication;
    uint64_t due_us = n->reconcile.cut_due_us;
    unsigned walks = 0;
    for (uint64_t end = c->now_us + 30 * S; c->now_us < end; world_run(c, 10 * MS)) {
        uint8_t bytes[64];
        struct crdt_section_writer out = {.w = wire_writer_of(bytes, sizeof bytes)};
        wire_write_u8(&out.w, NODE_MESSAGE_STEP);
        wire_write_u8(&out.w, 0);
        wire_write_u48(&out.w, node_state_cluster_ms(n->state, node_replication_ms(c->now_us)));
        wire_write_u16(&out.w, 1);
        crdt_section_begin(&out, CRDT_SECTION_WIDER);
        wire_write_u32(&out.w, from);
        wire_write_u16(&out.w, width);
        wire_write_u8(&out.w, 1);
        crdt_section_end(&out);
        node_reconcile_message(n, n->peers[0].node, slice_of((char *)bytes, wire_written(&out.w)),
                               true, c->now_us);
        walks += n->reconcile.cut_due_us != due_us;
        due_us = n->reconcile.cut_due_us;
    }
    return walks;
}

static void walks_over_a_cut_span_are_rate_limited(void **state)
{
    (void)state;
    struct world c;
    world_open(&c, 2, 9);
    world_start(&c, 0);
    world_start(&c, 1);
    world_settle(&c);
    const struct crdt_index *x = node_state_index(c.nodes[0].node->state);
    uint32_t from = crdt_index_now(x);
    while (crdt_index_sketch_from(x, from) == from)
        from--;
    assert_in_range(walks_for(&c, from, 96), 25, 30);
    assert_in_range(walks_for(&c, from, CRDT_SKETCH_CELLS), 3, 5);
    world_close(&c);
}

/* --- a full reply ------------------------------------------------------------------------------
 */

enum { NAMED = 1000 };

/* Fills the reports up to `short_by` bytes less than the maximum. */
static void report_everything(struct crdt_state *s, unsigned short_by)
{
    const struct crdt_load load = {7, 70000, UINT64_C(8000000000), 90000, 0, 0};
    struct crdt_learned longest;
#define LONGEST_u64                CRDT_NUMBER_MAX
#define LONGEST_u32                UINT32_MAX
#define LONGEST(width, name, when) longest.name = LONGEST_##width;
    CRDT_LEARNED_FIELDS(LONGEST)
    for (unsigned slot = 0; slot < NAMED; slot++) {
        struct crdt_load less = {7, slot < short_by ? 200 : 70000, 8000000, 90000, 0, 0};
        crdt_state_load(s, slot, short_by > 0 ? &less : &load);
        crdt_state_sight(s, slot, &(struct crdt_sight){.configured = true, .health = 1});
        crdt_state_learned(s, slot, &longest);
    }
}

/* A reply of 131,072 bytes could never be sent together with the head. */
static void a_full_reply_leaves_space_for_its_head(void **state)
{
    (void)state;
    uint64_t longest = 0;
    enum { STEP = 160 / TEST_ROUNDS(160) };
    for (unsigned short_by = 1; short_by < 160;
         short_by += STEP) { /* fills the reply to different lengths */
        struct states_setting setting = {
            .self = 1, .bytes_max = 32 << 20, .replicas_max = CRDT_REPLICAS_MAX};
        struct crdt_state *a = states_make(&setting);
        setting.self = 2;
        struct crdt_state *b = states_make(&setting);
        for (unsigned i = 0; i < NAMED; i++)
            assert_int_equal(states_replica(a, i), states_replica(b, i));
        report_everything(a, short_by);
        (void)states_tell_nobody(a, 1 << 20);
        struct states_exchange e = states_reconcile(b, a, true);
        assert_true(e.longest + NODE_MESSAGE_HEAD <= GOSSIP_MESSAGE_MAX);
        longest = e.longest > longest ? e.longest : longest;
        crdt_state_destroy(a);
        crdt_state_destroy(b);
    }
    assert_in_range(longest + NODE_MESSAGE_HEAD, GOSSIP_MESSAGE_MAX - NODE_MESSAGE_HEAD + 1,
                    GOSSIP_MESSAGE_MAX);
}

/* 3,000 rows differ, more than fit in a message. */
static void rows_that_fill_a_message_are_sent_in_several_rounds(void **state)
{
    (void)state;
    struct world c;
    world_open(&c, 2, 4);
    for (unsigned i = 0; i < 2; i++) {
        c.nodes[i].config.replication.gossip.ring_bytes = 4096; /* no delta is repeated */
        world_start(&c, i);
    }
    world_settle(&c);
    for (unsigned k = 0; k < NAMED; k++) {
        char name[32];
        (void)snprintf(name, sizeof name, "10.0.%u.%u:8000", k / 250, k % 250);
        (void)world_replica(&c, 0, name);
        if (k % 50 == 49)
            world_run(&c, 50 * MS);
    }
    assert_true(world_until(&c, 20 * S, world_agrees));
    world_cut(&c, 0, 1);
    world_run(&c, 5 * S);
    report_everything(world_state(&c.nodes[0]), 0);
    world_touch(&c.nodes[0]);
    world_run(&c, 1 * S);
    double before = stat_of(&c, 1, "reconcile", "bytes_in");
    world_heal(&c);
    assert_true(world_until(&c, 60 * S, world_agrees));
    assert_true(stat_of(&c, 1, "reconcile", "bytes_in") - before > CRDT_MESSAGE_MAX);
    world_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walks_over_a_cut_span_are_rate_limited),
        cmocka_unit_test(a_lost_cache_of_50000_entries_costs_less_than_200_kb),
        cmocka_unit_test(a_full_reply_leaves_space_for_its_head),
        cmocka_unit_test(rows_that_fill_a_message_are_sent_in_several_rounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
