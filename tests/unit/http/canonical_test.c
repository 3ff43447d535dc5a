/* Prompts share a chain if they are alike to engines, and only then (docs/adr/0050). */
#include "http/media_url.h"
#include "http/skim.h"

#include <stdio.h>

#include "base/check.h"
#include "tests/lib/skim_help.h"

static char body_a[20000], body_b[20000], text_long[3001];

/* `%s` in a body is 3,000 bytes of text, enough for several points. */
static void chains_of(const char *a, const char *b, struct chain *chain_a, struct chain *chain_b)
{
    for (int i = 0; i < 3000; i++)
        text_long[i] = (char)('a' + i * 7 % 26);
    assert_true(snprintf(body_a, sizeof body_a, a, text_long) < (int)sizeof body_a);
    assert_true(snprintf(body_b, sizeof body_b, b, text_long) < (int)sizeof body_b);
    chain_of(body_a, chain_a);
    chain_of(body_b, chain_b);
    assert_true(chain_a->length > 0 && chain_b->length > 0);
}

static struct chain chain_a, chain_b;

static void alike(const char *a, const char *b)
{
    chains_of(a, b, &chain_a, &chain_b);
    if (chain_shared(&chain_a, &chain_b) != chain_a.length || chain_a.length != chain_b.length)
        fail_msg("%u of %u and %u points shared: %s", chain_shared(&chain_a, &chain_b),
                 chain_a.length, chain_b.length, b);
}

static void apart(const char *a, const char *b)
{
    chains_of(a, b, &chain_a, &chain_b);
    if (chain_shared(&chain_a, &chain_b) != 0)
        fail_msg("%u points shared: %s", chain_shared(&chain_a, &chain_b), b);
}

#define HEADER(cch)                                                                                \
    "{\"type\":\"text\",\"text\":\"x-anthropic-billing-header: cc_version=2.1.197.0ab; "           \
    "cc_entrypoint=cli; cch=" cch ";\"}"
#define MESSAGES "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"

static void claude_codes_header(void **state)
{
    (void)state;
    skim_rendering = (struct rendering){0};
    const char *one =
        "{\"system\":[" HEADER("12345") ",{\"type\":\"text\",\"text\":\"%s\"}]," MESSAGES "}";
    const char *two =
        "{\"system\":[" HEADER("9abcd") ",{\"text\":\"%s\",\"type\":\"text\"}]," MESSAGES "}";
    const char *none = "{\"system\":[{\"type\":\"text\",\"text\":\"%s\"}]," MESSAGES "}";
    alike(one, two);
    alike(one, none);
    assert_int_equal(chain_a.bytes, chain_b.bytes); /* the header's bytes are not counted either */
    alike(one, "{\"system\":\"%s\"," MESSAGES "}");
    /* If the engine shows the header to the model, all of the header counts. */
    skim_rendering.counts_header = 1;
    apart(one, two);
    alike(one, one);
    skim_rendering.counts_header = 0;
    /* The header is dropped only from the first block: as a string, in a later block, or in a
     * message, it is part of vLLM's prompt. */
    apart("{\"system\":\"x-anthropic-billing-header: cch=1;\\n%s\"," MESSAGES "}",
          "{\"system\":\"x-anthropic-billing-header: cch=2;\\n%s\"," MESSAGES "}");
    chains_of("{\"system\":[{\"text\":\"%s\"}," HEADER("1") ",{\"text\":\"end\"}]," MESSAGES "}",
              "{\"system\":[{\"text\":\"%s\"}," HEADER("2") ",{\"text\":\"end\"}]," MESSAGES "}",
              &chain_a, &chain_b);
    assert_true(chain_a.bytes > 3090);
    apart("{\"messages\":[{\"role\":\"system\",\"content\":[" HEADER("1") ",{\"text\":\"%s\"}]}]}",
          "{\"messages\":[{\"role\":\"system\",\"content\":[" HEADER("2") ",{\"text\":\"%s\"}]}]}");
}

