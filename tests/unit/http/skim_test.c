#include "http/skim.h"

#include "tests/lib/test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/checkpoint.h"
#include "base/prng.h"
#include "tests/lib/shared.h"
#include "tests/lib/skim_model.h"

#ifdef __SANITIZE_ADDRESS__ /* far slower: fewer documents, so that `make check` stays short */
enum { ROUNDS = 125 };
#else
enum { ROUNDS = 500 };
#endif

static struct hash_secret secret;
static struct http_skim skim;

static int setup(void **state)
{
    (void)state;
    hash_secret_from_seed(&secret, 42);
    return 0;
}

/* Skims a body cut at `cut` and then every `step` bytes (0 = not again). */
static void skim_split(const char *body, size_t len, size_t cut, size_t step)
{
    memset(&skim, 0xa5, sizeof skim); /* nothing may count on zeroes */
    http_skim_init(&skim, &secret);
    for (size_t at = 0; at < len;) {
        size_t n = at == 0 && cut > 0 ? cut : step > 0 ? step : len - at;
        n = n < len - at ? n : len - at;
        char *part = malloc(n); /* so that ASan sees reads beyond it */
        memcpy(part, body + at, n);
        http_skim_feed(&skim, part, n);
        free(part);
        at += n;
    }
    http_skim_finish(&skim);
}

static void skim_whole(const char *body)
{
    skim_split(body, strlen(body), 0, 0);
}

static void chain_of(const char *body, struct chain *out)
{
    skim_whole(body);
    assert_true(skim.understood);
    *out = *http_skim_chain(&skim);
}

static bool chain_equal(const struct chain *a, const struct chain *b)
{
    if (a->bytes != b->bytes || a->length != b->length || a->token_ids != b->token_ids)
        return false;
    for (unsigned i = 0; i < a->length; i++)
        if (a->points[i].id != b->points[i].id || a->points[i].blocks != b->points[i].blocks ||
            a->points[i].code != b->points[i].code)
            return false;
    return true;
}

static unsigned chain_shared(const struct chain *a, const struct chain *b)
{
    unsigned n = 0;
    while (n < a->length && n < b->length && a->points[n].id == b->points[n].id)
        n++;
    return n;
}

/* Whole and split, the body has the chain that the model gives it. False if jansson refuses it. */
static bool agrees(const char *body, size_t len)
{
    json_t *doc = model_parse(body, len);
    if (doc == NULL)
        return false;
    static struct chain wanted;
    model_chain(&secret, doc, &wanted);
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
    const char *shared = shared_dir();
    if (shared == NULL) {
        print_message("no shared vectors: skipped\n");
        skip();
    }
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/vectors/json/test_parsing", shared);
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
            if (entry->d_name[0] == 'n') { /* some are fine within the frame */
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
        static const char *const keys[] = {"type", "name",     "content", "text",          "id",
                                           "url",  "image",    "source",  "cache_control", "role",
                                           "",     "arguments"};
        json_t *object = json_object();
        for (unsigned i = (unsigned)prng_below(&prng, 5); i > 0; i--)
            (void)json_object_set_new(object, keys[prng_below(&prng, ARRAY_LEN(keys))],
                                      random_json(depth + 1));
        return object;
    }
    }
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

/* --- the promises, one by one ------------------------------------------------------------------
 */

static char text_a[4001];
static char text_b[4001];

static const char *format(char *out, size_t size, const char *pattern, ...)
{
    va_list args;
    va_start(args, pattern);
    int n = vsnprintf(out, size, pattern, args);
    va_end(args);
    assert_true(n > 0 && (size_t)n < size);
    return out;
}

static void fill_texts(void)
{
    for (int i = 0; i < 4000; i++) {
        text_a[i] = (char)('a' + i * 7 % 26);
        text_b[i] = (char)('a' + i * 11 % 26);
    }
}

