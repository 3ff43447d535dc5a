#include "tests/lib/test.h"

#include "base/prng.h"

/* The reference implementation's first outputs from the state 1, 2, 3, 4. */
static void test_known_answers(void **state)
{
    (void)state;
    struct prng p = {.state = {1, 2, 3, 4}};
    assert_true(prng_next(&p) == 11520u);
    assert_true(prng_next(&p) == 0u);
    assert_true(prng_next(&p) == 1509978240u);
    assert_true(prng_next(&p) == 1215971899390074240u);
}

static void test_seeds_differ_and_repeat(void **state)
{
    (void)state;
    struct prng a;
    struct prng b;
    struct prng c;
    prng_seed(&a, 0);
    prng_seed(&b, 0);
    prng_seed(&c, 1);
    unsigned equal = 0;
    for (int i = 0; i < 1000; i++) {
        uint64_t x = prng_next(&a);
        assert_true(x == prng_next(&b));
        equal += x == prng_next(&c);
    }
    assert_int_equal(equal, 0);
}

static void test_below_is_uniform(void **state)
{
    (void)state;
    struct prng p;
    prng_seed(&p, 42);
    unsigned counts[7] = {0};
    for (int i = 0; i < 70000; i++)
        counts[prng_below(&p, 7)]++;
    for (int i = 0; i < 7; i++)
        assert_in_range(counts[i], 9500, 10500); /* five standard deviations */
    for (int i = 0; i < 100; i++)
        assert_int_equal(prng_below(&p, 1), 0);
    for (int i = 0; i < 100; i++)
        assert_true(prng_below(&p, UINT64_MAX) < UINT64_MAX);
}

static void test_unit(void **state)
{
    (void)state;
    struct prng p;
    prng_seed(&p, 7);
    double sum = 0;
    for (int i = 0; i < 100000; i++) {
        double u = prng_unit(&p);
        assert_true(u >= 0 && u < 1);
        sum += u;
    }
    assert_true(sum > 49500 && sum < 50500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),
        cmocka_unit_test(test_seeds_differ_and_repeat),
        cmocka_unit_test(test_below_is_uniform),
        cmocka_unit_test(test_unit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
