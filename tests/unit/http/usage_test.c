#include "http/usage.h"

#include "base/check.h"
#include "tests/lib/test.h"

#include <stdlib.h>

struct wanted {
    int64_t prompt;
    int64_t cached;
    int64_t completion;
    unsigned token_events;
    bool done;
    bool error;
    const char *id;
};

/* The same result for the whole, for every split in two, and for single bytes. */
static void check(enum http_usage_form form, const char *text, struct wanted w)
{
    size_t len = strlen(text);
    for (size_t cut = 0; cut <= len + 1; cut++) {
        struct http_usage u;
        memset(&u, 0xa5, sizeof u); /* the code may not rely on zeroes */
        http_usage_init(&u, form);
        for (size_t at = 0; at < len;) {
            size_t n = cut > len ? 1 : at < cut ? cut - at : len - at;
            char *part = malloc(n); /* so that ASan sees reads beyond the end */
            memcpy(part, text + at, n);
            http_usage_feed(&u, part, n);
            free(part);
            at += n;
        }
        http_usage_finish(&u);
        assert_int_equal(u.prompt_tokens, w.prompt);
        assert_int_equal(u.cached_tokens, w.cached);
        assert_int_equal(u.completion_tokens, w.completion);
        assert_int_equal(u.token_events, w.token_events);
        assert_int_equal(u.first_token, w.token_events > 0);
        assert_int_equal(u.done, w.done);
        assert_int_equal(u.error, w.error);
        assert_string_equal(u.response_id, w.id);
    }
}

/* As observed from vLLM 0.32.0. */
#define CHUNK                                                                                      \
    "data: {\"id\":\"chatcmpl-b4\",\"object\":\"chat.completion.chunk\",\"created\":1795273254,"   \
    "\"model\":\"tiny\",\"choices\":[{\"index\":0,\"delta\":"
#define CHUNK_END ",\"logprobs\":null,\"finish_reason\":null,\"token_ids\":null}]}\n\n"

static void vllm_chat(void **state)
{
    (void)state;
    check(
        HTTP_USAGE_JSON,
        "{\"id\":\"chatcmpl-my-req-1\",\"object\":\"chat.completion\",\"created\":1795273254,"
        "\"model\":\"tiny\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\","
        "\"content\":"
        "\"emsnemsn\",\"refusal\":null,\"annotations\":null,\"audio\":null,\"function_call\":null,"
        "\"reasoning\":null},\"logprobs\":null,\"finish_reason\":\"length\",\"stop_reason\":null,"
        "\"token_ids\":null,\"routed_experts\":null}],\"service_tier\":null,\"system_fingerprint\":"
        "\"vllm-0.32.0-39c297dc\",\"usage\":{\"prompt_tokens\":16,\"total_tokens\":20,"
        "\"completion_tokens\":4,\"prompt_tokens_details\":{\"cached_tokens\":0,"
        "\"created_cache_tokens\":0,\"multimodal_tokens\":null},\"completion_tokens_details\":null}"
        ","
        "\"prompt_logprobs\":null,\"kv_transfer_params\":null,\"metrics\":null}",
        (struct wanted){16, 0, 4, 1, true, false, "chatcmpl-my-req-1"});
    check(
        HTTP_USAGE_SSE,
        "data: "
        "{\"id\":\"chatcmpl-b4799679660c65e4\",\"object\":\"chat.completion.chunk\",\"created\":"
        "1795273254,\"model\":\"tiny\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\","
        "\"content\":\"\"},\"logprobs\":null,\"finish_reason\":null}],\"prompt_token_ids\":null,"
        "\"prompt_text\":null}\n\n" CHUNK "{\"content\":\"n\"}" CHUNK_END CHUNK
        "{\"content\":\"ems\"}" CHUNK_END
        "data: {\"id\":\"x\",\"choices\":[],\"usage\":{\"prompt_tokens\":830,\"total_tokens\":832,"
        "\"completion_tokens\":2,\"prompt_tokens_details\":{\"cached_tokens\":768,"
        "\"created_cache_tokens\":0}},\"system_fingerprint\":\"vllm-0.32.0-39c297dc\"}\n\n"
        "data: [DONE]\n\n",
        (struct wanted){830, 768, 2, 2, true, false, "chatcmpl-b4799679660c65e4"});
    /* Without a usage chunk, and cut off. */
    check(HTTP_USAGE_SSE,
          CHUNK "{\"role\":\"assistant\",\"content\":\"\"}" CHUNK_END CHUNK
                "{\"content\":null,\"tool_calls\":[]}" CHUNK_END,
          (struct wanted){-1, -1, -1, 0, false, false, "chatcmpl-b4"});
    check(HTTP_USAGE_SSE,
          CHUNK "{\"reasoning_content\":\"hm\"}" CHUNK_END CHUNK
                "{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"\"}}]}" CHUNK_END,
          (struct wanted){-1, -1, -1, 2, false, false, "chatcmpl-b4"});
    check(
        HTTP_USAGE_SSE,
        "data: {\"error\": {\"message\": \"EngineCore encountered an issue.\", \"code\": 500}}\n\n"
        "data: [DONE]\n\n",
        (struct wanted){-1, -1, -1, 0, true, true, ""});
    check(HTTP_USAGE_SSE,
          "data: {\"id\":\"cmpl-1\",\"choices\":[{\"index\":0,\"text\":\" "
          "a\",\"finish_reason\":null}],"
          "\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1,\"total_tokens\":4}}\n\n"
          "data: {\"id\":\"cmpl-1\",\"choices\":[{\"text\":\"b\"}],"
          "\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2,\"total_tokens\":5}}\n\n",
          (struct wanted){3, -1, 2, 2, false, false, "cmpl-1"});
}