static void nulls(void **state)
{
    (void)state;
    skim_rendering = (struct rendering){0};
    const char *chat = "{\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\","
                       "\"parameters\":{\"a\":1}}}],\"prompt\":\"%s\"}";
    alike(chat, "{\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"strict\":null,"
                "\"description\":null,\"parameters\":{\"a\":1}},\"defer\":null}],"
                "\"prompt\":\"%s\"}");
    apart(chat, "{\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"strict\":false,"
                "\"parameters\":{\"a\":1}}}],\"prompt\":\"%s\"}");
    apart(chat, "{\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\","
                "\"parameters\":{\"a\":1,\"default\":null}}}],\"prompt\":\"%s\"}");
    const char *flat = "{\"tools\":[{\"name\":\"f\",\"input_schema\":{}}],\"prompt\":\"%s\"}";
    alike(flat, "{\"tools\":[{\"name\":\"f\",\"strict\":null,\"input_schema\":{}}],"
                "\"prompt\":\"%s\"}");
    apart(flat, "{\"tools\":[{\"name\":\"f\",\"input_schema\":{\"x\":null}}],\"prompt\":\"%s\"}");
    alike(
        "{\"messages\":[{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"1\",\"function\":{"
        "\"name\":\"f\",\"arguments\":\"{}\"}}]},{\"content\":\"%s\",\"role\":\"tool\"}]}",
        "{\"messages\":[{\"role\":\"assistant\",\"content\":null,\"refusal\":null,\"tool_calls\":["
        "{\"id\":\"1\",\"index\":null,\"function\":{\"name\":\"f\",\"arguments\":\"{}\","
        "\"parsed\":null}}]},{\"content\":\"%s\",\"role\":\"tool\"}]}");
}

#define IMAGE(url)                                                                                 \
    "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":{"       \
    "\"url\":\"" url "\"}},{\"type\":\"text\",\"text\":\"%s\"}]}]}"
#define SOURCE(url)                                                                                \
    "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"source\":{\"type\":"     \
    "\"url\",\"url\":\"" url "\"}},{\"type\":\"text\",\"text\":\"%s\"}]}]}"

static void signed_urls(void **state)
{
    (void)state;
    skim_rendering = (struct rendering){0};
    alike(IMAGE("https://s3/x.png?X-Amz-Date=1&X-Amz-Signature=2"),
          IMAGE("https://s3/x.png?X-Amz-Date=3&X-Amz-Signature=45"));
    alike(SOURCE("https://s3/x.png?versionId=7&X-Amz-Signature=2"),
          SOURCE("https://s3/x.png?X-Amz-Signature=8&versionId=7"));
    alike(IMAGE("https://a/x.png?sv=1&se=2&sr=b&sig=3"), IMAGE("https://a/x.png?sv=1&se=9&sig=4"));
    apart(IMAGE("https://s3/x.png?X-Amz-Signature=2"), IMAGE("https://s3/y.png?X-Amz-Signature=2"));
    apart(SOURCE("https://s3/x.png?versionId=7&X-Amz-Signature=2"),
          SOURCE("https://s3/x.png?versionId=8&X-Amz-Signature=2"));
    apart(IMAGE("https://a/x.png?se=2"), IMAGE("https://a/x.png?se=3")); /* without a signature */
    /* A URL within a text is plain text. */
    chains_of("{\"prompt\":\"https://s3/x?X-Amz-Signature=2 %s\"}",
              "{\"prompt\":\"https://s3/x?X-Amz-Signature=3 %s\"}", &chain_a, &chain_b);
    assert_int_equal(chain_shared(&chain_a, &chain_b), 0);
}

static void trimmed(const char *url, const char *wanted, bool was_signed)
{
    char at[256];
    bool is_signed = !was_signed;
    (void)snprintf(at, sizeof at, "%s", url);
    size_t len = http_media_url_trim(at, strlen(url), &is_signed);
    assert_slice_equal(slice_of(at, len), wanted);
    assert_int_equal(is_signed, was_signed);
}

static void signatures_are_trimmed_from_urls(void **state)
{
    (void)state;
    trimmed("https://h/p?a=1&X-Goog-Signature=2&b=3", "https://h/p?a=1&b=3", true);
    trimmed("http://h/p?Signature=x&Expires=1&Key-Pair-Id=2", "http://h/p", true);
    trimmed("https://h/p?SIG=x&se=2&w=10", "https://h/p?w=10", true);
    trimmed("https://h/p?w=10&Expires=3", "https://h/p?w=10&Expires=3", false);
    trimmed("https://h/p?", "https://h/p?", false);
    trimmed("https://h/p?sig", "https://h/p", true);
    trimmed("https://h/p?&&sig=1&&a", "https://h/p?&&&a", true);
    trimmed("data:image/png;base64,x?sig=1", "data:image/png;base64,x?sig=1", false);
    trimmed("", "", false);
}

static void arguments(void **state)
{
    (void)state;
    static const char *const members[] = {
        "\"chat_template_kwargs\":{\"enable_thinking\":false}",
        "\"chat_template_kwargs\":{\"enable_thinking\":true}",
        "\"chat_template\":\"x\"",
        "\"reasoning_effort\":\"high\"",
        "\"reasoning_effort\":\"low\"",
        "\"reasoning\":{\"effort\":\"low\"}",
        "\"thinking\":{\"type\":\"enabled\"}",
        "\"output_config\":{\"effort\":\"low\"}",
        "\"add_special_tokens\":false",
        "\"mm_processor_kwargs\":{\"size\":1}",
        "\"media_io_kwargs\":{\"video\":1}",
        "\"truncate_prompt_tokens\":5",
    };
    char a[200], b[200];
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        (void)snprintf(a, sizeof a, "{%s,\"prompt\":\"%%s\"}", members[i]);
        skim_rendering = (struct rendering){0};
        apart(a, "{\"prompt\":\"%s\"}");
        for (size_t k = 0; k < i; k++) {
            (void)snprintf(b, sizeof b, "{\"prompt\":\"%%s\",%s}", members[k]);
            apart(a, b);
        }
        skim_rendering.no_arguments = 1;
        alike(a, "{\"prompt\":\"%s\"}");
    }
    /* Members with an effect only at the end, or none, do not separate prompts. */
    skim_rendering = (struct rendering){0};
    alike("{\"prompt\":\"%s\"}",
          "{\"prompt\":\"%s\",\"add_generation_prompt\":false,\"continue_final_message\":true,"
          "\"temperature\":0.3,\"seed\":5,\"metadata\":{\"trace\":\"x\"},\"request_id\":\"r\","
          "\"tool_choice\":\"auto\",\"reasoning_effort\":null,\"chat_template_kwargs\":null}");
    alike("{\"prompt\":\"%s\",\"chat_template_kwargs\":{\"a\":1,\"b\":2}}",
          "{\"chat_template_kwargs\":{\"b\":2,\"a\":1},\"prompt\":\"%s\"}");
    /* The template gets nothing, whether the object is absent or empty. */
    alike("{\"prompt\":\"%s\"}",
          "{\"prompt\":\"%s\",\"chat_template_kwargs\":{},\"reasoning\":{},\"tools\":[],"
          "\"documents\":[],\"mm_processor_kwargs\":{},\"media_io_kwargs\":{},\"metadata\":{}}");
    apart("{\"prompt\":\"%s\"}", "{\"prompt\":\"%s\",\"chat_template_kwargs\":{\"a\":{}}}");
    apart("{\"prompt\":\"%s\"}", "{\"prompt\":\"%s\",\"chat_template_kwargs\":{\"a\":null}}");
}

