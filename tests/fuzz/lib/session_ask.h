/* Requests of clients and operators in the fuzz target of whole sessions: a grammar of every API,
 * with fields, framings and codings chosen by the input. Functions are static. */
#ifndef TESTS_FUZZ_LIB_SESSION_ASK_H
#define TESTS_FUZZ_LIB_SESSION_ASK_H

#define ZLIB_CONST
#include <zlib.h>
#include <zstd.h>

#include "tests/fuzz/lib/session.h"

enum { ASK_CHUNKED = 1, ASK_GZIP = 2, ASK_ZSTD = 4, ASK_STREAM = 8, ASK_HEADERS = 16 };
enum { ASK_FIELDS = 32, ASK_LONG = 64, ASK_MUTATED = 128 };

/* `~` becomes the model, `^` the streaming flag, `$` the prompt, `!` more fields. */
static const struct {
    const char *target, *body; /* NULL: none */
} questions[] = {
    {"POST /v1/chat/completions",
     "{\"model\":\"~\",\"stream\":^!,\"messages\":[{\"role\":\"system\",\"content\":\"You are.\"},"
     "{\"role\":\"user\",\"content\":\"$\"}]}"},
    {"POST /v1/completions", "{\"model\":\"~\",\"stream\":^!,\"prompt\":\"$\"}"},
    {"POST /v1/messages",
     "{\"model\":\"~\",\"max_tokens\":9,\"stream\":^!,\"system\":[{\"type\":\"text\",\"text\":"
     "\"be\"}],\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"$\"}]}]"
     "}"},
    {"POST /v1/responses", "{\"model\":\"~\",\"stream\":^!,\"store\":true,\"input\":\"$\"}"},
    {"POST /v1/responses",
     "{\"model\":\"~\",\"previous_response_id\":\"resp_1\",\"stream\":^!,\"input\":[{\"role\":"
     "\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"$\"}]}]}"},
    {"POST /generate", "{\"text\":\"$\",\"stream\":^!,\"sampling_params\":{\"max_new_tokens\":4}}"},
    {"POST /v1/embeddings", "{\"model\":\"~\",\"input\":[\"$\",\"b\"]!}"},
    {"POST /tokenize", "{\"model\":\"~\",\"prompt\":\"$\"!}"},
    {"POST /v1/chat/completions",
     "{\"messages\":[{\"role\":\"user\",\"content\":\"$\"}],\"stream\":^!}"},
    {"POST /v1/audio/transcriptions",
     "--b\r\nContent-Disposition: form-data; "
     "name=\"model\"\r\n\r\n~\r\n--b\r\nContent-Disposition: "
     "form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\n$\r\n--b--\r\n"},
    {"POST /upload", "$"},
    {"PUT /other?x=%41", "{\"a\":1,\"model\":\"~\"!,\"t\":\"$\"}"},
    {"GET /v1/models", NULL},
    {"GET /v1/models/m", NULL},
    {"GET /v1/responses/resp_1", NULL},
    {"POST /v1/responses/resp_1/cancel", ""},
    {"DELETE /v1/responses/resp_1", NULL},
    {"HEAD /v1/models", NULL},
    {"HEAD /thing", NULL},
    {"GET /", NULL},
    {"GET /health", NULL},
    {"GET /v1/responses", NULL},
    {"POST /flush_cache", "{}"},
    {"POST /reset_prefix_cache?model=m", NULL},
    {"OPTIONS /v1/chat/completions", NULL},
    {"GET /metrics", NULL},
    {"POST /v1/load_lora_adapter", "{\"lora_name\":\"~\",\"lora_path\":\"$\"}"},
};

static const char *const ask_fields[] = {
    ",\"stream_options\":{\"include_usage\":true}",
    ",\"stream_options\":{\"include_usage\":false}",
    ",\"kv_transfer_params\":{\"do_remote_prefill\":true}",
    ",\"bootstrap_host\":\"10.9.9.9\"",
    ",\"prompt_cache_key\":\"session-7\"",
    ",\"user\":\"u\",\"metadata\":{\"user_id\":\"{\\\"session_id\\\":\\\"s\\\"}\"}",
    ",\"max_tokens\":3,\"n\":2,\"best_of\":4",
    ",\"data_parallel_rank\":1",
    ",\"priority\":-1,\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]",
    ",\"response_format\":{\"type\":\"json_object\"},\"ignore_eos\":true",
    ",\"max_completion_tokens\":99999999999",
    ",\"model\":\"m2\"",
    ", \"stream\" : true , \"x\":[[[[[[[[[[]]]]]]]]]]",
    ",\"request_id\":\"r\",\"truncate_prompt_tokens\":-1",
    ",\"lora_path\":\"/x\",\"rid\":[\"1\"]",
    ",\"return_token_ids\":true,\"logprobs\":5,\"echo\":true",
};

