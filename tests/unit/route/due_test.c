/* The share of a slow replica while the others have a queue (docs/adr/0039). */
#include "node/replica/constants.h"
#include "node/route/due.h"
#include "node/route/router_internal.h"
#include "tests/lib/router_help.h"

enum { FAST, LIKE, SLOW, COUNT };

static struct node_candidate of[COUNT];

/* Two fast replicas with a queue, and a five times slower replica without a queue. */
static int set_up(void **state)
{
    (void)state;
    for (unsigned i = 0; i < COUNT; i++) {
        bool slow = i == SLOW;
        of[i] = (struct node_candidate){.replica = i,
                                        .weight = 1,
                                        .believed_per_s = slow ? 2000 : 10000,
                                        .meets.prompt_tokens = 1000,
                                        .cost = {.queue_s = slow ? 0 : 0.1, .total_s = 0.2 + i}};
    }
    of[FAST].placed_tokens = 100000;
    return 0;
}

static bool is_due(void)
{
    unsigned due = node_due_find(of, COUNT);
    assert_false(of[FAST].is_due || of[LIKE].is_due);
    assert_int_equal(due, of[SLOW].is_due ? SLOW : COUNT);
    for (unsigned i = 0; i < COUNT; i++)
        of[i].is_due = false; /* as each request finds them */
    return due == SLOW;
}

static void a_slow_replica_gets_its_share_and_no_more(void **state)
{
    (void)state;
    unsigned placed = 0;
    while (is_due()) {
        of[SLOW].placed_tokens += 1000;
        placed++;
    }
    assert_near(placed, 10, 0); /* an eleventh of the total speed: 10000 of 110000 */
    of[LIKE].placed_tokens = 100000;
    assert_true(is_due());
}

static void old_placements_count_little(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 2);
    node_fading_add(&r->slots[1].placed_tokens, 50000, RULE(HALF_LIFE_MS), START_MS);
    const uint64_t later = START_MS + (uint64_t)RULE(HALF_LIFE_MS);
    struct node_request request = {.model = SLICE("")};
    struct node_need need = node_router_need(r, &request);
    struct node_size size;
    assert_int_equal(node_router_evaluate(r, &request, &need, NULL, true, later, &size), ERR_OK);
    assert_near(r->candidates[0].placed_tokens, 0, 0);
    assert_near(r->candidates[1].placed_tokens, 25000, 1);
    alone_destroy(r);
}

static void no_share_is_due_without_a_queue_elsewhere(void **state)
{
    (void)state;
    of[FAST].cost.queue_s = 0;
    assert_false(is_due());
}

static void a_replica_with_a_queue_gets_no_share(void **state)
{
    (void)state;
    of[SLOW].cost.queue_s = 0.01;
    assert_false(is_due());
}

static void a_replica_half_as_fast_is_not_slow(void **state)
{
    (void)state;
    of[SLOW].believed_per_s = 5000;
    assert_false(is_due());
}

static void a_prompt_cached_elsewhere_is_not_recomputed(void **state)
{
    (void)state;
    of[FAST].cached_tokens = 499;
    assert_true(is_due());
    of[FAST].cached_tokens = 501;
    assert_false(is_due());
    of[SLOW].cached_tokens = 10;
    assert_true(is_due());
}

static void no_adapter_is_loaded_for_a_due_share(void **state)
{
    (void)state;
    of[SLOW].cost.adapter_s = 0.3;
    assert_false(is_due());
    of[FAST].cost.adapter_s = 0.3;
    assert_true(is_due());
}

/* An operator's weight of a tenth is intended. */
static void a_weight_scales_the_due_share(void **state)
{
    (void)state;
    of[SLOW].weight = 0.1; /* a hundredth of all */
    of[SLOW].placed_tokens = 1500;
    assert_false(is_due());
    of[SLOW].weight = 1;
    assert_true(is_due());
}

static void the_cheaper_of_two_due_replicas_comes_first(void **state)
{
    (void)state;
    of[LIKE] = of[SLOW];
    of[LIKE].cost.total_s += 0.1;
    assert_int_equal(node_due_find(of, COUNT), SLOW);
    of[LIKE].cost.total_s -= 0.2;
    assert_int_equal(node_due_find(of, COUNT), LIKE);
    assert_true(of[LIKE].is_due && of[SLOW].is_due);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_slow_replica_gets_its_share_and_no_more, set_up),
        cmocka_unit_test(old_placements_count_little),
        cmocka_unit_test_setup(no_share_is_due_without_a_queue_elsewhere, set_up),
        cmocka_unit_test_setup(a_replica_with_a_queue_gets_no_share, set_up),
        cmocka_unit_test_setup(a_replica_half_as_fast_is_not_slow, set_up),
        cmocka_unit_test_setup(a_prompt_cached_elsewhere_is_not_recomputed, set_up),
        cmocka_unit_test_setup(no_adapter_is_loaded_for_a_due_share, set_up),
        cmocka_unit_test_setup(a_weight_scales_the_due_share, set_up),
        cmocka_unit_test_setup(the_cheaper_of_two_due_replicas_comes_first, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
