#include "http/json.h"

#include "tests/lib/test.h"

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/prng.h"
#include "tests/lib/files.h"

enum { TEXT_ROOM = 1 << 20 };

/* Runs the tokenizer over parts and writes a readable trace. `cuts` are the ends of the parts. Text
 * is taken `room` bytes at a time. */
static bool trace(const char *bytes, const size_t *cuts, size_t cut_count, size_t room,
                  struct buf *out)
{
    static const char names[] = "?+{}[]KS#tfn";
    static char text[TEXT_ROOM + HTTP_JSON_SLACK];
    struct http_json j;
    http_json_init(&j);
    out->len = 0;
    size_t from = 0;
    for (size_t i = 0; i < cut_count; i++) {
        char *part = malloc(cuts[i] - from + 1); /* so that ASan sees reads beyond the end */
        memcpy(part, bytes + from, cuts[i] - from);
        struct slice in = slice_of(part, cuts[i] - from);
        from = cuts[i];
        for (;;) {
            if (http_json_in_text(&j)) {
                size_t n = http_json_text(&j, &in, text, room);
                assert_true(n <= room);
                assert_int_equal(buf_append(out, text, n), 0);
                if (http_json_in_text(&j) && in.len == 0)
                    break;
                if (!http_json_in_text(&j))
                    assert_int_equal(buf_append_char(out, '\''), 0);
                continue;
            }
            enum http_json_token token = http_json_next(&j, &in);
            if (token <= HTTP_JSON_MORE)
                break;
            assert_int_equal(buf_append_char(out, names[token]), 0);
            if (token == HTTP_JSON_NUMBER)
                assert_int_equal(buf_append_slice(out, http_json_number(&j)), 0);
        }
        free(part);
    }
    return http_json_finish(&j);
}

static bool trace_whole(const char *bytes, size_t len, struct buf *out)
{
    return trace(bytes, &len, 1, TEXT_ROOM, out);
}

/* Every split in two, single bytes, and random splits give the same trace. */
static void check_splits(const char *bytes, size_t len)
{
    struct buf whole = {.at = NULL};
    struct buf split = {.at = NULL};
    bool accepted = trace_whole(bytes, len, &whole);
    struct prng prng;
    prng_seed(&prng, len);
    size_t *cuts = calloc(len + 2, sizeof *cuts);
    size_t rounds = len < 4096 ? len + 2 : 50;
    for (size_t round = 0; round < rounds; round++) {
        size_t count = 0;
        if (round == 0) {
            for (size_t i = 1; i <= len; i++)
                cuts[count++] = i;
        } else if (len < 4096) {
            cuts[count++] = round - 1;
        } else {
            for (size_t at = 0; at < len; at += 1 + prng_below(&prng, 3000))
                cuts[count++] = at;
        }
        cuts[count++] = len;
        size_t room = round % 3 == 0 ? 1 : round % 3 == 1 ? 37 : TEXT_ROOM;
        assert_int_equal(trace(bytes, cuts, count, room, &split), accepted);
        if (accepted)
            assert_true(slice_equal(buf_slice(&whole), buf_slice(&split)));
    }
    free(cuts);
    buf_free(&whole);
    buf_free(&split);
}

static void vectors(void **state)
{
    (void)state;
    static const char path[] = VECTORS "/json/test_parsing";
    DIR *dir = opendir(path);
    assert_non_null(dir);
    const struct dirent *entry;
    unsigned counts[3] = {0, 0, 0};
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        char file[1400];
        (void)snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        struct buf bytes = {.at = NULL};
        struct buf out = {.at = NULL};
        assert_int_equal(file_read(file, &bytes), 0);
        bool accepted = trace_whole(bytes.len == 0 ? "" : bytes.at, bytes.len, &out);
        if (entry->d_name[0] != 'i' && accepted != (entry->d_name[0] == 'y'))
            fail_msg("%s: %s", entry->d_name, accepted ? "accepted" : "refused");
        counts[entry->d_name[0] == 'y' ? 0 : entry->d_name[0] == 'n' ? 1 : 2]++;
        if (bytes.len > 0)
            check_splits(bytes.at, bytes.len);
        buf_free(&bytes);
        buf_free(&out);
    }
    (void)closedir(dir);
    print_message("%u accepted, %u refused, %u either way\n", counts[0], counts[1], counts[2]);
    assert_true(counts[0] > 90 && counts[1] > 180);
}

static void expect(const char *json, const char *wanted)
{
    struct buf out = {.at = NULL};
    assert_true(trace_whole(json, strlen(json), &out));
    assert_slice_equal(buf_slice(&out), wanted);
    check_splits(json, strlen(json));
    buf_free(&out);
}

static void refuse(const char *json)
{
    struct buf out = {.at = NULL};
    assert_false(trace_whole(json, strlen(json), &out));
    check_splits(json, strlen(json));
    buf_free(&out);
}

