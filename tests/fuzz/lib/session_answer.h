/* The engines' answers in the fuzz target of whole sessions: streams of each API, whole answers,
 * errors, model lists and metrics, in any framing and coding. Functions are static. */
#ifndef TESTS_FUZZ_LIB_SESSION_ANSWER_H
#define TESTS_FUZZ_LIB_SESSION_ANSWER_H

#include "tests/fuzz/lib/session_ask.h"

enum api { API_CHAT, API_COMPLETIONS, API_MESSAGES, API_RESPONSES, API_GENERATE, API_OTHER, APIS };

/* The events of a stream: `before` the first token, `token` again and again, `last` with the usage,
 * `end`. And the answer without streaming. */
static const struct {
    const char *before, *token, *last, *end, *whole;
} forms[APIS] = {
    [API_CHAT] =
        {"data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{"
         "\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}],"
         "\"prompt_token_ids\":[3,1,4,1,5]}\n\n",
         "data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" MARK_PLACE
         "\"},\"token_ids\":[9,2]}]}\n\n",
         "data: {\"id\":\"c1\",\"choices\":[],\"usage\":{\"prompt_tokens\":30,\"total_tokens\":32,"
         "\"completion_tokens\":2,\"prompt_tokens_details\":{\"cached_tokens\":16}}}\n\n",
         "data: [DONE]\n\n",
         "{\"id\":\"c1\",\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":"
         "\"" MARK_PLACE "\"},\"finish_reason\":\"stop\",\"token_ids\":[9,2]}],\"usage\":{"
         "\"prompt_tokens\":30,\"completion_tokens\":2},\"prompt_token_ids\":[3,1,4]}"},
    [API_COMPLETIONS] =
        {"data: {\"id\":\"t1\",\"choices\":[{\"index\":0,\"text\":\"\"}]}\n\n",
         "data: {\"id\":\"t1\",\"choices\":[{\"index\":0,\"text\":\"" MARK_PLACE "\"}]}\r\n\r\n",
         "data: "
         "{\"id\":\"t1\",\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":3"
         "}}\n\n",
         "data: [DONE]\n\n",
         "{\"id\":\"t1\",\"choices\":[{\"text\":\"" MARK_PLACE "\",\"finish_reason\":\"length\"}],"
         "\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":3}}"},
    [API_MESSAGES] =
        {"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\","
         "\"usage\":{\"input_tokens\":5,\"cache_read_input_tokens\":4,\"output_tokens\":0}}}\n\n"
         "event: ping\ndata: {\"type\":\"ping\"}\n\n",
         "event: content_block_delta\ndata: "
         "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":"
         "{\"type\":\"text_delta\",\"text\":\"" MARK_PLACE "\"}}\n\n",
         "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":"
         "\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n",
         "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
         "{\"id\":\"msg_1\",\"type\":\"message\",\"content\":[{\"type\":\"text\",\"text\":"
         "\"" MARK_PLACE "\"}],\"usage\":{\"input_tokens\":5,\"output_tokens\":2}}"},
    [API_RESPONSES] =
        {"event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":"
         "\"resp_1\",\"status\":\"in_progress\"}}\n\n",
         "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\","
         "\"delta\":\"" MARK_PLACE "\"}\n\n",
         "",
         "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":"
         "\"resp_1\",\"usage\":{\"input_tokens\":7,\"output_tokens\":1}}}\n\n",
         "{\"id\":\"resp_1\",\"object\":\"response\",\"output\":[{\"text\":\"" MARK_PLACE "\"}],"
         "\"usage\":{\"input_tokens\":7,\"output_tokens\":1}}"},
    [API_GENERATE] = {": comment\n\n",
                      "data: {\"text\":\"" MARK_PLACE "\",\"meta_info\":{\"id\":\"g\","
                      "\"prompt_tokens\":4,\"completion_tokens\":1,\"cached_tokens\":2}}\n\n",
                      "", "data: [DONE]\n\n",
                      "{\"text\":\"" MARK_PLACE "\",\"meta_info\":{\"prompt_tokens\":4,"
                      "\"completion_tokens\":1,\"cached_tokens\":0}}"},
    [API_OTHER] = {"", "data: " MARK_PLACE "\n\n", "", "",
                   "{\"data\":[{\"embedding\":[0.5],\"note\":\"" MARK_PLACE "\"}],\"usage\":{"
                   "\"prompt_tokens\":4,\"total_tokens\":4}}"},
};

