#include "node/proxy/exchange/exchange_internal.h"
#include "tests/lib/test.h"

/* Ten times the prediction, within 30 s and 300 s. */
static void the_wait_is_ten_times_the_prediction(void **state)
{
    (void)state;
    assert_int_equal(exchange_token_wait_ms(0.1), 30000);
    assert_int_equal(exchange_token_wait_ms(5), 50000);
    assert_int_equal(exchange_token_wait_ms(60), 300000);
}

static void an_unknown_wait_is_the_longest(void **state)
{
    (void)state;
    assert_int_equal(exchange_token_wait_ms(0), 300000);
}

/* 20,000 tokens at 50 a second, with an empty queue: 400 s are honest. */
static void slow_hardware_gets_a_long_wait(void **state)
{
    (void)state;
    assert_int_equal(exchange_token_wait_ms(400), 1200000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_wait_is_ten_times_the_prediction),
        cmocka_unit_test(an_unknown_wait_is_the_longest),
        cmocka_unit_test(slow_hardware_gets_a_long_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
