/* Observations under ids apart: in the same map, but counted separately. */
#include "base/checkpoint.h"
#include "tests/lib/index_help.h"

enum { REPLICAS = 3, TTL = 20, NOW = 100, IDS = 2000 };

/* Observes an id and its twin apart, at other replicas and times. */
static void observe_both(struct crdt_index *x, uint64_t n)
{
    uint64_t id = id_of(n);
    unsigned replica = (unsigned)(n % REPLICAS);
    uint32_t generation = NOW - (uint32_t)(n % 10);
    assert_int_equal(crdt_index_observe(x, id, replica, (uint8_t)(n % 5), generation), 1);
    assert_int_equal(
        crdt_index_observe(x, crdt_index_id_apart(id), (replica + 1) % REPLICAS, 2, generation + 1),
        1);
}

static uint64_t total(const struct crdt_index *x, bool apart)
{
    uint64_t sum = 0;
    for (unsigned k = 0; k < REPLICAS; k++) {
        struct crdt_index_ring ring = crdt_index_ring_part(x, k, apart);
        uint64_t walked = 0;
        for (uint32_t g = ring.oldest; g <= ring.newest; g++)
            walked += crdt_index_ring_at(&ring, g);
        assert_int_equal(walked, ring.total);
        sum += ring.total;
    }
    return sum;
}

static void ids_apart_never_equal_a_prompts_id(void **state)
{
    (void)state;
    unsigned alike = 0;
    for (uint64_t n = 0; n < 100000; n++) {
        uint64_t id = id_of(n), twin = crdt_index_id_apart(id);
        assert_true(crdt_index_is_apart(twin));
        assert_true((twin & 0xffffffffffff) != (id & 0xffffffffffff));
        alike += crdt_index_is_apart(id);
    }
    assert_in_range(alike, 300, 500); /* 1 in 256 */
}

static void ids_apart_are_counted_separately(void **state)
{
    (void)state;
    struct crdt_index *x = make(8 << 20, REPLICAS, TTL, NOW);
    for (uint64_t n = 0; n < IDS; n++)
        observe_both(x, n);
    assert_int_equal(total(x, false), total(x, true)); /* not split: both totals are of all ids */
    assert_int_equal(stats_of(x).split_bytes, 0);
    struct crdt_index_stats stats;
    crdt_index_stats(x, &stats);
    assert_int_equal(stats.inserted, 2 * IDS);
    assert_in_range(stats.apart, IDS, IDS + IDS / 50);
    assert_int_equal(crdt_index_split(x), ERR_OK);
    crdt_index_check(x);
    uint64_t weight = (uint64_t)IDS * checkpoint_weight(2);
    assert_in_range(total(x, true), weight, weight + weight / 50); /* 1 in 256 others, too */
    uint64_t all = 0;
    for (unsigned k = 0; k < REPLICAS; k++)
        all += crdt_index_blocks_total(x, k);
    assert_int_equal(total(x, false) + total(x, true), all);
    assert_int_equal(stats_of(x).split_bytes, 2 * REPLICAS * (4 * 32 + 8)); /* rings of 32 */
    assert_int_equal(crdt_index_split(x), ERR_OK); /* a second split changes nothing */
    assert_int_equal(total(x, false) + total(x, true), all);
    crdt_index_destroy(x);
}

/* New, newer, expired and forgotten entries. */
static void the_counters_follow(void **state)
{
    (void)state;
    struct crdt_index *x = make(8 << 20, REPLICAS, TTL, NOW);
    assert_int_equal(crdt_index_split(x), ERR_OK);
    for (uint64_t n = 0; n < IDS; n++)
        observe_both(x, n);
    crdt_index_check(x);
    uint64_t before = total(x, true);
    crdt_index_advance(x, NOW + 5);
    for (uint64_t n = 0; n < IDS; n += 2)
        assert_int_equal(crdt_index_observe(x, crdt_index_id_apart(id_of(n)),
                                            (unsigned)(n % REPLICAS + 1) % REPLICAS, 2, NOW + 5),
                         1);
    assert_int_equal(total(x, true), before);
    crdt_index_check(x);
    crdt_index_advance(x, NOW + TTL + 3); /* refreshed entries stay */
    crdt_index_check(x);
    assert_in_range(total(x, true), IDS / 2 * checkpoint_weight(2), before);
    crdt_index_forget(x, 0, 7);
    assert_int_equal(crdt_index_ring_part(x, 0, true).total, 0);
    assert_int_equal(crdt_index_ring_part(x, 0, false).total, 0);
    crdt_index_check(x);
    crdt_index_destroy(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_apart_never_equal_a_prompts_id),
        cmocka_unit_test(ids_apart_are_counted_separately),
        cmocka_unit_test(the_counters_follow),
    };
    return cmocka_run_group_tests_name("crdt/index_apart", tests, NULL, NULL);
}