static void anthropic(void **state)
{
    (void)state;
    check(
        HTTP_USAGE_JSON,
        "{\"id\":\"chatcmpl-1\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":"
        "\"text\",\"text\":\"hi\"}],\"stop_reason\":\"max_tokens\",\"usage\":{\"input_tokens\":62,"
        "\"output_tokens\":2,"
        "\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":768}}",
        (struct wanted){830, 768, 2, 1, true, false, "chatcmpl-1"});
    check(HTTP_USAGE_SSE,
          "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\","
          "\"content\":[],\"usage\":{\"input_tokens\":830,\"output_tokens\":0}}}\n\n"
          "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,"
          "\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
          "event: content_block_delta\ndata: "
          "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{"
          "\"type\":\"text_delta\",\"text\":\"hi\"}}\n\n"
          "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":"
          "\"end_turn\"},\"usage\":{\"input_tokens\":62,\"output_tokens\":2,"
          "\"cache_read_input_tokens\":768,\"cache_creation_input_tokens\":0}}\n\n"
          "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
          (struct wanted){830, 768, 2, 1, true, false, "msg_1"});
    check(HTTP_USAGE_JSON, "{\"type\":\"error\",\"error\":{\"type\":\"x\",\"message\":\"busy\"}}",
          (struct wanted){-1, -1, -1, 0, true, true, ""});
}

static void responses(void **state)
{
    (void)state;
    check(HTTP_USAGE_SSE,
          "event: response.created\ndata: "
          "{\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\","
          "\"error\":null,\"instructions\":\"be\",\"text\":{\"format\":{}},\"output\":[],\"usage\":"
          "null},"
          "\"sequence_number\":0}\n\n"
          "event: response.output_text.delta\ndata: "
          "{\"type\":\"response.output_text.delta\",\"item_id\":"
          "\"msg_9\",\"delta\":\"Hi\"}\n\n"
          "event: response.output_text.done\ndata: {\"text\":\"Hi\",\"type\":"
          "\"response.output_text.done\"}\n\n"
          "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":"
          "\"resp_1\",\"status\":\"incomplete\",\"output\":[{\"content\":[{\"text\":\"Hi\"}]}],"
          "\"usage\":{"
          "\"input_tokens\":830,\"input_tokens_details\":{\"cached_tokens\":768},\"output_tokens\":"
          "2}}}"
          "\n\n",
          (struct wanted){830, 768, 2, 1, true, false, "resp_1"});
    check(HTTP_USAGE_JSON,
          "{\"id\":\"resp_2\",\"object\":\"response\",\"error\":null,\"usage\":{\"input_tokens\":9,"
          "\"input_tokens_details\":{\"cached_tokens\":8},\"output_tokens\":7}}",
          (struct wanted){9, 8, 7, 1, true, false, "resp_2"});
}