/* Errors in the words of engines, as answers and as events. */
static const struct {
    unsigned status;
    const char *type, *body;
} errors[] = {
    {500, "application/json",
     "{\"error\":{\"message\":\"EngineCore died " MARK_PLACE
     "\",\"type\":\"InternalServerError\",\"code\":500}}"},
    {503, "application/json",
     "{\"error\":{\"message\":\"The request queue is full.\",\"code\":503}}"},
    {429, "application/json", "{\"error\":{\"message\":\"too many\",\"code\":429}}"},
    {404, "application/json",
     "{\"error\":{\"message\":\"The model `m` does not exist.\",\"type\":"
     "\"NotFoundError\",\"param\":\"model\",\"code\":404}}"},
    {400, "application/json",
     "{\"error\":{\"message\":\"This model's maximum context length is 4096 tokens. However, you "
     "requested 5000 tokens " MARK_PLACE "\",\"type\":\"BadRequestError\",\"code\":400}}"},
    {422, "application/json", "{\"detail\":[{\"loc\":[\"body\"],\"msg\":\"" MARK_PLACE "\"}]}"},
    {529, "application/json",
     "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\","
     "\"message\":\"" MARK_PLACE "\"}}"},
    {404, "text/html", "<html>no such page " MARK_PLACE "</html>"},
    {408, "text/plain", ""},
    {307, "text/plain", "elsewhere"},
    {204, "text/plain", ""},
    {401, "application/json", "{\"error\":\"Unauthorized\"}"},
    {413, "text/plain", "too large " MARK_PLACE},
    {200, "text/html", "<html>a page " MARK_PLACE "</html>"},
    {502, "text/plain", "bad gateway"},
    {501, "application/json", "{\"object\":\"error\",\"message\":\"" MARK_PLACE "\",\"code\":501}"},
};

static const char *const probe_bodies[] = {
    /* Answers to the router's own requests: model lists, metrics, server_info. */
    "{\"object\":\"list\",\"data\":[{\"id\":\"m\",\"object\":\"model\",\"owned_by\":\"vllm\","
    "\"max_model_len\":4096},{\"id\":\"m:adapter\",\"parent\":\"m\"}]}",
    "{\"object\":\"list\",\"data\":[{\"id\":\"m2\",\"owned_by\":\"sglang\"}]}",
    "vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 2\nvllm:num_requests_waiting{engine="
    "\"0\",model_name=\"m\"} 1\nvllm:kv_cache_usage_perc 0.5\nvllm:cache_config_info{block_size="
    "\"16\",num_gpu_blocks=\"1000\"} 1\nvllm:prompt_tokens_total 900\nvllm:generation_tokens_total "
    "77\nprocess_start_time_seconds 17e8\n",
    "sglang:num_running_reqs{dp_rank=\"0\"} 3\nsglang:num_queue_reqs{dp_rank=\"1\"} 9\n"
    "sglang:token_usage 0.25\nsglang:cache_hit_rate 0.5\nsglang:max_total_num_tokens 100000\n",
    "{\"max_total_num_tokens\":100000,\"page_size\":16,\"dp_size\":2,\"served_model_name\":\"m\"}",
    "{\"is_sleeping\":true}",
};

