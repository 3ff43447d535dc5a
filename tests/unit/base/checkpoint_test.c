#include "tests/lib/test.h"

#include "base/checkpoint.h"

static void test_weights(void **state)
{
    (void)state;
    static const uint32_t first[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
    for (unsigned i = 0; i < sizeof first / sizeof *first; i++)
        assert_int_equal(checkpoint_weight((uint8_t)i), first[i]);
    for (unsigned code = 1; code <= CHECKPOINT_CODE_MAX; code++)
        assert_true(checkpoint_weight((uint8_t)code) > checkpoint_weight((uint8_t)(code - 1)));
}

/* A position is the sum of all weights up to there; codes never fall. */
static void test_positions_are_sums_of_weights(void **state)
{
    (void)state;
    uint32_t sum = 0;
    for (unsigned i = 0; i < CHECKPOINT_MAX; i++) {
        assert_in_range(checkpoint_code(i), 0, CHECKPOINT_CODE_MAX);
        if (i > 0)
            assert_true(checkpoint_code(i) >= checkpoint_code(i - 1));
        sum += checkpoint_weight(checkpoint_code(i));
        assert_int_equal(checkpoint_blocks(i), sum);
    }
}

/* Steps are single blocks at first, and later between 1/40 and 1/24 of the position: only little of
 * a shared prefix lies beyond the last checkpoint. */
static void test_steps_are_a_share_of_the_position(void **state)
{
    (void)state;
    for (unsigned i = 1; i < CHECKPOINT_MAX; i++) {
        uint32_t before = checkpoint_blocks(i - 1);
        uint32_t step = checkpoint_blocks(i) - before;
        if (before < 48)
            assert_int_equal(step, 1);
        else
            assert_true(step * 24 <= before && step * 40 >= before);
    }
}

static void test_reach(void **state)
{
    (void)state;
    enum { TOKENS = 100000, BYTES_PER_TOKEN = 4 };
    unsigned points = 0;
    while (checkpoint_blocks(points) <= TOKENS * BYTES_PER_TOKEN / CHECKPOINT_BLOCK_BYTES)
        points++;
    assert_in_range(points, 140, 155); /* about 148 */
    uint64_t reach = (uint64_t)checkpoint_blocks(CHECKPOINT_MAX - 1) * CHECKPOINT_BLOCK_BYTES;
    assert_true(reach >= 64u << 20);
}

/* The rule by which the table in the source was computed. */
static void the_table_follows_the_rule(void **state)
{
    (void)state;
    uint32_t at = 0;
    uint8_t code = 0;
    for (unsigned i = 0; i < CHECKPOINT_MAX; i++) {
        while (code < CHECKPOINT_CODE_MAX && checkpoint_weight((uint8_t)(code + 1)) <= at / 24)
            code++;
        at += checkpoint_weight(code);
        assert_int_equal(checkpoint_blocks(i), at);
        assert_int_equal(checkpoint_code(i), code);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_follows_the_rule),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_positions_are_sums_of_weights),
        cmocka_unit_test(test_steps_are_a_share_of_the_position),
        cmocka_unit_test(test_reach),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
