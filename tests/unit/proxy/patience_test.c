#include "node/proxy/exchange/exchange_internal.h"
#include "tests/lib/test.h"

/* Ten times the prediction, within 30 s and 300 s. */
static void the_prediction_says_how_long(void **state)
{
    (void)state;
    assert_int_equal(exchange_token_wait_ms(0.1), 30000);
    assert_int_equal(exchange_token_wait_ms(5), 50000);
    assert_int_equal(exchange_token_wait_ms(60), 300000);
}

static void what_is_not_known_has_the_most(void **state)
{
    (void)state;
    assert_int_equal(exchange_token_wait_ms(0), 300000);
}

/* 20,000 tokens at 50 a second, with an empty queue: 400 s are honest. */
static void a_laptop_is_not_cut(void **state)
{
    (void)state;
    assert_int_equal(exchange_token_wait_ms(400), 1200000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_prediction_says_how_long),
        cmocka_unit_test(what_is_not_known_has_the_most),
        cmocka_unit_test(a_laptop_is_not_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
