/* Requests of every kind. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "tests/sim/service/service.h"

enum { CONVERSATIONS = 12, TURN_WORDS = 20, TURNS_MAX = 6, PIECE_MAX = 100 };

bool service_kind_computes(enum service_kind kind)
{
    switch (kind) {
    case SERVICE_CHAT:
    case SERVICE_COMPLETIONS:
    case SERVICE_MESSAGES:
    case SERVICE_RESPONSES:
    case SERVICE_GENERATE:
    case SERVICE_EMBEDDINGS:
    case SERVICE_AUDIO:
        return true;
    default:
        return false;
    }
}

static bool completes(enum service_kind kind)
{
    return kind <= SERVICE_GENERATE;
}

static enum service_kind draw_kind(struct service *s)
{
    static const struct {
        enum service_kind kind;
        unsigned weight;
    } rows[] = {
        {SERVICE_CHAT, 31},      {SERVICE_COMPLETIONS, 14}, {SERVICE_MESSAGES, 10},
        {SERVICE_RESPONSES, 10}, {SERVICE_GENERATE, 5},     {SERVICE_EMBEDDINGS, 4},
        {SERVICE_MODELS, 3},     {SERVICE_HEALTH, 1},       {SERVICE_STORED, 3},
        {SERVICE_DEED, 10},      {SERVICE_BLOB, 3},         {SERVICE_AUDIO, 2},
        {SERVICE_NO_PATH, 1},    {SERVICE_NO_METHOD, 1},    {SERVICE_TOO_LARGE, 1},
        {SERVICE_MALFORMED, 1},
    };
    uint64_t at = service_below(s, 100);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (at < rows[i].weight) {
            if (rows[i].kind == SERVICE_GENERATE && s->engine_count < 3)
                return SERVICE_CHAT; /* no engine is an SGLang */
            return rows[i].kind;
        }
        at -= rows[i].weight;
    }
    return SERVICE_CHAT;
}

#define PUT(out, ...) CHECK(buf_printf(out, __VA_ARGS__) == 0)

/* Words with which another turn of the same conversation begins, too. */
static void put_words(struct buf *out, uint64_t seed, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        PUT(out, "%sw%03u", i ? " " : "", (unsigned)(hash_mix(seed + i) % 1000));
}

static void put_messages(struct service *s, const char *name, struct buf *body)
{
    uint64_t conversation = service_below(s, CONVERSATIONS);
    unsigned turns = 1 + (unsigned)service_below(s, TURNS_MAX);
    bool reasons = conversation % 3 == 0;
    PUT(body, "\"%s\":[", name);
    for (unsigned i = 0; i < turns; i++) {
        PUT(body, "%s{\"role\":\"%s\",", i ? "," : "", i % 2 ? "assistant" : "user");
        if (reasons && i % 2)
            PUT(body, "\"reasoning_content\":\"thought %u\",", (unsigned)service_below(s, 1000));
        PUT(body, "\"content\":\"");
        put_words(body, conversation << 20 | i << 10, TURN_WORDS);
        PUT(body, "\"}");
    }
    if (conversation % 4 == 1) /* an agent that reminds the model */
        PUT(body, ",{\"role\":\"system\",\"content\":\"Be brief.\"}");
    PUT(body, "]");
}

/* The text that agents add to a conversation. */
static void put_agent(struct service *s, const struct service_ask *a, struct buf *body)
{
    bool front = service_chance(s, 0.5);
    if (a->kind == SERVICE_MESSAGES && service_chance(s, 0.5)) {
        PUT(body, ",\"system\":[{\"type\":\"text\",\"text\":\"" SERVICE_BILLING ": cch=%llu;\"},",
            (unsigned long long)service_below(s, 1000000));
        PUT(body, "{\"type\":\"text\",\"text\":\"");
        put_words(body, 77, TURN_WORDS);
        PUT(body, "\"}]");
    }
    if (service_chance(s, 0.2))
        PUT(body, ",\"tools\":[{\"name\":\"%s\"},{\"name\":\"%s\"}]", front ? "read" : "write",
            front ? "write" : "read");
}