static void sglang(void **state)
{
    (void)state;
    check(HTTP_USAGE_JSON,
          "{\"text\":\"x\",\"output_ids\":[1],\"meta_info\":{\"id\":\"r1\",\"finish_reason\":{"
          "\"type\":"
          "\"length\"},\"prompt_tokens\":12,\"completion_tokens\":3,\"cached_tokens\":8}}",
          (struct wanted){12, 8, 3, 1, true, false, "r1"});
    check(HTTP_USAGE_JSON,
          "[{\"text\":\"x\",\"meta_info\":{\"id\":\"r1\",\"prompt_tokens\":12,\"completion_"
          "tokens\":3,"
          "\"cached_tokens\":8}},{\"meta_info\":{\"prompt_tokens\":5,\"completion_tokens\":1,"
          "\"cached_tokens\":0}}]",
          (struct wanted){17, 8, 4, 1, true, false, "r1"});
    check(HTTP_USAGE_SSE,
          "data: {\"text\":\"\",\"meta_info\":{\"id\":\"r1\",\"prompt_tokens\":12}}\n\n"
          "data: {\"text\":\"a\",\"meta_info\":{\"id\":\"r1\",\"prompt_tokens\":12,"
          "\"completion_tokens\":1,\"cached_tokens\":4}}\n\ndata: [DONE]\n\n",
          (struct wanted){12, 4, 1, 1, true, false, "r1"});
    check(HTTP_USAGE_JSON, "{\"object\":\"error\",\"message\":\"bad\",\"code\":400}",
          (struct wanted){-1, -1, -1, 0, true, true, ""});
    /* Chat without --enable-cache-report: null is not zero. */
    check(HTTP_USAGE_JSON,
          "{\"id\":\"f0\",\"object\":\"chat.completion\",\"choices\":[{\"message\":{\"content\":"
          "\"a\"}}],"
          "\"usage\":{\"prompt_tokens\":458,\"total_tokens\":462,\"completion_tokens\":4,"
          "\"prompt_tokens_details\":null,\"reasoning_tokens\":0,\"completion_tokens_details\":"
          "null}}",
          (struct wanted){458, -1, 4, 1, true, false, "f0"});
    /* Messages: cached tokens are separate, in a stream at the start; without the flag input_tokens
     * is all of the prompt. */
    check(HTTP_USAGE_JSON,
          "{\"id\":\"m0\",\"type\":\"message\",\"stop_reason\":\"max_tokens\",\"usage\":{\"input_"
          "tokens\":10,\"output_tokens\":3,"
          "\"cache_read_input_tokens\":448}}",
          (struct wanted){458, 448, 3, 1, true, false, "m0"});
    check(
        HTTP_USAGE_SSE,
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m1\","
        "\"usage\":{\"input_tokens\":10,\"output_tokens\":0,\"cache_read_input_tokens\":448}}}\n\n"
        "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":"
        "\"end_turn\"},\"usage\":{\"output_tokens\":3}}\n\n"
        "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
        (struct wanted){458, 448, 3, 0, true, false, "m1"});
    check(HTTP_USAGE_JSON,
          "{\"id\":\"m2\",\"type\":\"message\",\"stop_reason\":\"max_tokens\",\"usage\":{\"input_"
          "tokens\":458,\"output_tokens\":3}}",
          (struct wanted){458, -1, 3, 1, true, false, "m2"});
}