static const char *const ask_headers[] = {
    "Connection: close\r\n",
    "Expect: 100-continue\r\n",
    "Accept-Encoding: gzip, zstd\r\n",
    "X-Session-Id: one\r\nUser-Agent: codex_cli_rs/0.1\r\n",
    "Authorization: Bearer gv-alice\r\n",
    "X-Api-Key: gv-bob\r\nAnthropic-Version: 2023-06-01\r\n",
    "X-Request-Id: 4711\r\nX-Data-Parallel-Rank: 1\r\n",
    "Origin: http://page.example\r\nAccess-Control-Request-Method: POST\r\n",
    "X-Forwarded-For: 1.2.3.4\r\nForwarded: for=x\r\nVia: 1.1 y\r\n",
    "X-Grapevine-Routers: a, b, c\r\n",
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x\r\n",
    "X-Claude-Code-Session-Id: 99\r\nAccept: text/event-stream\r\n",
    "Accept-Encoding: identity;q=0, *;q=0\r\n",
    "TE: trailers\r\nTrailer: x\r\n",
    "Range: bytes=0-3\r\nIf-None-Match: \"x\"\r\n",
    "Content-Type: text/plain\r\nCookie: a=b\r\n",
};

static void ask_prompt(struct session *s, struct buf *out, unsigned flags)
{
    CHECK(buf_append_cstr(out, "one two " MARK_PLACE) == 0);
    size_t n = (flags & ASK_LONG) != 0 ? amount(s) : 0;
    for (size_t i = 0; i < n; i += 8)
        CHECK(buf_append_cstr(out, i % 64 == 0 ? "a new " : "so many ") == 0);
}

static void ask_body(struct session *s, struct buf *out, const char *text, unsigned flags)
{
    static const char *const models[] = {"m", "m", "m2", "unknown", "", "m:adapter"};
    unsigned more = (flags & ASK_FIELDS) != 0 ? byte(s) : 0;
    for (; *text != '\0'; text++) {
        if (*text == '~')
            CHECK(buf_append_cstr(out, models[more % ARRAY_LEN(models)]) == 0);
        else if (*text == '^')
            CHECK(buf_append_cstr(out, (flags & ASK_STREAM) != 0 ? "true" : "false") == 0);
        else if (*text == '$')
            ask_prompt(s, out, flags);
        else if (*text == '!' && (flags & ASK_FIELDS) != 0)
            CHECK(buf_append_cstr(out, ask_fields[more / 4 % ARRAY_LEN(ask_fields)]) == 0);
        else if (*text != '!')
            CHECK(buf_append_char(out, *text) == 0);
    }
}

/* Compresses the text in place. */
static void pack(struct buf *text, bool gzip)
{
    struct buf packed = {0};
    CHECK(buf_reserve(&packed, text->len + 256 + text->len / 8) == 0);
    if (gzip) {
        z_stream z = {.zalloc = NULL};
        CHECK(deflateInit2(&z, 1, Z_DEFLATED, 9 + 16, 1, Z_DEFAULT_STRATEGY) == Z_OK);
        z.next_in = (const Bytef *)(text->len > 0 ? text->at : "");
        z.avail_in = (uInt)text->len;
        z.next_out = (Bytef *)packed.at;
        z.avail_out = (uInt)packed.cap;
        CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END);
        packed.len = packed.cap - z.avail_out;
        CHECK(deflateEnd(&z) == Z_OK);
    } else {
        packed.len =
            ZSTD_compress(packed.at, packed.cap, text->len > 0 ? text->at : "", text->len, 1);
        CHECK(!ZSTD_isError(packed.len));
    }
    buf_free(text);
    *text = packed;
}

static void write_chunks(struct session *s, struct buf *out, struct slice body)
{
    size_t each = amount(s);
    while (body.len > 0) {
        size_t n = body.len < each ? body.len : each;
        CHECK(buf_printf(out, "%zx\r\n", n) == 0);
        CHECK(buf_append(out, body.at, n) == 0 && buf_append_cstr(out, "\r\n") == 0);
        body = slice_skip(body, n);
    }
    CHECK(buf_append_cstr(out, "0\r\n\r\n") == 0);
}