#define TOOL(name) "{\"type\":\"function\",\"function\":{\"name\":\"" name "\"}}"

/* Prompts alike only with a rendering. */
static void renderings(void **state)
{
    (void)state;
    const char *line_a = "{\"system\":\"now it is 9:05\\n%s\"," MESSAGES "}";
    const char *line_b = "{\"system\":\"now it is 10:05\\n%s\"," MESSAGES "}";
    skim_rendering = (struct rendering){0};
    apart(line_a, line_b);
    skim_rendering.lead = RENDERING_LEAD_NO_LINE;
    alike(line_a, line_b);
    skim_rendering.lead = RENDERING_LEAD_ALL;
    const char *chat_a = "{\"messages\":[{\"role\":\"system\",\"content\":\"id 1\\n%s\"}]}";
    const char *chat_b = "{\"messages\":[{\"content\":\"id 222\\n%s\",\"role\":\"system\"}]}";
    apart(chat_a, chat_b);
    skim_rendering.lead = RENDERING_LEAD_NO_LINE;
    alike(chat_a, chat_b);
    const char *block_a = "{\"system\":[{\"text\":\"id 1\\nx 2\"},{\"text\":\"%s\"}]," MESSAGES "}";
    const char *block_b =
        "{\"system\":[{\"text\":\"id 3\\nx 45\"},{\"text\":\"%s\"}]," MESSAGES "}";
    apart(block_a, block_b);
    skim_rendering.lead = RENDERING_LEAD_NO_BLOCK;
    alike(block_a, block_b);
    /* The lead of the messages counts if a system text exists. */
    apart("{\"system\":\"s\",\"messages\":[{\"role\":\"user\",\"content\":\"id 1\\n%s\"}]}",
          "{\"system\":\"s\",\"messages\":[{\"role\":\"user\",\"content\":\"id 2\\n%s\"}]}");
    skim_rendering = (struct rendering){0};
    const char *tools_a = "{\"tools\":[" TOOL("a") "," TOOL("b") "],\"prompt\":\"%s\"}";
    const char *tools_b = "{\"tools\":[" TOOL("b") "," TOOL("a") "],\"prompt\":\"%s\"}";
    apart(tools_a, tools_b);
    skim_rendering.tools_sorted = 1;
    alike(tools_a, tools_b);
    apart(tools_a, "{\"tools\":[" TOOL("a") "," TOOL("c") "],\"prompt\":\"%s\"}");
    skim_rendering = (struct rendering){.tools_after = 1};
    chains_of("{\"system\":\"%s\",\"tools\":[" TOOL("a") "]," MESSAGES "}",
              "{\"tools\":[" TOOL("b") "],\"system\":\"%s\"," MESSAGES "}", &chain_a, &chain_b);
    assert_int_equal(chain_shared(&chain_a, &chain_b), chain_a.length);
    skim_rendering = (struct rendering){0};
}