static void framing(void **state)
{
    (void)state;
    /* byte order mark, comments, CR and CRLF, data on two lines, no space, unknown fields */
    check(HTTP_USAGE_SSE,
          "\xef\xbb\xbf: hi\r\ndata:{\"id\":\r\ndata:\"a\",\"text\":\"t\"}\r\rid: 7\ndatax: {}\n\n"
          ": [DONE]\n\ndata\n\ndata: not json\n\ndata:  [DONE]\n\n",
          (struct wanted){-1, -1, -1, 1, false, false, "a"});
    /* Two lines of data, similar to a single line. */
    check(HTTP_USAGE_SSE, "data: {\"id\":\rdata: \"a\",\"text\":\"t\"}\n\n",
          (struct wanted){-1, -1, -1, 1, false, false, "a"});
    check(HTTP_USAGE_SSE, "data:[DONE]\r\n\r\n", (struct wanted){-1, -1, -1, 0, true, false, ""});
    check(HTTP_USAGE_SSE, "data: [DONE]", (struct wanted){-1, -1, -1, 0, true, false, ""});
    check(HTTP_USAGE_SSE, "data: [DONE]x\n\n", (struct wanted){-1, -1, -1, 0, false, false, ""});
    check(HTTP_USAGE_JSON, "{\"usage\":{\"prompt_tokens\":1}",
          (struct wanted){-1, -1, -1, 0, false, false, ""});
    check(HTTP_USAGE_JSON, "<html>", (struct wanted){-1, -1, -1, 0, false, false, ""});
    check(HTTP_USAGE_JSON,
          "{\"x\":{\"usage\":{\"prompt_tokens\":1}},\"usage\":{\"prompt_tokens\":-5,"
          "\"completion_tokens\":\"7\"},\"choices\":{\"delta\":{\"content\":\"c\"}}}",
          (struct wanted){-1, -1, -1, 0, true, false, ""});
}

/* Figures from a faulty or lying engine must not make sums overflow. */
static void figures_beyond_belief(void **state)
{
    (void)state;
    const int64_t most = INT64_C(1) << 40;
    check(HTTP_USAGE_JSON,
          "{\"usage\":{\"prompt_tokens\":1099511627776,\"completion_tokens\":1099511627777,"
          "\"prompt_tokens_details\":{\"cached_tokens\":-9223372036854775808}}}",
          (struct wanted){most, -1, -1, 0, true, false, ""});
    check(HTTP_USAGE_JSON,
          "{\"usage\":{\"input_tokens\":9223372036854775807,\"output_tokens\":1e300,"
          "\"cache_read_input_tokens\":9223372036854775807,"
          "\"cache_creation_input_tokens\":9223372036854775807}}",
          (struct wanted){-1, -1, -1, 0, true, false, ""});
    check(HTTP_USAGE_JSON,
          "{\"usage\":{\"input_tokens\":1099511627776,\"cache_read_input_tokens\":1099511627776,"
          "\"cache_creation_input_tokens\":1099511627776}}",
          (struct wanted){most, most, -1, 0, true, false, ""});
    check(HTTP_USAGE_JSON,
          "[{\"usage\":{\"prompt_tokens\":1099511627776,\"completion_tokens\":5}},"
          "{\"usage\":{\"prompt_tokens\":1099511627776,\"completion_tokens\":1e19}},"
          "{\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":6}}]",
          (struct wanted){most, -1, 11, 1, true, false, ""});
    check(HTTP_USAGE_SSE, /* an accepted figure stays */
          "data: {\"usage\":{\"prompt_tokens\":3}}\n\n"
          "data: {\"usage\":{\"prompt_tokens\":18446744073709551616}}\n\n",
          (struct wanted){3, -1, -1, 0, false, false, ""});
}

/* Events are not read again if they differ from the event before only in the text: any change of
 * meaning must still be noticed. */
