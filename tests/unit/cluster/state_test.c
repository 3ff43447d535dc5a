#include "node/cluster/state.h"

#include "base/checkpoint.h"
#include "base/err.h"
#include "crdt/state.h"
#include "tests/lib/state_help.h"
#include "tests/lib/test.h"

enum { GENERATION_MS = 10000, NOW_MS = 5000 };

static const uint64_t wall_ms = 1700000000000;

static struct node_state_config config_of(void)
{
    return (struct node_state_config){.self = 7,
                                      .replicated = true,
                                      .replicas_max = 16,
                                      .index_bytes = 4 << 20,
                                      .generation_ms = GENERATION_MS,
                                      .ttl_ms = 600000,
                                      .wall_ms = wall_ms,
                                      .now_ms = NOW_MS};
}

static struct node_state *make(void)
{
    struct node_state_config config = config_of();
    struct node_state *s = NULL;
    assert_int_equal(node_state_create(&s, &config), ERR_OK);
    return s;
}

static void an_index_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    struct node_state_config config = config_of();
    struct node_state *s = NULL;
    config.index_bytes = 1000;
    assert_int_equal(node_state_create(&s, &config), ERR_LIMIT);
    assert_null(s);
    /* The TTL was once cut silently: 24 hours ended after 16. */
    config = config_of();
    config.ttl_ms = (CRDT_TTL_MAX + 1) * GENERATION_MS;
    assert_int_equal(node_state_create(&s, &config), ERR_RANGE);
    assert_null(s);
}

/* Routers with another `ttl` forgot names too early, and received the names again and again. */
static void the_ttl_setting_does_not_change_the_names_ttl(void **state)
{
    (void)state;
    for (unsigned k = 0; k < 2; k++) {
        struct node_state_config config = config_of();
        struct node_state *s = NULL;
        config.ttl_ms = (k == 0 ? 4 : 400) * GENERATION_MS;
        assert_int_equal(node_state_create(&s, &config), ERR_OK);
        assert_int_equal(crdt_registry_floor_s(crdt_state_registry(node_state_crdt(s))),
                         wall_ms / 1000 - CRDT_NAMES_TTL_S);
        node_state_destroy(s);
    }
}

static void cluster_time_follows_the_monotonic_clock(void **state)
{
    (void)state;
    struct node_state *s = make();
    assert_int_equal(node_state_cluster_ms(s, NOW_MS + 250), wall_ms + 250);
    assert_int_equal(node_state_clock_off_ms(s), 0); /* the wall clock is unknown yet */
    node_state_wall(s, wall_ms + 90000, NOW_MS);
    assert_int_equal(node_state_clock_off_ms(s), -90000);
    assert_int_equal(node_state_cluster_ms(s, NOW_MS + 250), wall_ms + 250);
    node_state_destroy(s);
}

static void generations_never_go_back(void **state)
{
    (void)state;
    struct node_state *s = make();
    struct crdt_index *index = node_state_index(s);
    uint32_t first = crdt_index_now(index);
    assert_int_equal(first, wall_ms / GENERATION_MS);
    node_state_clock(s, NOW_MS + GENERATION_MS);
    assert_int_equal(crdt_index_now(index), first + 1);
    node_state_clock_move(s, 2 * GENERATION_MS, NOW_MS + GENERATION_MS);
    assert_int_equal(crdt_index_now(index), first + 3);
    node_state_clock_move(s, -2 * GENERATION_MS, NOW_MS + GENERATION_MS);
    assert_int_equal(crdt_index_now(index), first + 3);
    assert_int_equal(node_state_cluster_ms(s, NOW_MS), wall_ms);
    assert_ptr_equal(node_state_index(s), index);
    node_state_check(s);
    node_state_destroy(s);
}

struct seen {
    unsigned rows;
    uint64_t requests;
    bool configured;
};

static bool see(void *context, uint64_t router, const struct crdt_load *load,
                const struct crdt_sight *sight, const struct crdt_learned *learned)
{
    (void)learned;
    struct seen *seen = context;
    seen->rows += router == 7;
    seen->requests = load ? load->requests : 99;
    seen->configured = sight && sight->configured;
    return true;
}

