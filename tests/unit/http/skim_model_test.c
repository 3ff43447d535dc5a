/* The skimmer against a slow and simple model, on vectors and random conversations. */
#include "http/skim.h"

#include <dirent.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/checkpoint.h"
#include "base/prng.h"
#include "tests/lib/files.h"
#include "tests/lib/skim_help.h"
#include "tests/lib/skim_model.h"

enum { ROUNDS = TEST_ROUNDS(500) };

/* True if the body, whole and split, has the model's chain. False if jansson refuses the body. */
static bool agrees(const char *body, size_t len)
{
    json_t *doc = model_parse(body, len);
    if (doc == NULL)
        return false;
    static struct chain wanted;
    model_chain(&secret, doc, skim_rendering, &wanted);
    json_decref(doc);
    size_t cuts = len < 600 ? len : 12;
    for (size_t cut = 0; cut <= cuts; cut++) {
        if (cut == 1)
            skim_split(body, len, 0, 1);
        else
            skim_split(body, len, cut < 600 && len < 600 ? cut : cut * len / 13, cut * 37);
        if (!skim.understood || !chain_equal(http_skim_chain(&skim), &wanted))
            fail_msg("cut %zu of: %.*s", cut, (int)(len < 2000 ? len : 2000), body);
    }
    for (unsigned i = 0; i < wanted.length; i++) {
        uint32_t before = i == 0 ? 0 : wanted.points[i - 1].blocks;
        assert_int_equal(wanted.points[i].blocks - before,
                         checkpoint_weight(wanted.points[i].code));
    }
    return true;
}

/* --- vectors -----------------------------------------------------------------------------------
 */

static void vectors(void **state)
{
    (void)state;
    static const char *const frames[] = {
        "{\"messages\":[{\"role\":\"user\",\"content\":%s}]}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"x\",\"tool_calls\":%s}]}",
        "{\"tools\":[%s],\"prompt\":\"x\"}",
        "{\"prompt\":%s}",
        "{\"system\":[{\"type\":\"text\",\"text\":%s}]}",
        "{\"temperature\":%s}",
        "%s",
    };
    static const char path[] = VECTORS "/json/test_parsing";
    DIR *dir = opendir(path);
    assert_non_null(dir);
    const struct dirent *entry;
    unsigned agreed = 0;
    while ((entry = readdir(dir)) != NULL) {
        char file[1400];
        (void)snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        struct buf json = {.at = NULL};
        if (entry->d_name[0] == '.' || file_read(file, &json) != 0)
            continue;
        for (size_t i = 0; i < ARRAY_LEN(frames); i++) {
            const char *hole = strstr(frames[i], "%s");
            struct buf body = {.at = NULL};
            assert_int_equal(buf_append(&body, frames[i], (size_t)(hole - frames[i])), 0);
            assert_int_equal(buf_append_slice(&body, buf_slice(&json)), 0);
            assert_int_equal(buf_append_cstr(&body, hole + 2), 0);
            if (body.len == 0)
                continue;
            skim_split(body.at, body.len, 0, 7);
            bool is_object = skim.depth == 0 && body.at[0] == '{';
            if (entry->d_name[0] == 'y' && is_object)
                agreed += agrees(body.at, body.len);
            if (entry->d_name[0] == 'n') { /* some are valid within the frame */
                bool understood = skim.understood;
                json_t *doc = model_parse(body.at, body.len);
                assert_true(doc != NULL || !understood);
                json_decref(doc);
            }
            buf_free(&body);
        }
        buf_free(&json);
    }
    (void)closedir(dir);
    print_message("%u bodies agree\n", agreed);
    assert_true(agreed > 500);
}

/* --- random conversations ----------------------------------------------------------------------
 */

static struct prng prng;

static bool chance(unsigned percent)
{
    return prng_below(&prng, 100) < percent;
}

static void put(struct buf *out, const char *text)
{
    CHECK(buf_append_cstr(out, text) == 0);
}

static void put_space(struct buf *out)
{
    static const char *const spaces[] = {"", "", "", " ", "\n  ", "\t", "\r\n"};
    put(out, spaces[prng_below(&prng, ARRAY_LEN(spaces))]);
}

/* Every character may be written in several ways. */
static void write_string(struct buf *out, const char *text, size_t len)
{
    put(out, "\"");
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        const char *short_form = c == '"'    ? "\\\""
                                 : c == '\\' ? "\\\\"
                                 : c == '\n' ? "\\n"
                                 : c == '\t' ? "\\t"
                                 : c == '/'  ? "\\/"
                                             : NULL;
        if (short_form != NULL && !chance(10))
            put(out, c == '/' && chance(70) ? "/" : short_form);
        else if (c < 0x80 && (c < 0x20 || short_form != NULL || chance(3)))
            CHECK(buf_printf(out, chance(50) ? "\\u%04x" : "\\u%04X", c) == 0);
        else
            CHECK(buf_append_char(out, (char)c) == 0);
    }
    put(out, "\"");
}