static void events_differing_only_in_text_are_not_reparsed(void **state)
{
    (void)state;
    const struct wanted w = {-1, -1, -1, 5, true, false, "chatcmpl-b4"};
    check(HTTP_USAGE_SSE,
          CHUNK "{\"content\":\"one\"}" CHUNK_END CHUNK "{\"content\":\" two\"}" CHUNK_END CHUNK
                "{\"content\":\"\"}" CHUNK_END /* no token */
                    CHUNK "{\"content\":\"a \\\" b\"}" CHUNK_END CHUNK
                "{\"content\":\"\xc3\xa9\"}" CHUNK_END CHUNK
                "{\"content\":\"\",\"x\":\"y\"}" CHUNK_END /* no token: the text ends early */
                    CHUNK "{\"content\":\"five\"}" CHUNK_END "data: [DONE]\n\n",
          w);
    const struct wanted told = {7, 4, 2, 2, true, true, "chatcmpl-b4"};
    check(HTTP_USAGE_SSE,
          CHUNK "{\"content\":\"one\"}" CHUNK_END CHUNK "{\"content\":\"two\"}" CHUNK_END
                "data: {\"id\":\"chatcmpl-b4\",\"choices\":[],\"usage\":{\"prompt_tokens\":7,"
                "\"completion_tokens\":2,\"prompt_tokens_details\":{\"cached_tokens\":4}}}\n\n"
                "data: {\"error\":{\"message\":\"EngineCore\"}}\n\ndata: [DONE]\n\n",
          told);
}

/* Bytes of text, read in pieces of each size: the text of events, apart from their count of
 * tokens. */
static void says(enum http_usage_form form, const char *text, uint64_t text_bytes)
{
    size_t len = strlen(text);
    for (size_t step = 1; step <= len + 1; step++) {
        struct http_usage u;
        http_usage_init(&u, form);
        for (size_t at = 0; at < len; at += step)
            http_usage_feed(&u, text + at, len - at < step ? len - at : step);
        http_usage_finish(&u);
        assert_int_equal(u.text_bytes, text_bytes);
    }
}

static void bytes_of_text(void **state)
{
    (void)state;
    says(HTTP_USAGE_SSE,
         CHUNK "{\"content\":\"one\"}" CHUNK_END CHUNK "{\"content\":\" two\"}" CHUNK_END CHUNK
               "{\"content\":\"a \\\" b\"}" CHUNK_END CHUNK "{\"content\":\"\"}" CHUNK_END,
         3 + 4 + 5);
    /* Several texts in each event, all events of the same shape. */
    says(HTTP_USAGE_SSE,
         "data: {\"choices\":[{\"delta\":{\"reasoning\":\"ab\",\"content\":\"c\"}}]}\n\n"
         "data: {\"choices\":[{\"delta\":{\"reasoning\":\"ab\",\"content\":\"cd\"}}]}\n\n"
         "data: {\"choices\":[{\"delta\":{\"reasoning\":\"ab\",\"content\":\"cde\"}}]}\n\n",
         3 + 4 + 5);
    says(HTTP_USAGE_SSE, /* the done event repeats the text */
         "data: {\"type\":\"response.output_text.delta\",\"delta\":\"abcd\"}\n\n"
         "data: {\"text\":\"abcd\",\"type\":\"response.output_text.done\"}\n\n",
         4);
    says(HTTP_USAGE_JSON, "{\"choices\":[{\"message\":{\"content\":\"abc\"}},{\"text\":\"d\"}]}",
         4);
    says(HTTP_USAGE_JSON, "{\"text\":\"a transcript\",\"usage\":{\"seconds\":3}}", 12);
    says(HTTP_USAGE_JSON, "{\"data\":[{\"embedding\":\"abcdefgh\"}],\"model\":\"m\"}", 0);
}

