#include "tests/lib/test.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/prng.h"

static void test_grows(void **state)
{
    (void)state;
    struct buf b = {0};
    for (int i = 0; i < 1000; i++)
        assert_int_equal(buf_append_char(&b, (char)('a' + i % 26)), 0);
    assert_int_equal(b.len, 1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(b.at[i], 'a' + i % 26);
    buf_clear(&b);
    assert_int_equal(b.len, 0);
    assert_true(b.cap >= 1000);
    buf_free(&b);
    assert_null(b.at);
}

static void test_limit(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 100);
    assert_int_equal(buf_append(&b, "0123456789", 10), 0);
    char big[91] = {0};
    assert_int_equal(buf_append(&b, big, sizeof big), ERR_LIMIT);
    assert_slice_equal(buf_slice(&b), "0123456789");
    assert_int_equal(buf_append(&b, big, 90), 0);
    assert_int_equal(b.len, 100);
    assert_true(b.cap <= 100);
    assert_int_equal(buf_append_char(&b, 'x'), ERR_LIMIT);
    assert_int_equal(buf_reserve(&b, SIZE_MAX), ERR_LIMIT);
    assert_int_equal(b.len, 100);
    buf_free(&b);
    assert_int_equal(b.max, 100); /* the limit outlives the bytes */
}

static void test_printf(void **state)
{
    (void)state;
    struct buf b = {0};
    assert_int_equal(buf_printf(&b, "%s=%d", "a", 1), 0);
    assert_int_equal(buf_printf(&b, ";%0100d", 7), 0);
    assert_int_equal(b.len, 3 + 101);
    assert_int_equal(b.at[b.len - 1], '7');
    buf_free(&b);
    buf_init(&b, 4);
    assert_int_equal(buf_printf(&b, "%d", 12345), ERR_LIMIT);
    assert_int_equal(b.len, 0);
    buf_free(&b);
}

static void test_consume(void **state)
{
    (void)state;
    struct buf b = {0};
    assert_int_equal(buf_append_cstr(&b, "hello world"), 0);
    buf_consume(&b, 6);
    assert_slice_equal(buf_slice(&b), "world");
    buf_consume(&b, 0);
    buf_consume(&b, 5);
    assert_int_equal(b.len, 0);
    buf_free(&b);
}

/* Compares random appends and consumes with a plain array. */
static void test_random(void **state)
{
    (void)state;
    static char model[1 << 16];
    size_t len = 0;
    struct prng prng;
    prng_seed(&prng, 1);
    struct buf b;
    buf_init(&b, sizeof model);
    for (int step = 0; step < 20000; step++) {
        char chunk[300];
        size_t n = prng_below(&prng, sizeof chunk);
        memset(chunk, (int)prng_below(&prng, 256), n);
        if (prng_below(&prng, 2) == 0) {
            int err = buf_append(&b, chunk, n);
            assert_int_equal(err, len + n <= sizeof model ? 0 : ERR_LIMIT);
            if (err == 0) {
                memcpy(model + len, chunk, n);
                len += n;
            }
        } else {
            n = n < len ? n : len;
            buf_consume(&b, n);
            memmove(model, model + n, len - n);
            len -= n;
        }
        assert_true(slice_equal(buf_slice(&b), slice_of(model, len)));
        assert_true(b.len <= b.cap && b.cap <= b.max);
    }
    buf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grows),  cmocka_unit_test(test_limit),
        cmocka_unit_test(test_printf), cmocka_unit_test(test_consume),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