static void write_value(struct buf *out, const json_t *v)
{
    put_space(out);
    if (json_is_object(v)) {
        const char *keys[64];
        size_t count = 0;
        const char *key;
        json_t *member;
        json_object_foreach((json_t *)v, key, member)
        {
            keys[count++] = key;
        }
        put(out, "{");
        for (size_t left = count; left > 0; left--) {
            size_t pick = prng_below(&prng, left);
            write_string(out, keys[pick], strlen(keys[pick]));
            put_space(out);
            put(out, ":");
            write_value(out, json_object_get(v, keys[pick]));
            put(out, left > 1 ? "," : "");
            put_space(out);
            keys[pick] = keys[left - 1];
        }
        put(out, "}");
    } else if (json_is_array(v)) {
        put(out, "[");
        for (size_t i = 0; i < json_array_size(v); i++) {
            put(out, i > 0 ? "," : "");
            write_value(out, json_array_get(v, i));
        }
        put(out, "]");
    } else if (json_is_string(v) && json_string_value(v)[0] == MODEL_NUMBER) {
        put(out, json_string_value(v) + 1);
    } else if (json_is_string(v)) {
        write_string(out, json_string_value(v), json_string_length(v));
    } else {
        put(out, json_is_true(v) ? "true" : json_is_false(v) ? "false" : "null");
    }
    put_space(out);
}

static json_t *random_text(size_t len_max)
{
    static const char *const words[] = {"a",
                                        "x-anthropic-billing-header: cch=",
                                        "the quick",
                                        "\n",
                                        "\"quoted\"",
                                        " ",
                                        "C:\\dir\\",
                                        "\xe4\xbd\xa0",
                                        "\t",
                                        "/usr/lib",
                                        "x = y;",
                                        "1234",
                                        "\xf0\x9f\x98\x80",
                                        "brown fox jumps over"};
    struct buf text = {.at = NULL};
    size_t len = prng_below(&prng, len_max + 1);
    while (text.len < len)
        put(&text, words[prng_below(&prng, ARRAY_LEN(words))]);
    json_t *v = json_stringn(text.len == 0 ? "" : text.at, text.len);
    CHECK(v != NULL);
    buf_free(&text);
    return v;
}

static json_t *number(uint64_t value)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%c%llu", MODEL_NUMBER, (unsigned long long)value);
    return json_string(text);
}

static json_t *random_json(unsigned depth)
{
    switch (prng_below(&prng, depth > 4 ? 4 : 6)) {
    case 0:
        return random_text(chance(5) ? 5000 : 40);
    case 1:
        return chance(50) ? number(prng_next(&prng)) : json_string("\x01-1.5E+3");
    case 2:
        return json_boolean(chance(50));
    case 3:
        return json_null();
    case 4: {
        json_t *list = json_array();
        for (unsigned i = (unsigned)prng_below(&prng, 4); i > 0; i--)
            (void)json_array_append_new(list, random_json(depth + 1));
        return list;
    }
    default: {
        static const char *const keys[] = {
            "type", "name",      "content",  "text",          "id", "url",   "image", "source",
            "role", "arguments", "function", "cache_control", "",   "custom"};
        json_t *object = json_object();
        for (unsigned i = (unsigned)prng_below(&prng, 5); i > 0; i--)
            (void)json_object_set_new(object, keys[prng_below(&prng, ARRAY_LEN(keys))],
                                      random_json(depth + 1));
        return object;
    }
    }
}

/* Some URLs are signed, and some are longer than the part read at once. */
static json_t *random_url(void)
{
    static const char *const queries[] = {
        "",           "?w=1",        "?X-Amz-Date=1&v=2&X-Amz-Signature=3", "?sv=1&sig=a%2Fb&x=1",
        "?Expires=1", "?Signature=x"};
    struct buf text = {.at = NULL};
    put(&text, "https://images.example/");
    for (unsigned i = chance(30) ? 100 : 1; i > 0; i--)
        put(&text, "0123456789");
    put(&text, queries[prng_below(&prng, ARRAY_LEN(queries))]);
    for (unsigned i = chance(30) ? 100 : 1; i > 0; i--)
        put(&text, "&token=01234");
    json_t *v = json_stringn(text.at, text.len);
    CHECK(v != NULL);
    buf_free(&text);
    return v;
}