/* As in SGLang 0.5. */
static void ollama(void **state)
{
    (void)state;
    static const char chat[] =
        "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"ab\"},\"done\":false}\n"
        "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"c\"},\"done\":false}\n"
        "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true,"
        "\"prompt_eval_count\":9,\"eval_count\":2}\n";
    check(HTTP_USAGE_LINES, chat, (struct wanted){9, -1, 2, 2, true, false, ""});
    says(HTTP_USAGE_LINES, chat, 3);
    static const char generate[] = "{\"response\":\"ab\",\"done\":false}\n"
                                   "{\"response\":\"\",\"done\":true,\"prompt_eval_count\":9,"
                                   "\"eval_count\":1}";
    check(HTTP_USAGE_LINES, generate, (struct wanted){9, -1, 1, 1, true, false, ""});
    check(HTTP_USAGE_JSON,
          "{\"message\":{\"content\":\"ab\"},\"done\":true,\"prompt_eval_count\":9,"
          "\"eval_count\":1}",
          (struct wanted){9, -1, 1, 1, true, false, ""});
}

/* The end of a body, read in pieces of each size. */
static void ends(enum http_usage_form form, const char *text, bool unfinished,
                 enum http_usage_place place, unsigned error_status, int64_t sequence_number)
{
    size_t len = strlen(text);
    for (size_t step = 1; step <= len + 1; step++) {
        struct http_usage u;
        http_usage_init(&u, form);
        for (size_t at = 0; at < len; at += step)
            http_usage_feed(&u, text + at, len - at < step ? len - at : step);
        if (form == HTTP_USAGE_SSE)
            assert_int_equal(http_usage_place(&u), place);
        http_usage_finish(&u);
        assert_int_equal(http_usage_unfinished(&u), unfinished);
        if (form == HTTP_USAGE_SSE)
            assert_int_equal(http_usage_place(&u), place);
        assert_int_equal(u.error_status, error_status);
        assert_int_equal(u.sequence_number, sequence_number);
    }
}

#define TOKEN_EVENT "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n"

static void ends_of_streams(void **state)
{
    (void)state;
    enum http_usage_form sse = HTTP_USAGE_SSE;
    enum http_usage_place between = HTTP_USAGE_BETWEEN, in_line = HTTP_USAGE_IN_LINE;
    ends(sse, "", true, between, 0, -1);
    ends(sse, ": ping\n\n", true, between, 0, -1); /* only a comment came (simulation, seed 93) */
    ends(sse, ": ping\r\n\r\n: pi", true, in_line, 0, -1);
    ends(sse, "dat", true, HTTP_USAGE_IN_NAME, 0, -1); /* seed 773 */
    ends(sse, "\n\neven", true, HTTP_USAGE_IN_NAME, 0, -1);
    ends(sse, TOKEN_EVENT, true, between, 0, -1);
    ends(sse, TOKEN_EVENT TOKEN_EVENT "data: [DONE]\n\n", false, between, 0, -1);
    ends(sse, TOKEN_EVENT "data: [DONE]", false, in_line, 0, -1);
    ends(sse, TOKEN_EVENT "data: [DON", true, in_line, 0, -1);
    ends(sse, TOKEN_EVENT "data: {\"choi", true, in_line, 0, -1);
    ends(sse, TOKEN_EVENT "data: {}\n", true, in_line, 0, -1);
    ends(sse, TOKEN_EVENT "event: er", true, in_line, 0, -1);
    ends(sse, TOKEN_EVENT "dat", true, HTTP_USAGE_IN_NAME, 0, -1);
    ends(sse, TOKEN_EVENT ": ping\n\n", true, between, 0, -1);
    ends(sse, "data: {\"error\":{\"message\":\"x\",\"code\":503}}\n\n", false, between, 503, -1);
    ends(sse, "data: {\"error\":{\"type\":\"BadRequestError\",\"code\":\"x\"}}\n\n", false, between,
         400, -1);
    ends(sse, "data: {\"error\":{\"type\":\"api_error\",\"code\":429}}\n\n", false, between, 429,
         -1);
    ends(sse, "data: {\"error\":{\"type\":\"Unheard\",\"code\":7}}\n\n", false, between, 0, -1);
    ends(sse,
         "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n",
         false, between, 503, -1);
    ends(sse,
         "data: {\"type\":\"response.failed\",\"sequence_number\":7,"
         "\"response\":{\"error\":{\"code\":\"rate_limit_exceeded\"}}}\n\n",
         false, between, 429, 7);
    ends(sse, "data: {\"type\":\"response.created\",\"sequence_number\":0}\n\n", true, between, 0,
         0);
    /* Streams without a known end. */
    ends(sse, "data: 1\n\n", false, between, 0, -1);
    ends(sse, "ping", false, HTTP_USAGE_IN_NAME, 0, -1);
    ends(sse, "\x1f\x8b\n\n", false, between, 0, -1);
}

