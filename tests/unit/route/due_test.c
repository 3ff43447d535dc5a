/* What a slow replica is due while the others have a line (docs/adr/0039). */
#include "node/route/router_internal.h"
#include "tests/lib/router_help.h"

enum { FAST, LIKE, SLOW, REPLICAS };

static struct node_router *r;
static struct node_size size;

static struct node_candidate *of(unsigned replica)
{
    return &r->candidates[replica];
}

/* Two fast replicas that have a line, and one five times slower that has none. */
static int set_up(void **state)
{
    (void)state;
    r = make("cache_aware", REPLICAS);
    size = (struct node_size){.prompt_tokens = 1000};
    r->candidate_count = REPLICAS;
    for (unsigned i = 0; i < REPLICAS; i++) {
        bool slow = i == SLOW;
        r->replicas[i].tokens_per_s = slow ? 2000 : 10000;
        *of(i) = (struct node_candidate){
            .replica = i, .weight = 1, .cost = {.queue_s = slow ? 0 : 0.1, .total_s = 0.2 + i}};
    }
    node_router_due_placed(&r->replicas[FAST], 100000, START_MS);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    alone_destroy(r);
    return 0;
}

static bool is_due(uint64_t now_ms)
{
    node_router_due_find(r, &size, now_ms);
    assert_false(of(FAST)->is_due || of(LIKE)->is_due);
    return of(SLOW)->is_due;
}

static void a_slow_one_has_its_part_and_no_more(void **state)
{
    (void)state;
    unsigned placed = 0;
    while (is_due(START_MS)) {
        node_router_due_placed(&r->replicas[SLOW], 1000, START_MS);
        placed++;
    }
    assert_near(placed, 10, 0); /* its speed is an eleventh of all: 10000 of 110000 */
    node_router_due_placed(&r->replicas[LIKE], 100000, START_MS);
    assert_true(is_due(START_MS));
}

static void what_was_placed_long_ago_counts_little(void **state)
{
    (void)state;
    node_router_due_placed(&r->replicas[SLOW], 50000, START_MS);
    assert_false(is_due(START_MS));
    uint64_t later = START_MS + 300000;
    node_router_due_placed(&r->replicas[LIKE], 100000, later);
    assert_true(is_due(later));
}

static void no_line_no_due(void **state)
{
    (void)state;
    of(FAST)->cost.queue_s = 0;
    assert_false(is_due(START_MS));
}

static void who_has_a_line_itself_is_not_due(void **state)
{
    (void)state;
    of(SLOW)->cost.queue_s = 0.01;
    assert_false(is_due(START_MS));
}

static void half_as_fast_is_not_slow(void **state)
{
    (void)state;
    r->replicas[SLOW].tokens_per_s = 5000;
    assert_false(is_due(START_MS));
}

static void what_the_others_hold_is_not_computed_again(void **state)
{
    (void)state;
    of(FAST)->cached_tokens = 499;
    assert_true(is_due(START_MS));
    of(FAST)->cached_tokens = 501;
    assert_false(is_due(START_MS));
    of(SLOW)->cached_tokens = 10;
    assert_true(is_due(START_MS));
}

static void no_adapter_is_loaded_for_it(void **state)
{
    (void)state;
    of(SLOW)->cost.adapter_s = 0.3;
    assert_false(is_due(START_MS));
    of(FAST)->cost.adapter_s = 0.3;
    assert_true(is_due(START_MS));
}

/* An operator who gives it a tenth of the work means it. */
static void a_weight_is_a_part_of_the_speed(void **state)
{
    (void)state;
    r->replicas[SLOW].weight = 0.1; /* a hundredth of all */
    node_router_due_placed(&r->replicas[SLOW], 1500, START_MS);
    assert_false(is_due(START_MS));
    r->replicas[SLOW].weight = 1;
    assert_true(is_due(START_MS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_slow_one_has_its_part_and_no_more, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_placed_long_ago_counts_little, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_line_no_due, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_has_a_line_itself_is_not_due, set_up, tear_down),
        cmocka_unit_test_setup_teardown(half_as_fast_is_not_slow, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_the_others_hold_is_not_computed_again, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(no_adapter_is_loaded_for_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_weight_is_a_part_of_the_speed, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