static void put_prompt(struct service *s, const char *name, struct buf *body)
{
    PUT(body, "\"%s\":\"", name);
    put_words(body, service_below(s, CONVERSATIONS) << 20, 10 + (unsigned)service_below(s, 200));
    PUT(body, "\"");
}

static void put_json(struct service *s, struct service_ask *a, struct buf *body)
{
    bool is_long = service_chance(s, 0.08);
    unsigned most = is_long ? 200 : 1 + (unsigned)service_below(s, 16);
    PUT(body, "{\"model\":\"m\",");
    switch (a->kind) {
    case SERVICE_CHAT:
    case SERVICE_MESSAGES:
        put_messages(s, "messages", body);
        put_agent(s, a, body);
        PUT(body, ",\"max_tokens\":%u", most);
        break;
    case SERVICE_RESPONSES:
        put_prompt(s, "input", body);
        PUT(body, ",\"max_output_tokens\":%u", most);
        a->continues = s->stored[0] && service_chance(s, 0.3);
        if (a->continues)
            PUT(body, ",\"previous_response_id\":\"%s\"", s->stored);
        break;
    case SERVICE_GENERATE:
        put_prompt(s, "text", body);
        PUT(body, ",\"sampling_params\":{\"max_new_tokens\":%u}", most);
        break;
    case SERVICE_EMBEDDINGS:
        put_prompt(s, "input", body);
        break;
    default:
        put_prompt(s, "prompt", body);
        PUT(body, ",\"max_tokens\":%u", most);
    }
    if (is_long)
        PUT(body, ",\"ignore_eos\":true");
    if (a->stream)
        PUT(body, ",\"stream\":true");
    a->usage_asked = a->stream && a->number % 3 == 0;
    if (a->usage_asked)
        PUT(body, ",\"stream_options\":{\"include_usage\":true}");
    PUT(body, "}");
}

static const char *line_of(enum service_kind kind)
{
    static const char *const lines[SERVICE_KINDS] = {
        [SERVICE_CHAT] = "POST /v1/chat/completions",
        [SERVICE_COMPLETIONS] = "POST /v1/completions",
        [SERVICE_MESSAGES] = "POST /v1/messages",
        [SERVICE_RESPONSES] = "POST /v1/responses",
        [SERVICE_GENERATE] = "POST /generate",
        [SERVICE_EMBEDDINGS] = "POST /v1/embeddings",
        [SERVICE_MODELS] = "GET /v1/models",
        [SERVICE_HEALTH] = "GET /health",
        [SERVICE_DEED] = "POST /svc/deed",
        [SERVICE_BLOB] = "GET /svc/blob",
        [SERVICE_AUDIO] = "POST /v1/audio/transcriptions",
        [SERVICE_NO_PATH] = "GET /no/such/path",
        [SERVICE_NO_METHOD] = "GET /v1/chat/completions",
        [SERVICE_TOO_LARGE] = "POST /v1/chat/completions",
        [SERVICE_MALFORMED] = "POST /v1/chat/completions",
    };
    return lines[kind];
}

static void put_body(struct service *s, struct service_ask *a, struct buf *body)
{
    if (completes(a->kind) || a->kind == SERVICE_EMBEDDINGS) {
        put_json(s, a, body);
    } else if (a->kind == SERVICE_DEED) {
        PUT(body, "{\"deed\":%llu,\"why\":\"", (unsigned long long)a->number);
        put_words(body, a->number, (unsigned)service_below(s, 60));
        PUT(body, "\"}");
    } else if (a->kind == SERVICE_AUDIO) {
        PUT(body, "--bound\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n"
                  "--bound\r\nContent-Disposition: form-data; name=\"file\"; "
                  "filename=\"a.wav\"\r\n\r\n");
        put_words(body, a->number, 300);
        PUT(body, "\r\n--bound--\r\n");
    } else if (a->kind == SERVICE_TOO_LARGE) {
        while (body->len < 70000)
            put_words(body, a->number, 1000);
    }
}