static void ends_of_whole_answers(void **state)
{
    (void)state;
    enum http_usage_form json = HTTP_USAGE_JSON;
    ends(json, "", false, 0, 0, -1);
    ends(json, "{\"choices\":[]}", false, 0, 0, -1);
    ends(json, "{\"choices\":[", true, 0, 0, -1);
    ends(json, "{\"choices\":NaN", false, 0, 0, -1); /* no JSON, but Python writes it */
    ends(json, "{\"error\":{\"code\":500}}", false, 0, 500, -1);
    ends(json, "ok", false, 0, 0, -1);
}

/* The status in an error event; it counts once the event is whole. */
static void statuses_of_errors(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned code;
        bool error;
        bool aborted;
    } cases[] = {
        {"data: {\"error\": {\"message\": \"full\", \"code\": 503}}\n\n", 503, true, false},
        {"data: {\"object\":\"error\",\"message\":\"bad\",\"code\":400}\n\n", 400, true, false},
        {"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n",
         503, true, false},
        {"data: {\"text\":\"\",\"meta_info\":{\"finish_reason\":{\"type\":\"abort\","
         "\"status_code\":503}}}\n\n",
         503, true, true},
        {"data: {\"text\":\"\",\"meta_info\":{\"finish_reason\":{\"type\":\"abort\","
         "\"message\":\"Aborted\",\"status_code\":null}}}\n\n",
         0, true, true},
        {"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},\"logprobs\":null,"
         "\"finish_reason\":\"abort\",\"stop_reason\":null,\"token_ids\":null}]}\n\n",
         0, true, true}, /* vLLM */
        {"data: {\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"abort\"}]}\n\n", 0,
         true, true},
        {"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"aborted\"}]}\n\n", 0, false, false},
        {"data: {\"finish_reason\":\"abort\"}\n\n", 0, false, false}, /* not in a choice */
        {"data: "
         "{\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"server_error\"}}}\n\n",
         500, true, false},
        {"data: {\"error\":{\"code\":200}}\n\n", 0, true, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct http_usage u;
        size_t len = strlen(cases[i].text);
        http_usage_init(&u, HTTP_USAGE_SSE);
        http_usage_feed(&u, cases[i].text, len - 1);
        assert_false(u.error_whole);
        http_usage_feed(&u, cases[i].text + len - 1, 1);
        assert_int_equal(u.error_whole, cases[i].error);
        assert_int_equal(u.error_status, cases[i].code);
        assert_int_equal(u.aborted, cases[i].aborted);
        assert_false(u.first_token);
    }
}

/* Anthropic's messages and OpenAI's responses have no word for an abort. vLLM then leaves the stop
 * reason of a message empty, and calls a response cancelled; SGLang calls a response failed. */