static json_t *random_content(unsigned depth)
{
    if (chance(60))
        return random_text(chance(10) ? 20000 : 600);
    if (chance(10))
        return random_json(0);
    json_t *parts = json_array();
    for (unsigned i = (unsigned)prng_below(&prng, 4); i > 0; i--) {
        json_t *part = json_object();
        if (chance(90))
            (void)json_object_set_new(part, "type", json_string(chance(60) ? "text" : "image_url"));
        if (chance(70))
            (void)json_object_set_new(part, "text", random_text(500));
        if (chance(20))
            (void)json_object_set_new(part, "image_url", random_json(3));
        if (chance(10))
            (void)json_object_set_new(part, "image_url", random_url());
        if (chance(10))
            (void)json_object_set_new(part, "source", json_pack("{s:o}", "url", random_url()));
        if (chance(20) && depth < 3)
            (void)json_object_set_new(part, "content", random_content(depth + 1));
        if (chance(20))
            (void)json_object_set_new(part, "cache_control", random_json(3));
        (void)json_array_append_new(parts, part);
        if (chance(15))
            (void)json_array_append_new(parts, random_json(2));
    }
    return parts;
}

static json_t *random_messages(void)
{
    static const char *const roles[] = {"system", "user", "assistant", "tool"};
    json_t *messages = json_array();
    for (unsigned i = (unsigned)prng_below(&prng, 12); i > 0; i--) {
        json_t *message = json_object();
        if (chance(95))
            (void)json_object_set_new(message, "role", json_string(roles[prng_below(&prng, 4)]));
        if (chance(95))
            (void)json_object_set_new(message, "content", random_content(0));
        if (chance(20))
            (void)json_object_set_new(message, "tool_calls", random_json(0));
        if (chance(10))
            (void)json_object_set_new(message, "reasoning_content", random_text(3000));
        (void)json_array_append_new(messages, message);
        if (chance(3))
            (void)json_array_append_new(messages, random_json(0));
    }
    return messages;
}

static json_t *random_prompt(void)
{
    switch (prng_below(&prng, 4)) {
    case 0:
        return random_text(3000);
    case 1: {
        json_t *ids = json_array();
        for (unsigned i = (unsigned)prng_below(&prng, 3000); i > 0; i--)
            (void)json_array_append_new(ids, number(prng_below(&prng, 150000)));
        return ids;
    }
    case 2: {
        json_t *lists = json_array();
        for (unsigned i = (unsigned)prng_below(&prng, 5); i > 0; i--)
            (void)json_array_append_new(lists, chance(50) ? random_prompt() : random_text(900));
        return lists;
    }
    default:
        return random_json(0);
    }
}

static json_t *random_body(void)
{
    static const char *const prompts[] = {"messages", "prompt", "input", "text", "input_ids"};
    json_t *body = json_object();
    (void)json_object_set_new(body, "model", random_text(chance(10) ? 600 : 20));
    (void)json_object_set_new(body, "temperature", random_json(2));
    for (unsigned i = chance(10) ? 2 : 1; i > 0; i--) {
        size_t pick = chance(50) ? 0 : prng_below(&prng, ARRAY_LEN(prompts));
        (void)json_object_set_new(body, prompts[pick],
                                  pick == 0 ? random_messages() : random_prompt());
    }
    if (chance(40))
        (void)json_object_set_new(body, "tools", chance(80) ? random_messages() : random_json(0));
    if (chance(10))
        (void)json_object_set_new(body, "functions", random_json(0));
    if (chance(30))
        (void)json_object_set_new(body, "system", random_content(0));
    if (chance(10))
        (void)json_object_set_new(body, "instructions", random_content(0));
    if (chance(10))
        (void)json_object_set_new(body, "chat_template_kwargs", random_json(0));
    if (chance(10))
        (void)json_object_set_new(body, "reasoning_effort", random_json(3));
    if (chance(10))
        (void)json_object_set_new(body, "cache_salt", random_text(10));
    if (chance(10))
        (void)json_object_set_new(body, "lora_path", random_text(300));
    if (chance(10))
        (void)json_object_set_new(body, "lora_name", random_text(10));
    return body;
}

static void random_documents(void **state)
{
    (void)state;
    prng_seed(&prng, 2026);
    struct buf body = {.at = NULL};
    unsigned points = 0;
    for (int round = 0; round < ROUNDS; round++) {
        json_t *doc = random_body();
        for (int spelling = 0; spelling < 2; spelling++) {
            body.len = 0;
            put(&body, "");
            write_value(&body, doc);
            skim_rendering = rendering_of((uint8_t)(spelling * prng_below(&prng, RENDERING_CODES)));
            if (!agrees(body.at, body.len))
                fail_msg("jansson refuses what was written: %.*s", (int)body.len, body.at);
        }
        points += http_skim_chain(&skim)->length;
        json_decref(doc);
    }
    buf_free(&body);
    print_message("%u points agree\n", points);
    assert_true(points > 20 * ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors),
        cmocka_unit_test(random_documents),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
