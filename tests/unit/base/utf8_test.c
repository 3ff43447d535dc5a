#include "base/utf8.h"

#include "tests/lib/test.h"

/* Tests the encoding of every character, and that no other bytes are valid. */
static size_t encode(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)((0xf00 >> n & 0xff) | c);
    return n;
}

static void every_character(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < 0x200000; c++) {
        char text[5] = {0};
        size_t n = encode(c, text);
        bool exists = c <= 0x10ffff && !(c >= 0xd800 && c <= 0xdfff);
        assert_int_equal(utf8_length(slice_of(text, n)), exists ? n : 0);
        assert_int_equal(utf8_length(slice_of(text, 5)), exists ? n : 0); /* zeros may follow */
        if (n > 1)
            assert_int_equal(utf8_length(slice_of(text, n - 1)), 0); /* cut */
    }
}

static void malformed_utf8_is_refused(void **state)
{
    (void)state;
    static const char *const none[] = {
        "\x80",         "\xbf",         "\xc0\x80",         "\xc1\xbf",         "\xe0\x80\x80",
        "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
        "\xff",         "\xc3(",        "\xe2\x28\xa1",     "\xe2\x82(",        "\xf0\x9f\x98("};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        assert_int_equal(utf8_length(slice_of_cstr(none[i])), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_character),
        cmocka_unit_test(malformed_utf8_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