static void namespaces(void **state)
{
    (void)state;
    fill_texts();
    static const char *const variants[] = {
        "\"model\":\"m\"",
        "\"model\":\"n\"",
        "\"model\":\"m\",\"cache_salt\":\"s\"",
        "\"model\":\"m\",\"cache_salt\":\"t\"",
        "\"model\":\"m\",\"cache_salt\":\"\"",
        "\"model\":\"m\",\"lora_path\":\"s\"",
        "\"model\":\"m\",\"extra_key\":\"s\"",
        "\"model\":\"m\",\"previous_response_id\":\"s\"",
        "\"model\":\"ms\"",
    };
    static struct chain chains[ARRAY_LEN(variants)];
    char body[10000];
    for (size_t i = 0; i < ARRAY_LEN(variants); i++) {
        chain_of(
            format(body, sizeof body,
                   "{%s,\"tools\":[\"%s\"],\"messages\":[{\"role\":\"user\",\"content\":\"%s\"}]}",
                   variants[i], text_b, text_a),
            &chains[i]);
        assert_int_equal(chains[i].length, 30);
        for (size_t k = 0; k < i; k++)
            for (unsigned a = 0; a < chains[i].length; a++)
                for (unsigned b = 0; b < chains[k].length; b++)
                    assert_true(chains[i].points[a].id != chains[k].points[b].id);
    }
    /* The same namespace whatever else differs. */
    static struct chain other;
    chain_of(format(body, sizeof body,
                    "{\"user\":\"u\",\"tools\":[\"%s\"],\"messages\":[{\"role\":\"user\","
                    "\"content\":\"%s\"}],\"temperature\":1,\"model\":\"m\",\"stream\":true}",
                    text_b, text_a),
             &other);
    assert_true(chain_equal(&other, &chains[0]));
}

static void growth(void **state)
{
    (void)state;
    fill_texts();
    static struct chain before;
    static struct chain after;
    char body[60000];
    size_t len = (size_t)snprintf(body, sizeof body, "{\"messages\":[");
    for (int turn = 0; turn < 10; turn++) {
        len += (size_t)snprintf(body + len, sizeof body - len,
                                "%s{\"role\":\"%s\",\"content\":\"%d %s\"}", turn > 0 ? "," : "",
                                turn % 2 == 0 ? "user" : "assistant", turn,
                                turn % 3 == 0 ? text_a : text_b);
        (void)snprintf(body + len, sizeof body - len, "],\"n\":%d}", turn + 1);
        chain_of(body, &after);
        assert_true(after.length > before.length);
        assert_int_equal(chain_shared(&before, &after), before.length);
        before = after;
    }
    /* Another end shares what is before it, another role of the first message nothing. */
    static struct chain other;
    char *last = strstr(body, "9 ");
    last[2] = '!';
    chain_of(body, &other);
    unsigned shared = chain_shared(&other, &after);
    assert_in_range(shared, 40, after.length - 1);
    assert_true(after.points[shared].blocks > 9 * 4000 / 256);
    char *role = strstr(body, "user");
    role[0] = 'U';
    chain_of(body, &other);
    assert_int_equal(chain_shared(&other, &after), 0);
}

static void same_chain(const char *a, const char *b)
{
    static struct chain chain_a;
    static struct chain chain_b;
    chain_of(a, &chain_a);
    chain_of(b, &chain_b);
    assert_true(chain_a.length > 0);
    assert_true(chain_equal(&chain_a, &chain_b));
}

static void other_chain(const char *a, const char *b)
{
    static struct chain chain_a;
    static struct chain chain_b;
    chain_of(a, &chain_a);
    chain_of(b, &chain_b);
    assert_true(chain_a.length > 0);
    assert_false(chain_equal(&chain_a, &chain_b));
}

/* A body with `%s` twice: long texts, so that there are points. */
#define BODY(pattern) format(bodies[which++], sizeof bodies[0], pattern, text_a, text_b)