static enum api api_of(struct slice head)
{
    static const char *const paths[APIS] = {
        [API_CHAT] = "chat/completions ", [API_COMPLETIONS] = "/completions ",
        [API_MESSAGES] = "/messages ",    [API_RESPONSES] = "/responses ",
        [API_GENERATE] = "/generate ",
    };
    for (unsigned i = 0; i < API_OTHER; i++) {
        if (memmem(head.at, slice_find(head, '\n'), paths[i], strlen(paths[i])) != NULL)
            return (enum api)i;
    }
    return API_OTHER;
}

static bool has(struct slice text, const char *word)
{
    return text.len > 0 && memmem(text.at, text.len, word, strlen(word)) != NULL;
}

static void make_stream(struct session *s, struct buf *out, enum api api)
{
    unsigned b = byte(s), tokens = b % 4;
    CHECK(buf_append_cstr(out, b / 4 % 4 != 0 ? forms[api].before : "") == 0);
    if (b / 16 % 8 == 6)
        CHECK(buf_printf(out, "data: %s\n\n", errors[byte(s) % ARRAY_LEN(errors)].body) == 0);
    for (unsigned i = 0; i <= tokens; i++)
        CHECK(buf_append_cstr(out, forms[api].token) == 0);
    if (b / 16 % 8 == 7)
        return; /* without an end */
    CHECK(buf_append_cstr(out, b / 128 != 0 ? "" : forms[api].last) == 0);
    CHECK(buf_append_cstr(out, forms[api].end) == 0);
}

/* The answer to the router's own request. NULL: no such request. */
static const char *probe_answer(struct session *s, struct slice head)
{
    static const char *const paths[] = {"/v1/models", "/metrics", "server_info", "/is_sleeping"};
    static const uint8_t first[] = {0, 2, 4, 5};
    struct slice line = slice_of(head.at, slice_find(head, '\n'));
    if (has(line, "/health") || has(line, "/ping"))
        return "";
    for (unsigned i = 0; i < ARRAY_LEN(paths); i++) {
        if (has(line, paths[i]))
            return probe_bodies[first[i] + (i < 2 ? byte(s) % 2 : 0)];
    }
    return NULL;
}

struct reply {
    unsigned status;
    const char *type;
    struct buf body;
    bool stream, to_head;
};

enum { REPLY_ERROR = 1, REPLY_GZIP = 2, REPLY_ZSTD = 4, REPLY_LONG = 8, REPLY_MUTATED = 128 };

static void fill_reply(struct session *s, struct reply *a, struct slice head, struct slice body,
                       unsigned flags)
{
    enum api api = api_of(head);
    const char *probe = probe_answer(s, head);
    *a = (struct reply){.status = 200, .type = "application/json"};
    a->to_head = slice_starts_with(head, SLICE("HEAD "));
    if ((flags & REPLY_ERROR) != 0) {
        unsigned e = byte(s) % ARRAY_LEN(errors);
        a->status = errors[e].status;
        a->type = errors[e].type;
        CHECK(buf_append_cstr(&a->body, errors[e].body) == 0);
    } else if (probe != NULL) {
        CHECK(buf_append_cstr(&a->body, probe) == 0);
    } else if (has(body, "\"stream\":true")) {
        a->stream = true;
        a->type = "text/event-stream; charset=utf-8";
        make_stream(s, &a->body, api);
    } else {
        CHECK(buf_append_cstr(&a->body, forms[api].whole) == 0);
    }
    size_t n = (flags & REPLY_LONG) != 0 ? amount(s) : 0;
    for (size_t i = 0; i < n; i += 32)
        CHECK(buf_append_cstr(&a->body, a->stream ? ": a comment that is of use.....\n"
                                                  : " ...............................") == 0);
}

enum { BY_LENGTH, BY_CHUNKS, UNTIL_CLOSE, WITH_MORE, SHORT, MALFORMED_HEAD, MALFORMED_CHUNK, LONG };