/* A first text found to be too long for a block is complete, whichever piece shows the length. */
static void a_first_text_may_have_any_length(void **state)
{
    (void)state;
    static const char *const forms[] = {
        "{\"messages\":[{\"role\":\"user\",\"content\":\"%s\"}]}",
        "{\"system\":[{\"type\":\"text\",\"text\":\"%s\"},{\"type\":\"text\",\"text\":\"b\"}],"
        "" MESSAGES "}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"l\\n%s\"},{\"role\":\"user\",\"content\":"
        "\"hi\"}]}",
    };
    static char text[40001], body[41000];
    for (size_t f = 0; f < ARRAY_LEN(forms); f++) {
        unsigned length = 1;
        for (size_t len = 1500; len < sizeof text; len += 113) {
            memset(text, 'x', len);
            text[len] = '\0';
            assert_true(snprintf(body, sizeof body, forms[f], text) < (int)sizeof body);
            chain_of(body, &chain_a);
            if (chain_a.bytes < len || chain_a.length < length)
                fail_msg("form %zu, %zu bytes of text: %u points, %llu bytes", f, len,
                         chain_a.length, (unsigned long long)chain_a.bytes);
            length = chain_a.length - chain_a.length / 8u;
        }
    }
}

/* The opening of a prompt; `goes_on`: an answer or message followed. */
static uint64_t opening(const char *body, bool goes_on)
{
    skim_whole(body);
    assert_true(skim.understood);
    if (http_skim_form(&skim)->goes_on != goes_on)
        fail_msg("%s a first turn: %s", goes_on ? "not" : "is", body);
    return http_skim_form(&skim)->opening;
}

#define USER(text) "{\"role\":\"user\",\"content\":\"" text "\"}"
#define SAID(text) ",{\"content\":\"" text "\",\"role\":\"assistant\"}"
#define LED(text)  "{\"role\":\"system\",\"content\":\"" text "\\nsystem\"},"

/* The turns of a conversation have the same opening, with any lead. */
static void turns_of_a_conversation(void **state)
{
    (void)state;
    uint64_t chat = opening("{\"messages\":[" LED("id 1") USER("hi") "]}", false);
    assert_int_not_equal(chat, 0);
    assert_true(chat == opening("{\"messages\":[" LED("id 2") USER("hi") SAID("a") "]}", true));
    assert_true(
        chat ==
        opening("{\"messages\":[" LED("id 3") USER("hi") SAID("a") "," USER("b") "]}", true));
    assert_true(chat != opening("{\"messages\":[" LED("id 1") USER("ho") "]}", false));
    uint64_t apart = opening(
        "{\"system\":[{\"text\":\"id 1\"},{\"text\":\"s\"}],\"messages\":[" USER("hi") "]}", false);
    assert_true(apart == opening("{\"messages\":[" USER("hi") SAID("a") "," USER(
                                     "b") "],"
                                          "\"system\":[{\"text\":\"id 2\"},{\"text\":\"s\"}]}",
                                 true));
    assert_true(apart != opening("{\"system\":\"s\",\"messages\":[" USER("ho") "]}", false));
    uint64_t input = opening("{\"instructions\":\"s\",\"input\":\"hi\"}", false);
    assert_true(input ==
                opening("{\"instructions\":\"s\",\"input\":[" USER(
                            "hi") ",{\"type\":"
                                  "\"function_call\",\"name\":\"f\",\"arguments\":\"{}\"}]}",
                        true));
    /* A second text of the user is no answer. A message with only a head gives no opening. */
    (void)opening("{\"messages\":[" LED("id") USER("hi") "," USER("ho") "]}", false);
    assert_int_equal(opening("{\"messages\":[" USER("hi") "]}", false), 0);
    assert_int_equal(opening("{\"prompt\":\"hi\"}", false), 0);
    /* The last of repeated members counts. */
    assert_true(chat == opening("{\"messages\":[" USER("no") SAID("a") "],\"messages\":[" LED("id")
                                    USER("hi") "]}",
                                false));
}

