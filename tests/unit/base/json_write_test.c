#include "base/json_write.h"

#include <jansson.h>
#include <math.h>

#include "base/err.h"
#include "tests/lib/test.h"

static void nesting_and_commas(void **state)
{
    (void)state;
    struct buf out = {0};
    struct json_writer w = json_writer_of(&out);
    json_object_begin(&w);
    json_key(&w, "a");
    json_u64(&w, UINT64_MAX);
    json_key(&w, "b");
    json_array_begin(&w);
    json_i64(&w, INT64_MIN);
    json_array_begin(&w);
    json_array_end(&w);
    json_object_begin(&w);
    json_object_end(&w);
    json_double(&w, 0.25);
    json_double(&w, INFINITY);
    json_double(&w, NAN);
    json_bool(&w, true);
    json_nil(&w);
    json_raw(&w, SLICE("[1]"));
    json_array_end(&w);
    json_key_slice(&w, SLICE("c\""));
    json_cstr(&w, "d");
    json_put_u64(&w, "e", 7);
    json_object_end(&w);
    assert_int_equal(json_writer_finish(&w), 0);
    assert_slice_equal(buf_slice(&out),
                       "{\"a\":18446744073709551615,\"b\":[-9223372036854775808,[],{},0.25,null,"
                       "null,true,null,[1]],\"c\\\"\":\"d\",\"e\":7}");
    buf_free(&out);
}

static void members(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 0);
    struct json_writer w = json_writer_of(&out);
    json_object_begin(&w);
    json_put_slice(&w, "a", SLICE("x\""));
    json_put_cstr(&w, "b", "y");
    json_put_u64(&w, "c", UINT64_MAX);
    json_put_known(&w, "d", true, 0);
    json_put_known(&w, "e", false, 7);
    json_put_i64(&w, "f", -3);
    json_put_double(&w, "g", 0.5);
    json_put_bool(&w, "h", true);
    json_put_cstr(&w, "", NULL);
    json_put_object(&w, "i");
    json_put_array(&w, "j");
    json_array_end(&w);
    json_object_end(&w);
    json_object_end(&w);
    assert_int_equal(json_writer_finish(&w), 0);
    assert_slice_equal(buf_slice(&out),
                       "{\"a\":\"x\\\"\",\"b\":\"y\",\"c\":18446744073709551615,\"d\":0,"
                       "\"e\":null,\"f\":-3,\"g\":0.5,\"h\":true,\"\":\"\",\"i\":{\"j\":[]}}");
    buf_free(&out);
}

static void strings(void **state)
{
    (void)state;
    static const struct {
        struct slice in;
        const char *want;
    } cases[] = {
        {{"", 0}, "\"\""},
        {{"a\"b\\c/", 6}, "\"a\\\"b\\\\c/\""},
        {{"\b\f\n\r\t", 5}, "\"\\b\\f\\n\\r\\t\""},
        {{"\0\x1f\x7f", 3}, "\"\\u0000\\u001f\\u007f\""},
        {{"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", 9}, "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\""},
        {{"\x80", 1}, "\"\xef\xbf\xbd\""},
        {{"\xc3", 1}, "\"\xef\xbf\xbd\""},
        {{"\xc0\x80", 2}, "\"\xef\xbf\xbd\xef\xbf\xbd\""},
        {{"\xed\xa0\x80", 3}, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
        {{"\xf0\x9f\x98", 3}, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
        {{"\xf4\x90\x80\x80", 4}, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    };
    struct buf out = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        buf_clear(&out);
        assert_int_equal(json_string_append(&out, cases[i].in), 0);
        assert_slice_equal(buf_slice(&out), cases[i].want);
    }
    buf_free(&out);
}

/* Another parser reads the output back, for any bytes. */
static void random_strings_are_valid_json(void **state)
{
    (void)state;
    struct buf out = {0};
    uint64_t seed = 3;
    for (int round = 0; round < 20000; round++) {
        char bytes[24];
        size_t len = (size_t)round % sizeof bytes;
        for (size_t i = 0; i < len; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            static const unsigned char likely[] = {0xf0, 0xe0, 0xed, 0xc2, 0x9f, 0x80, 0xbf, 0x90};
            unsigned draw = (unsigned)(seed >> 40);
            bytes[i] = (char)(draw & 1 ? likely[draw >> 1 & 7] : draw >> 4);
        }
        buf_clear(&out);
        assert_int_equal(json_string_append(&out, slice_of(bytes, len)), 0);
        json_t *value = json_loadb(out.at, out.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        assert_non_null(value);
        json_decref(value);
    }
    buf_free(&out);
}

static void a_full_buffer_is_restored(void **state)
{
    (void)state;
    for (size_t room = 2; room < 20; room++) {
        struct buf out;
        buf_init(&out, room);
        assert_int_equal(buf_append_cstr(&out, "x"), 0);
        struct json_writer w = json_writer_of(&out);
        json_object_begin(&w);
        json_key(&w, "key");
        json_cstr(&w, "value, and some more");
        json_object_end(&w);
        assert_int_equal(json_writer_finish(&w), ERR_LIMIT);
        assert_slice_equal(buf_slice(&out), "x");
        buf_free(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nesting_and_commas),
        cmocka_unit_test(members),
        cmocka_unit_test(strings),
        cmocka_unit_test(random_strings_are_valid_json),
        cmocka_unit_test(a_full_buffer_is_restored),
    };
    return cmocka_run_group_tests_name("base/json_write", tests, NULL, NULL);
}
