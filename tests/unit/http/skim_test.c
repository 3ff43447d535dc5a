/* The promises of a chain: prompts that share, and others; the kept members. */
#include "http/skim.h"

#include <stdio.h>

#include "base/check.h"
#include "base/checkpoint.h"
#include "tests/lib/skim_help.h"

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
    /* The namespace is the same, whatever else differs. */
    static struct chain other;
    chain_of(format(body, sizeof body,
                    "{\"user\":\"u\",\"tools\":[\"%s\"],\"messages\":[{\"role\":\"user\","
                    "\"content\":\"%s\"}],\"temperature\":1,\"model\":\"m\",\"stream\":true}",
                    text_b, text_a),
             &other);
    assert_true(chain_equal(&other, &chains[0]));
}

static void a_growing_conversation_extends_its_chain(void **state)
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
    /* With another end, a prompt shares everything before the end; with another role of the first
     * message, nothing. */
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

/* A body with `%s` twice: long texts, enough for several points. */
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
    /* If a better member replaces a member, the former text is forgotten, with all points. */
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
    /* An image is identified by the data, and has the length of any other image. */
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
    assert_false(skim.has_number[HTTP_SKIM_CHOICES]);
    skim_whole("{\"sampling_params\":{\"n\":3},\"text\":\"x\"}");
    assert_int_equal(skim.numbers[HTTP_SKIM_CHOICES], 3);
    skim_whole("{\"n\":2,\"text\":\"x\"}");
    assert_int_equal(skim.numbers[HTTP_SKIM_CHOICES], 2);
}

static void apis(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        enum http_path_kind path;
    } cases[] = {
        {"{\"messages\":[],\"tools\":[]}", HTTP_PATH_CHAT},
        {"{\"messages\":[{\"role\":\"system\",\"content\":\"x\"}]}", HTTP_PATH_CHAT},
        {"{\"system\":\"x\",\"messages\":[]}", HTTP_PATH_MESSAGES},
        {"{\"prompt\":\"x\"}", HTTP_PATH_COMPLETIONS},
        {"{\"text\":{\"format\":{}},\"input\":\"x\",\"instructions\":\"y\"}", HTTP_PATH_RESPONSES},
        {"{\"text\":\"x\"}", HTTP_PATH_GENERATE},
        {"{\"input_ids\":[1]}", HTTP_PATH_GENERATE},
        {"{\"token_ids\":[1]}", HTTP_PATH_TOKENS},
        {"{\"query\":\"x\",\"documents\":[\"y\"]}", HTTP_PATH_PROMPT},
        {"{\"model\":\"m\"}", HTTP_PATH_OTHER},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        skim_whole(cases[i].body);
        assert_true(skim.understood);
        assert_int_equal(http_skim_path(&skim), cases[i].path);
    }
}

/* Engines take more than true for true: only a certain false counts as false. */
static void only_a_certain_false_counts_as_false(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        bool given;
    } cases[] = {
        {"{\"background\":true}", true},
        {"{\"background\":false}", false},
        {"{\"background\":null}", false},
        {"{}", false},
        {"{\"metadata\":{\"background\":true}}", false},
        {"{\"background\":1}", true},
        {"{\"background\":\"yes\"}", true},
        {"{\"background\":[false],\"x\":null}", true},
        {"{\"background\":{\"a\":false}}", true},
        {"{\"background\":true,\"background\":false}", false},
        {"{\"back\\u0067round\":false,\"background\":\"on\"}", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        skim_whole(cases[i].body);
        assert_true(skim.understood);
        assert_int_equal(skim.flags[HTTP_SKIM_BACKGROUND], cases[i].given);
    }
}