static void aborts_are_recognised_in_each_api(void **state)
{
    (void)state;
    enum http_usage_form sse = HTTP_USAGE_SSE, json = HTTP_USAGE_JSON;
    static const char start[] =
        "data: {\"type\":\"message_start\",\"message\":{\"type\":\"message\","
        "\"stop_reason\":null}}\n\n";
    static const char stop[] = "data: {\"type\":\"message_stop\"}\n\n";
    static const char none[] = "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":null,"
                               "\"stop_sequence\":null}}\n\n";
    static const char some[] =
        "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n";
    const struct {
        enum http_usage_form form;
        const char *events[3];
        bool aborted;
        bool error;
    } cases[] = {
        {sse, {start, none, stop}, true, true},
        {sse, {start, some, stop}, false, false},
        {sse, {none, some, stop}, false, false}, /* Anthropic allows several */
        {sse, {some, none, stop}, false, false},
        {sse, {start, none}, false, false}, /* cut */
        {sse, {start, stop}, false, false}, /* unlike engines */
        {json, {"{\"id\":\"m\",\"type\":\"message\",\"content\":[]}"}, true, true},
        {json, {"{\"type\":\"message\",\"stop_reason\":null}"}, true, true},
        {json, {"{\"stop_reason\":\"max_tokens\",\"type\":\"message\"}"}, false, false},
        {json, {"{\"type\":\"message\",\"content\":[{\"type\":\"tex"}, false, false},
        {json, {"{\"choices\":[{\"message\":{\"type\":\"message\"}}]}"}, false, false},
        {sse,
         {"data: {\"type\":\"response.completed\",\"response\":{\"status\":\"cancelled\"}}\n\n"},
         true,
         true},
        {sse,
         {"data: {\"type\":\"response.completed\",\"response\":{\"status\":\"incomplete\"}}\n\n"},
         false,
         false},
        {json, {"{\"object\":\"response\",\"status\":\"cancelled\"}"}, true, true},
        {json, {"{\"object\":\"response\",\"status\":\"completed\"}"}, false, false},
        {json,
         {"{\"object\":\"response\",\"status\":\"failed\",\"error\":{\"code\":\"server_error\"}}"},
         false,
         true},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct http_usage u;
        http_usage_init(&u, cases[i].form);
        for (unsigned k = 0; k < 3 && cases[i].events[k] != NULL; k++)
            http_usage_feed(&u, cases[i].events[k], strlen(cases[i].events[k]));
        http_usage_finish(&u);
        assert_int_equal(u.aborted, cases[i].aborted);
        assert_int_equal(u.error, cases[i].error);
        assert_int_equal(u.error_whole, cases[i].error);
    }
}

static void tokens_of_media(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        int64_t image, sound, film;
    } cases[] = {
        {"{\"usage\":{\"prompt_tokens\":900,\"prompt_tokens_details\":{\"cached_tokens\":0,"
         "\"multimodal_tokens\":{\"image\":512,\"video\":77}}}}",
         512, -1, 77}, /* vLLM */
        {"{\"usage\":{\"prompt_tokens\":900,\"prompt_tokens_details\":{\"cached_tokens\":0,"
         "\"image_tokens\":256,\"audio_tokens\":30,\"video_tokens\":null}}}",
         256, 30, -1}, /* SGLang */
        {"{\"usage\":{\"prompt_tokens\":9,\"completion_tokens_details\":{\"audio_tokens\":3},"
         "\"image\":4,\"prompt_tokens_details\":{\"multimodal_tokens\":null}}}",
         -1, -1, -1},
    };
    for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
        struct http_usage u;
        http_usage_init(&u, HTTP_USAGE_JSON);
        http_usage_feed(&u, cases[i].body, strlen(cases[i].body));
        http_usage_finish(&u);
        assert_int_equal(u.media_tokens[CHAIN_IMAGE], cases[i].image);
        assert_int_equal(u.media_tokens[CHAIN_SOUND], cases[i].sound);
        assert_int_equal(u.media_tokens[CHAIN_FILM], cases[i].film);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vllm_chat),
        cmocka_unit_test(anthropic),
        cmocka_unit_test(responses),
        cmocka_unit_test(sglang),
        cmocka_unit_test(framing),
        cmocka_unit_test(figures_beyond_belief),
        cmocka_unit_test(events_differing_only_in_text_are_not_reparsed),
        cmocka_unit_test(bytes_of_text),
        cmocka_unit_test(ollama),
        cmocka_unit_test(ends_of_streams),
        cmocka_unit_test(ends_of_whole_answers),
        cmocka_unit_test(statuses_of_errors),
        cmocka_unit_test(aborts_are_recognised_in_each_api),
        cmocka_unit_test(tokens_of_media),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