static unsigned points_shared(const char *a, const char *b)
{
    chains_of(a, b, &chain_a, &chain_b);
    return chain_shared(&chain_a, &chain_b);
}

#define LATE(text) ",{\"role\":\"system\",\"content\":\"" text "\"}"
#define TALK(first, rest)                                                                          \
    "{\"system\":\"s\",\"messages\":[{\"role\":\"user\",\"content\":\"" first "%s\"}" rest "]}"

/* If the engine moves late system messages to the head, only prompts with the same late messages
 * share the conversation. If they stay, a new late message at the end changes nothing before. */
static void late_system_messages(void **state)
{
    (void)state;
    const char *turn = TALK("", SAID("a"));
    const char *late = TALK("", SAID("a") LATE("note 1"));
    const char *next = TALK("", SAID("a") LATE("note 1") SAID("b"));
    const char *other = TALK("", SAID("a") LATE("note 2") SAID("b"));
    skim_rendering = (struct rendering){0};
    assert_true(points_shared(turn, late) >= 11 && points_shared(late, next) >= 11 &&
                points_shared(next, other) >= 11);
    skim_rendering.late_first = 1;
    assert_int_equal(points_shared(turn, late), 0);
    assert_int_equal(points_shared(next, other), 0);
    assert_true(points_shared(late, next) >= 11); /* added later: all text before is the same */
    assert_true(points_shared(turn, TALK("", SAID("a") SAID("b"))) >= 11);
    assert_int_equal(points_shared(late, TALK("", SAID("a") LATE("note 1") LATE("more"))), 0);
    /* `developer` is a system message too, in any order of the members. */
    assert_int_equal(
        points_shared(turn, TALK("", SAID("a") ",{\"content\":\"n\",\"role\":\"developer\"}")), 0);
    /* The lead stays in front: a system text, and system messages at the head. */
    const char *system_a =
        "{\"system\":\"%s\",\"messages\":[" USER("x") SAID("a") LATE("1") SAID("b") "]}";
    const char *system_b = "{\"system\":\"%s\",\"messages\":[" USER("x") SAID("a") "]}";
    assert_true(points_shared(system_a, system_b) >= 11);
    const char *led_a =
        "{\"messages\":[" LED("1") "{\"role\":\"system\",\"content\":\"%s\"}," USER("x") SAID("a")
            LATE("1") SAID("b") "]}";
    const char *led_b =
        "{\"messages\":[" LED("1") "{\"role\":\"system\",\"content\":\"%s\"}," USER("x")
            SAID("a") "]}";
    assert_true(points_shared(led_a, led_b) >= 11);
    /* A system message before all user messages belongs to the lead. */
    skim_rendering.late_first = 0;
    chains_of(led_b, led_b, &chain_a, &chain_b);
    assert_false(http_prompt_has_late(http_skim_form(&skim)));
    chains_of(late, late, &chain_a, &chain_b);
    assert_int_equal(http_skim_form(&skim)->late_bytes, strlen("note 1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(claude_codes_header),
        cmocka_unit_test(nulls),
        cmocka_unit_test(signed_urls),
        cmocka_unit_test(signatures_are_trimmed_from_urls),
        cmocka_unit_test(arguments),
        cmocka_unit_test(renderings),
        cmocka_unit_test(a_first_text_may_have_any_length),
        cmocka_unit_test(turns_of_a_conversation),
        cmocka_unit_test(late_system_messages),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