/* The place of the model's name, including the quotes, at any cut of the body. */
static void the_models_position_is_recorded(void **state)
{
    (void)state;
    static const struct {
        const char *body, *string;
    } rows[] = {
        {"{\"model\":\"m\",\"prompt\":\"x\"}", "\"m\""},
        {"{ \"prompt\" : [\"model\", \"m\"] ,\n \"model\" : \"a\\u0062\\/c\" }",
         "\"a\\u0062\\/c\""},
        {"{\"model\":\"first\",\"metadata\":{\"model\":\"no\"},\"model\":\"last\"}", "\"last\""},
        {"{\"x\":{\"model\":\"no\"},\"model\":\"\"}", "\"\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t len = strlen(rows[i].body);
        for (size_t cut = 0; cut < len; cut++) {
            skim_split(rows[i].body, len, cut, cut % 3);
            assert_true(http_skim_has_model(&skim));
            assert_slice_equal(slice_of(rows[i].body + skim.model_at, skim.model_bytes),
                               rows[i].string);
        }
    }
    skim_whole("{\"model\":\"a\",\"model\":7}");
    assert_false(http_skim_has_model(&skim));
}

/* A prompt for an alias has the chain of the model behind the alias. */
static void an_alias_is_replaced_by_its_model(void **state)
{
    (void)state;
    struct chain wanted;
    char body[4096];
    char words[2048];
    memset(words, 'w', sizeof words);
    (void)snprintf(body, sizeof body, "{\"model\":\"real\",\"prompt\":\"%.2000s\"}", words);
    chain_of(body, &wanted);
    assert_true(wanted.length > 0);
    (void)snprintf(body, sizeof body, "{\"model\":\"alias\",\"prompt\":\"%.2000s\"}", words);
    http_skim_init(&skim, &secret);
    http_skim_feed(&skim, body, strlen(body));
    http_skim_end(&skim);
    http_skim_model_set(&skim, SLICE("real"));
    http_skim_join(&skim, skim_rendering);
    assert_true(chain_equal(http_skim_chain(&skim), &wanted));
    assert_slice_equal(http_skim_field(&skim, HTTP_SKIM_MODEL), "real");
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
    for (int inside = 0; inside < 2; inside++) { /* nesting: skipped members may be deeper */
        char body[1000];
        size_t len = (size_t)snprintf(body, sizeof body, "{\"%s\":", inside ? "messages" : "other");
        memset(body + len, '[', 100);
        memset(body + len + 100, ']', 100);
        (void)snprintf(body + len + 200, sizeof body - len - 200, "}");
        skim_whole(body);
        assert_int_equal(skim.understood, !inside);
    }
}

/* Media are counted by kind, and text by byte values; strings of tools and roles are not
 * counted. */
static void the_contents_of_a_prompt_are_counted(void **state)
{
    (void)state;
    static struct chain chain;
    chain_of(
        "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":["
        "{\"type\":\"text\",\"text\":\"Ab c: 17\\n\\u00e9\xc3\xa9\xe4\xb8\xad\\ud83d\\ude00\"},"
        "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64,AAAA\"}},"
        "{\"type\":\"image_url\",\"image_url\":{\"url\":\"https://x/y.png\"}},"
        "{\"type\":\"input_audio\",\"input_audio\":{\"data\":\"AAAA\"}},"
        "{\"type\":\"text\",\"text\":\"z\"}]}],"
        "\"tools\":[{\"name\":\"of no kind\"}]}",
        &chain);
    const struct chain_content wanted = {.letters = 4,
                                         .spaces = 2,
                                         .digits = 2,
                                         .marks = 2,
                                         .wide = 2 + 2 + 3 + 4,
                                         .leads = 2,
                                         .media = {2, 1, 0}};
    assert_memory_equal(&chain.content, &wanted, sizeof wanted);
    assert_true(chain.bytes > 3 * CHAIN_MEDIUM_BYTES);
    /* Each point counts the media so far; a medium takes 16 points. */
    assert_true(chain.length >= 48);
    for (unsigned i = 1; i < chain.length; i++)
        assert_true(chain.points[i].media >= chain.points[i - 1].media);
    assert_int_equal(chain.points[0].media, 1);
    assert_int_equal(chain.points[chain.length - 1].media, 3);
    static char body[70000]; /* more than the counter's byte can count */
    size_t len = (size_t)snprintf(body, sizeof body, "{\"prompt\":\"");
    memset(body + len, 'x', 65000);
    memset(body + len + 30000, '9', 10000);
    (void)snprintf(body + len + 65000, sizeof body - len - 65000, "\"}");
    chain_of(body, &chain);
    assert_int_equal(chain.content.letters, 55000);
    assert_int_equal(chain.content.digits, 10000);
    len = (size_t)snprintf(body, sizeof body,
                           "{\"messages\":[{\"content\":[{\"type\":\"image_url\","
                           "\"image_url\":{\"url\":\"data:image/png;base64,"
                           "iVBORw0KGgoAAAANSUhEUgAABAAAAAMACAIAAAA12IJa");
    memset(body + len, 'A', 5000);
    (void)snprintf(body + len + 5000, sizeof body - len - 5000, "\",\"detail\":\"high\"}}]}]}");
    chain_of(body, &chain);
    assert_int_equal(chain.content.media[CHAIN_IMAGE], 1);
    assert_int_equal(chain.content.sized, 1);
    assert_int_equal(chain.content.kilopixels, 787);
    for (size_t step = 1; step < 2000; step += 333) {
        skim_split(body, strlen(body), 0, step);
        assert_true(chain_equal(http_skim_chain(&skim), &chain));
    }
    chain_of("{\"prompt\":[97,98,99]}", &chain);
    assert_int_equal(chain.content.letters, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(namespaces),
        cmocka_unit_test(a_growing_conversation_extends_its_chain),
        cmocka_unit_test(forms),
        cmocka_unit_test(token_ids),
        cmocka_unit_test(fields),
        cmocka_unit_test(apis),
        cmocka_unit_test(only_a_certain_false_counts_as_false),
        cmocka_unit_test(the_models_position_is_recorded),
        cmocka_unit_test(an_alias_is_replaced_by_its_model),
        cmocka_unit_test(long_fields),
        cmocka_unit_test(not_understood),
        cmocka_unit_test(the_contents_of_a_prompt_are_counted),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
