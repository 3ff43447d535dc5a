/* Included by every unit test: cmocka needs these headers before its own. */
#ifndef TESTS_LIB_TEST_H
#define TESTS_LIB_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/slice.h"

/* Rounds of a test with random or listed cases. Sanitizers take about six times as long, and find
 * their errors in fewer rounds. */
#ifdef __SANITIZE_ADDRESS__
#define TEST_ROUNDS(n) (((n) + 3) / 4)
#else
#define TEST_ROUNDS(n) (n)
#endif

/* Fails with both texts where they differ. */
#define assert_slice_equal(actual, literal)                                                        \
    do {                                                                                           \
        struct slice slice_ = (actual);                                                            \
        char text_[1024];                                                                          \
        assert_true(slice_to_cstr(slice_, text_, sizeof text_));                                   \
        assert_string_equal(text_, (literal));                                                     \
    } while (0)

/* Runs a single test of a program: UNIT_TEST=vectors build/tests/unit/http/json_test */
static void __attribute__((constructor)) test_filter(void)
{
    const char *name = getenv("UNIT_TEST");
    if (name != NULL)
        cmocka_set_test_filter(name);
}

#endif