static void write_reply(struct session *s, struct buf *out, const struct reply *a, unsigned framing,
                        unsigned coding)
{
    unsigned form = framing % 8;
    bool chunks = form == BY_CHUNKS || form == MALFORMED_CHUNK;
    size_t length = a->body.len + (form == LONG ? 7 : 0);
    if (framing / 8 % 4 == 3)
        CHECK(buf_append_cstr(out, framing / 32 % 2 == 0
                                       ? "HTTP/1.1 100 Continue\r\n\r\n"
                                       : "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n") == 0);
    CHECK(buf_printf(out, "HTTP/1.1 %u X\r\nContent-Type: %s\r\n", a->status, a->type) == 0);
    if (framing / 64 % 4 == 3)
        CHECK(buf_append_cstr(out, "Connection: close\r\nRetry-After: 1\r\nX-A: " MARK_PLACE
                                   "\r\n") == 0);
    if (coding != 0)
        CHECK(buf_printf(out, "Content-Encoding: %s\r\n",
                         (coding & REPLY_GZIP) != 0 ? "gzip" : "zstd") == 0);
    if (chunks)
        CHECK(buf_append_cstr(out, "Transfer-Encoding: chunked\r\n") == 0);
    else if (form != UNTIL_CLOSE)
        CHECK(buf_printf(out, "Content-Length: %zu%s\r\n", length,
                         form == MALFORMED_HEAD ? ", 9" : "") == 0);
    CHECK(buf_append_cstr(out, "\r\n") == 0);
    if (a->to_head)
        return;
    if (form == BY_CHUNKS)
        write_chunks(s, out, buf_slice(&a->body));
    else if (form == MALFORMED_CHUNK)
        CHECK(buf_printf(out, "%zx\r\n%.*s?", a->body.len, SLICE_ARG(a->body)) == 0);
    else
        CHECK(buf_append(out, a->body.at, a->body.len - (form == SHORT && a->body.len > 0)) == 0);
    if (form == WITH_MORE)
        CHECK(buf_append_cstr(out, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n" MARK_PLACE) ==
              0);
}

/* The next request at the engine. `early`: also an incomplete request, after which the engine reads
 * no more. */
static bool take_request(struct peer *p, bool early, struct slice *head, struct buf *body)
{
    struct slice all = buf_slice(&p->wire->out), rest = slice_skip(all, p->read);
    if (p->read > all.len || !cut_head(&rest, head))
        return false;
    bool none = line_of(*head, "content-length").at == NULL &&
                line_of(*head, "transfer-encoding").at == NULL;
    bool whole = cut_body(*head, &rest, none, body);
    if (!whole && !early)
        return false;
    p->read = whole ? all.len - rest.len : SIZE_MAX;
    return true;
}

enum reply_when { REPLY_WHOLE, REPLY_EARLY, REPLY_UNASKED };

/* An answer to the next request, still to be sent by the engine. */
static void make_reply(struct session *s, struct router *r, struct peer *p, unsigned flags,
                       unsigned framing, enum reply_when when)
{
    struct slice head = SLICE("GET / HTTP/1.1\r\n\r\n");
    struct buf body = {0};
    struct reply a;
    if (p->gone || p->wire->connecting)
        return;
    if (!take_request(p, when != REPLY_WHOLE, &head, &body) && when != REPLY_UNASKED) {
        buf_free(&body);
        return;
    }
    own(r, p);
    fill_reply(s, &a, head, buf_slice(&body), flags);
    buf_free(&body);
    size_t front = p->pending.len;
    mark(&a.body, p->owner);
    unsigned coding = flags & (REPLY_GZIP | REPLY_ZSTD);
    if (coding != 0)
        pack(&a.body, (coding & REPLY_GZIP) != 0);
    write_reply(s, &p->pending, &a, framing, coding);
    if ((flags & REPLY_MUTATED) != 0)
        mutate(s, &p->pending, front);
    mark(&p->pending, p->owner);
    buf_free(&a.body);
}

#endif