static void forms(void **state)
{
    (void)state;
    fill_texts();
    static char bodies[20][20000];
    unsigned which = 0;
    const char *plain = BODY("{\"messages\":[{\"role\":\"user\",\"content\":\"%s\"},"
                             "{\"role\":\"user\",\"content\":\"%s\"}]}");
    same_chain(plain, BODY("{\"messages\":[{\"content\":[{\"type\":\"text\",\"text\":\"%s\"}],"
                           "\"role\":\"user\"},{\"role\":\"user\",\"name\":null,\"content\":[{"
                           "\"text\":\"%s\",\"cache_control\":{\"type\":\"x\"}}]}]}"));
    same_chain(
        plain,
        BODY("{\"messages\":[{\"role\":\"tool\",\"content\":[1],\"content\":\"%s\","
             "\"role\":\"user\"},{\"role\":\"user\",\"content\":\"%s\"}],\"prompt\":\"x\"}"));
    same_chain(plain, BODY("{\"prompt\":\"x\",\"messages\":7,\"messages\":[{\"role\":\"user\","
                           "\"content\":\"%s\"},{\"role\":\"user\",\"content\":\"%s\"}]}"));
    same_chain(plain,
               BODY("{\"tools\":[],\"system\":\"\",\"messages\":[{\"role\":\"user\",\"content\":"
                    "\"%s\"},{\"role\":\"user\",\"content\":\"%s\"}],\"input_ids\":null}"));
    other_chain(plain, BODY("{\"messages\":[{\"role\":\"user\",\"content\":[{\"text\":\"%s\"},"
                            "{\"text\":\"%s\"}]},{\"role\":\"user\",\"content\":\"\"}]}"));
    plain = BODY("{\"system\":\"%s\",\"messages\":[{\"role\":\"user\",\"content\":\"%s\"}]}");
    same_chain(plain, BODY("{\"instructions\":[{\"text\":\"%s\"}],\"input\":\"%s\"}"));
    plain = BODY("{\"prompt\":[\"%s\",\"%s\"]}");
    other_chain(plain, BODY("{\"prompt\":[\"%s%s\"]}"));
    other_chain(plain, BODY("{\"prompt\":\"%s%s\"}"));
    plain = BODY("{\"prompt\":\"%s%s\"}");
    same_chain(plain, BODY("{\"text\":[\"%s%s\"]}"));
    /* What was streamed before its better came is forgotten, points and all. */
    plain = BODY("{\"messages\":[{\"role\":\"user\",\"content\":\"%.0s%s\"}]}");
    same_chain(
        plain,
        BODY("{\"messages\":[{\"role\":\"user\",\"content\":\"%1$s%1$s\",\"content\":\"%2$s\"}]}"));
    same_chain(plain,
               BODY("{\"messages\":[{\"content\":[{\"text\":\"%1$s%1$s\",\"content\":\"%2$s\"}],"
                    "\"role\":\"user\"}]}"));
    same_chain(
        plain,
        BODY("{\"messages\":[{\"content\":\"%1$s%1$s\"},{}],\"messages\":[{\"content\":\"%2$s\","
             "\"role\":\"user\"}],\"messages\":null}"));
    /* An image is what its data is, and as long as any other. */
    plain = BODY(
        "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":{"
        "\"url\":\"data:%s\"}},{\"text\":\"%s\"}]}]}");
    chain_of(plain, &(struct chain){.length = 0});
    uint64_t long_image = http_skim_chain(&skim)->bytes;
    other_chain(plain,
                BODY("{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\","
                     "\"image_url\":{\"url\":\"%.9s\"}},{\"text\":\"%s\"}]}]}"));
    assert_int_equal(http_skim_chain(&skim)->bytes, long_image);
}

static void token_ids(void **state)
{
    (void)state;
    static struct chain chain;
    char body[20000];
    size_t len = 0;
    for (int i = 0; i < 1000; i++)
        len += (size_t)snprintf(body + len, sizeof body - len, "%s%d",
                                i > 0 ? "," : "{\"prompt\":[[", i * 131);
    (void)snprintf(body + len, sizeof body - len, "]]}");
    chain_of(body, &chain);
    assert_true(chain.token_ids);
    assert_int_equal(chain.bytes, 4000);
    assert_int_equal(chain.length, 15);
    char flat[20000];
    (void)snprintf(flat, sizeof flat, "{\"input_ids\":%.*s}", (int)(strlen(body) - 13), body + 11);
    same_chain(flat, body);
    chain_of("{\"prompt\":\"abcd\"}", &chain);
    assert_false(chain.token_ids);
    chain_of("{\"tools\":[{}],\"prompt\":[1]}", &chain);
    assert_false(chain.token_ids);
}

static void fields(void **state)
{
    (void)state;
    const char *body =
        "{\"model\":\"base:adapter\",\"user\":\"x\",\"user\":\"u\\u00e9\",\"prompt_cache_key\":"
        "\"k\","
        "\"session_id\":\"s\",\"metadata\":{\"a\":{\"user_id\":1},\"user_id\":\"mu\"},"
        "\"cache_salt\":\"salt\",\"lora_path\":\"p\",\"lora_name\":\"q\","
        "\"previous_response_id\":\"resp_1\",\"stream\":true,\"max_tokens\":7,"
        "\"max_completion_tokens\":1e2,\"priority\":-9223372036854775808,"
        "\"sampling_params\":{\"max_new_tokens\":5},"
        "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}";
    for (size_t step = 0; step < 5; step++) {
        skim_split(body, strlen(body), 0, step);
        assert_true(skim.understood);
        assert_slice_equal(http_skim_field(&skim, HTTP_SKIM_MODEL), "base:adapter");
        assert_slice_equal(http_skim_field(&skim, HTTP_SKIM_USER), "u\xc3\xa9");
        assert_slice_equal(http_skim_field(&skim, HTTP_SKIM_PROMPT_CACHE_KEY), "k");
        assert_slice_equal(http_skim_field(&skim, HTTP_SKIM_SESSION_ID), "s");
        assert_slice_equal(http_skim_field(&skim, HTTP_SKIM_METADATA_USER_ID), "mu");
        assert_slice_equal(http_skim_field(&skim, HTTP_SKIM_CACHE_SALT), "salt");
        assert_slice_equal(http_skim_field(&skim, HTTP_SKIM_LORA), "p");
        assert_slice_equal(http_skim_field(&skim, HTTP_SKIM_PREVIOUS_RESPONSE_ID), "resp_1");
        assert_slice_equal(http_skim_field(&skim, HTTP_SKIM_EXTRA_KEY), "");
        assert_true(skim.flags[HTTP_SKIM_STREAM]);
        assert_int_equal(http_skim_output_max(&skim), 100);
        assert_true(skim.has_number[HTTP_SKIM_PRIORITY]);
        assert_true(skim.numbers[HTTP_SKIM_PRIORITY] == INT64_MIN);
    }
    skim_whole("{\"sampling_params\":{\"max_new_tokens\":5},\"max_tokens\":null,\"stream\":null,"
               "\"user\":5,\"priority\":\"3\",\"text\":\"x\"}");
    assert_true(skim.understood);
    assert_int_equal(http_skim_output_max(&skim), 5);
    assert_false(skim.flags[HTTP_SKIM_STREAM] || skim.has_number[HTTP_SKIM_PRIORITY]);
    assert_int_equal(http_skim_field(&skim, HTTP_SKIM_USER).len, 0);
    skim_whole("{}");
    assert_true(skim.understood);
    assert_int_equal(http_skim_output_max(&skim), -1);
}

static void long_fields(void **state)
{
    (void)state;
    fill_texts();
    char body[5000];
    for (int len = 255; len <= 4000; len += len < 257 ? 1 : 767) {
        skim_whole(format(body, sizeof body, "{\"user\":\"%.*s\"}", len, text_a));
        assert_int_equal(http_skim_field(&skim, HTTP_SKIM_USER).len, len > 255 ? 32 : 255);
        char first[33];
        (void)slice_to_cstr(http_skim_field(&skim, HTTP_SKIM_USER), first, sizeof first);
        text_a[len - 1] ^= 1; /* another end is another digest */
        skim_whole(format(body, sizeof body, "{\"user\":\"%.*s\"}", len, text_a));
        char second[33];
        (void)slice_to_cstr(http_skim_field(&skim, HTTP_SKIM_USER), second, sizeof second);
        assert_int_equal(strcmp(first, second) != 0, len > 255);
    }
}

static void not_understood(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "", "[]", "5", "\"x\"", "{", "{\"messages\":[", "{\"a\":1}x", "nothing", "{\"a\":\"\x01\"}",
    };
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        skim_whole(bodies[i]);
        assert_false(skim.understood);
        assert_int_equal(http_skim_chain(&skim)->length, 0);
    }
    for (int inside = 0; inside < 2; inside++) { /* nesting: what is skipped may be deeper */
        char body[1000];
        size_t len = (size_t)snprintf(body, sizeof body, "{\"%s\":", inside ? "messages" : "other");
        memset(body + len, '[', 100);
        memset(body + len + 100, ']', 100);
        (void)snprintf(body + len + 200, sizeof body - len - 200, "}");
        skim_whole(body);
        assert_int_equal(skim.understood, !inside);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors),        cmocka_unit_test(random_documents),
        cmocka_unit_test(namespaces),     cmocka_unit_test(growth),
        cmocka_unit_test(forms),          cmocka_unit_test(token_ids),
        cmocka_unit_test(fields),         cmocka_unit_test(long_fields),
        cmocka_unit_test(not_understood),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