static void setting_the_clock_back_moves_future_state_to_now(void **state)
{
    (void)state;
    struct node_state *s = make();
    struct crdt_state *crdt = node_state_crdt(s);
    crdt_state_epoch(crdt, wall_ms);
    assert_int_equal(state_replica(crdt, SLICE("a:1")), 0);
    assert_int_equal(state_replica(crdt, SLICE("b:1")), 1);
    assert_int_equal(crdt_state_wish(crdt, 1, CRDT_WISH_ADDED), 1);
    assert_int_equal(crdt_state_drain(crdt, 1, true), 1);
    assert_true(crdt_state_restarted(crdt, 0, wall_ms));
    uint32_t rkey = crdt_registry_at(crdt_state_registry(crdt), 0)->rkey;
    /* A gauge fell to zero; other routers still have a row for it. */
    crdt_state_load(crdt, 0, &(struct crdt_load){.requests = 1});
    crdt_state_load(crdt, 0, &(struct crdt_load){0});
    crdt_state_sight(crdt, 0, &(struct crdt_sight){.configured = true});
    struct chain chain = {.bytes = 1024, .length = 1};
    chain.points[0] = (struct chain_point){
        .id = 12345, .blocks = checkpoint_blocks(0), .code = checkpoint_code(0)};
    assert_true(crdt_state_observe(crdt, &chain, 0) >= 0);
    uint32_t generation = crdt_index_now(node_state_index(s));
    assert_true(crdt_index_entries_at(node_state_index(s), generation) > 0);

    assert_int_equal(node_state_rewinds(s), 0);
    assert_int_equal(node_state_rewind(s, 3 * GENERATION_MS, NOW_MS), ERR_OK);
    assert_int_equal(node_state_rewinds(s), 1);
    node_state_check(s);
    crdt = node_state_crdt(s);
    assert_int_equal(node_state_cluster_ms(s, NOW_MS), wall_ms - 3 * GENERATION_MS);
    assert_int_equal(crdt_index_now(node_state_index(s)), generation - 3);
    for (uint32_t g = generation - 6; g <= generation + 1; g++) /* only 3 back has entries */
        assert_int_equal(crdt_index_entries_at(node_state_index(s), g), g == generation - 3);
    const struct crdt_registry *registry = crdt_state_registry(crdt);
    assert_int_equal(crdt_registry_count(registry), 2);
    assert_int_equal(crdt_registry_at(registry, 0)->rkey, rkey);
    assert_int_equal(crdt_registry_at(registry, 1)->wish, CRDT_WISH_ADDED);
    assert_true(crdt_registry_at(registry, 1)->draining);
    struct seen seen = {0};
    crdt_reports_each(crdt_state_reports(crdt), 0, see, &seen);
    assert_int_equal(seen.rows, 1);
    assert_int_equal(seen.requests, 0);
    assert_true(seen.configured);
    node_state_destroy(s);
}

static void differing_cluster_settings_are_distinguished(void **state)
{
    (void)state;
    struct node_state_config config = config_of();
    struct node_state *a = make(), *b = NULL;
    hash_secret_from_seed(&config.secret, 2);
    config.ttl_ms = 500000;
    assert_int_equal(node_state_create(&b, &config), ERR_OK);
    struct node_agreement x = node_state_agreement(a), y = node_state_agreement(b);
    assert_int_equal(x.generation_ms, y.generation_ms);
    assert_int_not_equal(x.ttl_ms, y.ttl_ms);
    assert_int_not_equal(x.hash, y.hash);
    node_state_destroy(a);
    node_state_destroy(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_index_that_does_not_fit_is_refused),
        cmocka_unit_test(the_ttl_setting_does_not_change_the_names_ttl),
        cmocka_unit_test(cluster_time_follows_the_monotonic_clock),
        cmocka_unit_test(generations_never_go_back),
        cmocka_unit_test(setting_the_clock_back_moves_future_state_to_now),
        cmocka_unit_test(differing_cluster_settings_are_distinguished),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
