#include "node/route/reason.h"

#include "node/route/policy.h"
#include "tests/lib/test.h"

static void test_reasons(void **state)
{
    (void)state;
    struct node_candidate c[3] = {0};
    assert_int_equal(node_reason_of(c, 1, 0), NODE_REASON_ONLY);
    assert_int_equal(node_reason_of(c, 3, 1), NODE_REASON_COLD);
    c[0].cached_tokens = c[1].cached_tokens = 64;
    assert_int_equal(node_reason_of(c, 3, 1), NODE_REASON_CACHED);
    assert_int_equal(node_reason_of(c, 3, 2), NODE_REASON_CHEAPER);
    c[2].cached_tokens = 65;
    assert_int_equal(node_reason_of(c, 3, 1), NODE_REASON_CHEAPER);
    c[2].is_due = true;
    assert_int_equal(node_reason_of(c, 3, 2), NODE_REASON_DUE);
    assert_int_equal(node_reason_of(c, 3, 1), NODE_REASON_CHEAPER);
    assert_string_equal(node_reason_text(NODE_REASON_CACHED), "cached");
    for (unsigned i = 0; i < NODE_REASONS; i++)
        assert_non_null(node_reason_text((enum node_reason)i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reasons)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
