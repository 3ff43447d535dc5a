#include "node/admin/fill.h"

#include <stdio.h>

#include "base/check.h"
#include "tests/lib/test.h"

/* {a} has a value; all other fields have none. */
static bool put(void *context, struct slice field, struct admin_fill *to)
{
    bool there = slice_equal(field, SLICE("a"));
    admin_fill_put(to, there ? slice_of_cstr(context) : SLICE(""));
    return there;
}

static void becomes(const char *pattern, const char *value, size_t size, const char *expected)
{
    char out[64], value_of[64];
    struct admin_fill t = admin_fill_begin(out, size);
    (void)snprintf(value_of, sizeof value_of, "%s", value);
    admin_fill_pattern(&t, pattern, put, value_of);
    assert_string_equal(out, expected);
    assert_int_equal(t.len, strlen(expected));
}

static void brackets_disappear_with_a_missing_value(void **state)
{
    (void)state;
    becomes("Replica {a} failed[: {b}].", "x:1", 64, "Replica x:1 failed.");
    becomes("Replica {a}[ at {a}] failed[: {a}, {b}][ ({a})].", "x", 64,
            "Replica x at x failed (x).");
    becomes("plain", "", 64, "plain");
    becomes("", "", 64, "");
}

static void a_sentence_ends_with_a_single_period(void **state)
{
    (void)state;
    becomes("It says: {a}.", "no.", 64, "It says: no.");
    becomes("It asks: {a}.", "why?", 64, "It asks: why?");
    becomes("It says {a}.", "no", 64, "It says no.");
}

static void long_sentences_are_cut(void **state)
{
    (void)state;
    becomes("Replica {a} failed.", "0123456789", 12, "Replica 012");
    becomes("{a}[ and {b}]", "0123456789", 6, "01234");
    becomes("abc", "", 1, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(brackets_disappear_with_a_missing_value),
        cmocka_unit_test(a_sentence_ends_with_a_single_period),
        cmocka_unit_test(long_sentences_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