static void tokens(void **state)
{
    (void)state;
    expect("{\"a\" : [1,-2.5e+3 ,true,false,null,\"x\"],\"b\":{}}", "{Ka'[#1#-2.5e+3tfnSx']Kb'{}}");
    expect("[0.10,1E-2]", "[#0.10#1E-2]");
    refuse("[1 2]");
    refuse("[1,]");
    refuse("{\"a\":1,}");
    refuse("[]]");
    refuse("[}");
    refuse("\xef\xbb\xbf{}");
    refuse("");
    refuse("{} x");
}

static void escapes(void **state)
{
    (void)state;
    expect("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "S\"\\/\b\f\n\r\t'");
    expect("\"\\u0041\\u00e9\\u4F60\\ud83d\\ude00!\"", "SA\xc3\xa9\xe4\xbd\xa0\xf0\x9f\x98\x80!'");
    expect("\"\\ud83d\"", "S\xed\xa0\xbd'");
    expect("\"\\ud83d\\n\\ude00\"", "S\xed\xa0\xbd\n\xed\xb8\x80'");
    expect("\"\\ud83d\\ud83d\\ude00\"", "S\xed\xa0\xbd\xf0\x9f\x98\x80'");
    refuse("\"\\x\"");
    refuse("\"\\u12g4\"");
    refuse("\"a\nb\"");
    /* an escape at every place of a block, and an escaped backslash before the closing quote */
    for (size_t before = 0; before < 70; before++) {
        char json[512];
        char wanted[512];
        char plain[80];
        memset(plain, 'p', before);
        plain[before] = '\0';
        (void)snprintf(json, sizeof json, "[\"%s\\\\\",\"%s\\\"\\n%s\\\\\\\"\"]", plain, plain,
                       plain);
        (void)snprintf(wanted, sizeof wanted, "[S%s\\'S%s\"\n%s\\\"']", plain, plain, plain);
        expect(json, wanted);
        /* If a string ends within a block, the rest of an escape is put out before the end. */
        (void)snprintf(json, sizeof json, "[\"%s\\ud83d\\ude00\",\"%s\\ud83d\",\"%070d\"]", plain,
                       plain, 0);
        (void)snprintf(wanted, sizeof wanted, "[S%s\xf0\x9f\x98\x80'S%s\xed\xa0\xbd'S%070d']",
                       plain, plain, 0);
        expect(json, wanted);
    }
}

/* A random string written with random escapes equals jansson's reading. */
static void random_strings(void **state)
{
    (void)state;
    struct prng prng;
    prng_seed(&prng, 7);
    struct buf json = {.at = NULL};
    struct buf out = {.at = NULL};
    for (int round = 0; round < 2000; round++) {
        json.len = 0;
        assert_int_equal(buf_append_cstr(&json, "[\""), 0);
        size_t pieces = prng_below(&prng, 60);
        for (size_t i = 0; i < pieces; i++) {
            static const char *const some[] = {"\\n",
                                               "\\\"",
                                               "\\\\",
                                               "\\/",
                                               "\\u0041",
                                               "\\u20ac",
                                               "\\ud83d\\ude00",
                                               "\xe4\xbd\xa0",
                                               "plain",
                                               "a much longer run without any escape in it at all"};
            assert_int_equal(buf_append_cstr(&json, some[prng_below(&prng, 10)]), 0);
        }
        assert_int_equal(buf_append_cstr(&json, "\"]"), 0);
        json_t *doc = json_loadb(json.at, json.len, 0, NULL);
        assert_non_null(doc);
        assert_true(trace_whole(json.at, json.len, &out));
        const json_t *text = json_array_get(doc, 0);
        assert_int_equal(out.len, json_string_length(text) + 4);
        assert_memory_equal(out.at + 2, json_string_value(text), json_string_length(text));
        if (round % 50 == 0)
            check_splits(json.at, json.len);
        json_decref(doc);
    }
    buf_free(&json);
    buf_free(&out);
}

static void limits(void **state)
{
    (void)state;
    char json[2 * HTTP_JSON_DEPTH_MAX + 8];
    struct buf out = {.at = NULL};
    for (size_t depth = HTTP_JSON_DEPTH_MAX; depth <= HTTP_JSON_DEPTH_MAX + 1; depth++) {
        memset(json, '[', depth);
        memset(json + depth, ']', depth);
        assert_int_equal(trace_whole(json, 2 * depth, &out), depth == HTTP_JSON_DEPTH_MAX);
    }
    for (size_t len = HTTP_JSON_NUMBER_MAX; len <= HTTP_JSON_NUMBER_MAX + 1; len++) {
        memset(json, '1', len + 1);
        json[0] = '[';
        json[len + 1] = ']';
        assert_int_equal(trace_whole(json, len + 2, &out), len == HTTP_JSON_NUMBER_MAX);
        check_splits(json, len + 2);
    }
    buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors),        cmocka_unit_test(tokens), cmocka_unit_test(escapes),
        cmocka_unit_test(random_strings), cmocka_unit_test(limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