/* A request, still to be sent by the client. */
static void make_ask(struct session *s, struct router *r, struct peer *c)
{
    unsigned kind = byte(s), flags = byte(s);
    const char *body = questions[kind % ARRAY_LEN(questions)].body;
    struct buf text = {0}, *out = &c->pending;
    size_t front = out->len;
    int self = (int)(r->number * WORLD_WIRES_MAX) + (int)(c - r->peers);
    if (c->gone)
        return;
    bool old = kind / ARRAY_LEN(questions) % 8 == 7;
    if (body != NULL)
        ask_body(s, &text, body, flags);
    mark(&text, self);
    unsigned coding = body != NULL ? flags & (ASK_GZIP | ASK_ZSTD) : 0;
    if (coding != 0)
        pack(&text, (coding & ASK_GZIP) != 0);
    CHECK(buf_printf(out, "%s HTTP/1.%c\r\nHost: g\r\n",
                     questions[kind % ARRAY_LEN(questions)].target, old ? '0' : '1') == 0);
    if ((flags & ASK_HEADERS) != 0) {
        unsigned b = byte(s);
        CHECK(buf_append_cstr(out, ask_headers[b % ARRAY_LEN(ask_headers)]) == 0);
        if (b >= 128)
            CHECK(buf_append_cstr(out, ask_headers[b / 16 % ARRAY_LEN(ask_headers)]) == 0);
    }
    if (coding != 0)
        CHECK(buf_printf(out, "Content-Encoding: %s\r\n",
                         (coding & ASK_GZIP) != 0 ? "gzip" : "zstd") == 0);
    if (body != NULL)
        CHECK(buf_append_cstr(out, body[0] == '-'
                                       ? "Content-Type: multipart/form-data; boundary=b\r\n"
                                       : "Content-Type: application/json\r\n") == 0);
    bool chunked = body != NULL && (flags & ASK_CHUNKED) != 0 && !old;
    if (chunked)
        CHECK(buf_append_cstr(out, "Transfer-Encoding: chunked\r\n\r\n") == 0);
    else if (body != NULL)
        CHECK(buf_printf(out, "Content-Length: %zu\r\n\r\n", text.len) == 0);
    else
        CHECK(buf_append_cstr(out, "\r\n") == 0);
    if (chunked)
        write_chunks(s, out, buf_slice(&text));
    else
        CHECK(buf_append_slice(out, buf_slice(&text)) == 0);
    buf_free(&text);
    c->made++;
    if ((flags & ASK_MUTATED) == 0)
        return;
    c->raw = true;
    mutate(s, out, front);
}

/* --- operators ------------------------------------------------------------------------------- */

static const char *const admin_asks[] = {
    "GET /replicas",
    "GET /metrics",
    "POST /explain",
    "POST /explain?all=1",
    "GET /events",
    "GET /events?all=1",
    "GET /live",
    "GET /readyz",
    "GET /healthz",
    "GET /sources",
    "GET /queue",
    "GET /decisions",
    "GET /figures",
    "GET /members",
    "GET /convergence",
    "GET /config",
    "POST /log-level?level=debug",
    "POST /drain?replica=10.0.0.%u:8000",
    "POST /undrain?replica=10.0.0.%u:8000",
    "POST /replicas?replica=10.0.0.%u:8000",
    "DELETE /replicas?replica=10.0.0.%u:8000",
    "POST /replicas?replica=engine.%u:8000",
    "DELETE /replicas?replica=engine.%u:8000",
    "POST /reset-cache",
    "POST /reset-cache?replica=10.0.0.%u:8000",
    "GET /poison",
    "DELETE /poison?hash=00000000000000%02x",
    "GET /",
    "POST /replicas?replica=http%%3a%%2f%%2f10.0.0.%u%%3a8000&engine=sglang",
};

static void make_admin_ask(struct session *s, struct peer *c)
{
    unsigned b = byte(s), n = b / ARRAY_LEN(admin_asks) % ENGINES + 1;
    static const char body[] =
        "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"one two\"}]}";
    struct buf *out = &c->pending;
    char target[128];
    (void)snprintf(target, sizeof target, admin_asks[b % ARRAY_LEN(admin_asks)], n);
    bool posts = target[0] == 'P';
    CHECK(buf_printf(out, "%s HTTP/1.1\r\nHost: 127.0.0.1\r\n", target) == 0);
    if (posts)
        CHECK(buf_printf(out, "Content-Length: %zu\r\n", strlen(body)) == 0);
    CHECK(buf_printf(out, "\r\n%s", posts ? body : "") == 0);
    c->made++;
}

#endif