static void put_chunks(struct service *s, struct slice body, struct buf *out)
{
    while (body.len > 0) {
        size_t n = 1 + service_below(s, PIECE_MAX);
        if (n > body.len)
            n = body.len;
        PUT(out, "%zx\r\n%.*s\r\n", n, (int)n, body.at);
        body = slice_skip(body, n);
    }
    PUT(out, "0\r\n\r\n");
}

static void put_head(struct service_ask *a, bool has_body, size_t length)
{
    struct buf *out = &a->bytes;
    if (a->kind == SERVICE_STORED)
        PUT(out, "GET /v1/responses/%s HTTP/1.%u\r\n", a->service->stored, a->minor);
    else
        PUT(out, "%s HTTP/1.%u\r\n", line_of(a->kind), a->minor);
    PUT(out, "Host: service\r\nX-Request-Id: svc-%llu\r\n", (unsigned long long)a->number);
    if (a->close)
        PUT(out, "Connection: close\r\n");
    if (a->takes_gzip)
        PUT(out, "Accept-Encoding: gzip, br\r\n");
    if (has_body)
        PUT(out, "Content-Type: %s\r\n",
            a->kind == SERVICE_AUDIO ? "multipart/form-data; boundary=bound" : "application/json");
    if (has_body && a->chunked)
        PUT(out, "Transfer-Encoding: chunked\r\n");
    else if (has_body)
        PUT(out, "Content-Length: %zu\r\n", length);
    if (a->kind == SERVICE_MALFORMED)
        PUT(out, "Content-Length: 7\r\nContent-Length: 9\r\n");
    if (has_body && a->expects)
        PUT(out, "Expect: 100-continue\r\n");
    PUT(out, "\r\n");
    a->head_bytes = out->len;
}

struct service_ask *service_ask_make(struct service *s, struct service_client *c)
{
    struct service_ask *a = calloc(1, sizeof *a);
    CHECK(a != NULL);
    *a = (struct service_ask){.next = s->asks,
                              .service = s,
                              .client = c,
                              .number = s->ask_count++,
                              .kind = draw_kind(s),
                              .stream = service_chance(s, 0.5),
                              .minor = service_chance(s, 0.05) ? 0 : 1,
                              .close = service_chance(s, 0.05)};
    if (a->kind == SERVICE_STORED && !s->stored[0])
        a->kind = SERVICE_CHAT;
    a->stream &= completes(a->kind);
    a->chunked = a->minor > 0 && service_chance(s, 0.1);
    a->expects = a->minor > 0 && service_chance(s, 0.05);
    a->takes_gzip = service_chance(s, 0.2);
    a->poison =
        s->troubled && s->day == SERVICE_MIXED && completes(a->kind) && service_chance(s, 0.004);
    s->asks = a;
    buf_init(&a->bytes, 0);
    buf_init(&a->body, 0);
    struct buf body = {0};
    put_body(s, a, &body);
    put_head(a, body.len > 0, body.len);
    if (a->chunked && body.len > 0)
        put_chunks(s, buf_slice(&body), &a->bytes);
    else
        CHECK(buf_append_slice(&a->bytes, buf_slice(&body)) == 0);
    buf_free(&body);
    return a;
}

struct service_ask *service_ask_find(struct service *s, uint64_t number)
{
    struct service_ask *a = s->asks;
    while (a && a->number != number)
        a = a->next;
    return a;
}

void service_asks_free(struct service *s)
{
    while (s->asks) {
        struct service_ask *a = s->asks;
        s->asks = a->next;
        while (a->attempts) {
            struct service_attempt *t = a->attempts;
            a->attempts = t->next;
            buf_free(&t->sent);
            free(t);
        }
        buf_free(&a->bytes);
        buf_free(&a->body);
        free(a);
    }
}
