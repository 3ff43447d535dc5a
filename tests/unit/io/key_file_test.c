#include "node/io/key_file.h"

#include "tests/lib/test.h"

static void a_key_is_one_line(void **state)
{
    (void)state;
    struct slice key;
    static const char *const good[] = {"sk-1", "sk-1\n", "sk-1\r\n", "sk-1 \t\n\n"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_null(key_file_parse(slice_of_cstr(good[i]), &key));
        assert_slice_equal(key, "sk-1");
    }
}

/* Contents with an end of the header line, or invalid in any header. */
static void keys_invalid_in_a_header_are_refused(void **state)
{
    (void)state;
    struct slice key;
    static const struct {
        const char *text, *words;
    } bad[] = {
        {"", "empty"},
        {" \r\n\t", "empty"},
        {"a\nb", "one line"},
        {"a\rb", "one line"},
        {"a\r\nX-Evil: 1\r\n", "one line"},
        {"\na", "one line"},
        {"a b", "has a space in it"},
        {" a", "has a space in it"},
        {"a\tb\n", "has a space in it"},
        {"a\x01", "ASCII"},
        {"a\x7f", "ASCII"},
        {"caf\xc3\xa9", "ASCII"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const char *wrong = key_file_parse(slice_of_cstr(bad[i].text), &key);
        assert_non_null(wrong);
        assert_non_null(strstr(wrong, bad[i].words));
    }
    assert_non_null(key_file_parse(SLICE("a\0b"), &key));
    static char text[KEY_FILE_BYTES_MAX + 2];
    memset(text, 'k', sizeof text);
    text[KEY_FILE_BYTES_MAX] = '\n';
    assert_null(key_file_parse(slice_of(text, KEY_FILE_BYTES_MAX + 1), &key));
    assert_int_equal(key.len, KEY_FILE_BYTES_MAX);
    text[KEY_FILE_BYTES_MAX] = 'k';
    assert_non_null(key_file_parse(slice_of(text, KEY_FILE_BYTES_MAX + 1), &key));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_one_line),
        cmocka_unit_test(keys_invalid_in_a_header_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
