#include "tests/lib/test.h"

#include "base/err.h"

static void test_equal(void **state)
{
    (void)state;
    assert_true(slice_equal(SLICE("abc"), SLICE("abc")));
    assert_false(slice_equal(SLICE("abc"), SLICE("abd")));
    assert_false(slice_equal(SLICE("abc"), SLICE("ab")));
    assert_true(slice_equal((struct slice){0}, SLICE("")));
    assert_true(slice_equal_nocase(SLICE("Content-LENGTH"), SLICE("content-length")));
    assert_false(slice_equal_nocase(SLICE("a"), SLICE("ab")));
    /* Case folding affects only letters: '@' and '`' differ by the same bit as 'A' and 'a'. */
    assert_false(slice_equal_nocase(SLICE("@"), SLICE("`")));
    assert_false(slice_equal_nocase(SLICE("\xc9"), SLICE("\xe9")));
}

static void test_prefix_and_suffix(void **state)
{
    (void)state;
    assert_true(slice_starts_with(SLICE("http://x"), SLICE("http://")));
    assert_false(slice_starts_with(SLICE("http"), SLICE("http://")));
    assert_true(slice_starts_with(SLICE("x"), SLICE("")));
    assert_true(slice_ends_with(SLICE("a.json"), SLICE(".json")));
    assert_false(slice_ends_with(SLICE("json"), SLICE(".json")));
    assert_true(slice_ends_with(SLICE(""), SLICE("")));
}

static void test_find_skip_cut(void **state)
{
    (void)state;
    assert_int_equal(slice_find(SLICE("a:b:c"), ':'), 1);
    assert_int_equal(slice_find(SLICE("abc"), ':'), 3);
    assert_int_equal(slice_find((struct slice){0}, ':'), 0);
    assert_slice_equal(slice_skip(SLICE("abc"), 2), "c");
    assert_slice_equal(slice_skip(SLICE("abc"), 99), "");
    struct slice rest = SLICE("a,,b");
    assert_slice_equal(slice_cut(&rest, ','), "a");
    assert_slice_equal(slice_cut(&rest, ','), "");
    assert_slice_equal(slice_cut(&rest, ','), "b");
    assert_int_equal(rest.len, 0);
    assert_slice_equal(slice_cut(&rest, ','), "");
}

static void test_trim(void **state)
{
    (void)state;
    assert_slice_equal(slice_trim(SLICE(" \t a b\t ")), "a b");
    assert_slice_equal(slice_trim(SLICE(" \t ")), "");
    assert_slice_equal(slice_trim(SLICE("\r\na")), "\r\na"); /* OWS is only spaces and tabs */
}

static void test_numbers(void **state)
{
    (void)state;
    uint64_t n = 7;
    assert_int_equal(slice_to_u64(SLICE("0"), &n), 0);
    assert_int_equal(n, 0);
    assert_int_equal(slice_to_u64(SLICE("18446744073709551615"), &n), 0);
    assert_true(n == UINT64_MAX);
    n = 7;
    assert_int_equal(slice_to_u64(SLICE("18446744073709551616"), &n), ERR_RANGE);
    assert_int_equal(slice_to_u64(SLICE("99999999999999999999"), &n), ERR_RANGE);
    assert_int_equal(slice_to_u64(SLICE(""), &n), ERR_SYNTAX);
    assert_int_equal(slice_to_u64(SLICE("+1"), &n), ERR_SYNTAX);
    assert_int_equal(slice_to_u64(SLICE(" 1"), &n), ERR_SYNTAX);
    assert_int_equal(slice_to_u64(SLICE("1_0"), &n), ERR_SYNTAX);
    assert_int_equal(slice_to_u64(SLICE("0x1"), &n), ERR_SYNTAX);
    assert_int_equal(n, 7); /* errors leave `n` unchanged */
}

static void test_to_cstr(void **state)
{
    (void)state;
    char text[4];
    assert_true(slice_to_cstr(SLICE("abc"), text, sizeof text));
    assert_string_equal(text, "abc");
    assert_false(slice_to_cstr(SLICE("abcd"), text, sizeof text));
    assert_string_equal(text, "abc");
    assert_true(slice_to_cstr((struct slice){0}, text, sizeof text));
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal),         cmocka_unit_test(test_prefix_and_suffix),
        cmocka_unit_test(test_find_skip_cut), cmocka_unit_test(test_trim),
        cmocka_unit_test(test_numbers),       cmocka_unit_test(test_to_cstr),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
