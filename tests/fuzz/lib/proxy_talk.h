/* Clients' requests and replicas' answers in the fuzz target of the proxy, made from the input, so
 * that the bytes due at the other side are known. */
#ifndef TESTS_FUZZ_LIB_PROXY_TALK_H
#define TESTS_FUZZ_LIB_PROXY_TALK_H

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "base/hash.h"
#include "tests/lib/proxy_world.h"

enum { CLIENTS_MAX = 6, REQUESTS_MAX = 48, ANSWERS_MAX = 64, STEPS_MAX = 600 };

struct request {
    struct peer *client;
    struct buf body;
    struct buf asked; /* a stream: the body with the router's request for usage; otherwise empty */
    bool to_head;
    bool broken; /* malformed: must not reach a replica whole, and has no id */
};

struct answer {
    unsigned request;
    unsigned replica;
    unsigned status;
    struct buf body;
    struct peer *wire;
    uint64_t end; /* all is sent when wire->sent has this value */
    bool never_whole;
    bool until_close;
    size_t preamble; /* a stream: bytes of the events before the first token; otherwise 0 */
};

/* The other end of a wire. */
struct peer {
    struct wire *wire;
    struct buf pending; /* bytes made, and not sent yet */
    uint64_t sent;
    uint64_t made; /* sent + pending */
    bool gone;     /* ended or broken */
    bool ended;    /* ended properly */
    bool slow;     /* the kernel took little at some time */
    size_t read;   /* bytes of wire->out read by the checks */
    /* A client: the requests in order. */
    unsigned requests[REQUESTS_MAX];
    unsigned request_count;
    unsigned answered; /* number of final heads received */
    unsigned answered_before;
    bool alive; /* the client has only a sign of life of the last answer */
    /* A replica: the request being received or answered. */
    int receiving; /* -1: none */
    struct slice body_left;
    int answering; /* the answer to that request; -1: none yet */
};

struct run {
    struct proxy_world world;
    const uint8_t *at, *end;
    struct peer peers[WORLD_WIRES_MAX]; /* by wire */
    struct request requests[REQUESTS_MAX];
    unsigned request_count;
    struct answer answers[ANSWERS_MAX];
    unsigned answer_count;
    unsigned clients;
};

static unsigned byte(struct run *r)
{
    return r->at < r->end ? *r->at++ : 0;
}

/* Mostly a small number, sometimes a large one. */
static size_t amount(struct run *r)
{
    unsigned b = byte(r);
    return b < 64    ? b + 1
           : b < 128 ? (size_t)(b - 63) * 37
           : b < 250 ? (size_t)(b - 127) * 700
                     : 400000;
}

static void fill(struct buf *out, uint64_t seed, size_t bytes)
{
    CHECK(buf_reserve(out, bytes) == 0);
    for (size_t i = 0; i < bytes; i += 16) {
        uint64_t h = hash_mix(seed * 1000003 + i);
        for (size_t k = i; k < bytes && k < i + 16; k++, h >>= 4)
            out->at[out->len++] = (char)('a' + h % 16);
    }
}

/* --- requests -------------------------------------------------------------------------------- */

enum {
    CHAT,
    CHAT_STREAM,
    CHAT_CHUNKED,
    CHAT_1_0,
    CHAT_EXPECT,
    CHAT_CLOSE,
    UPLOAD,
    UPLOAD_CHUNKED,
    STORED,
    UPLOAD_HEAD,
    CANCEL,
    REFUSED,
    BAD_HEAD,
    BAD_CHUNK,
    BOTH_LENGTHS,
    KINDS
};

static const char *target_of(unsigned kind)
{
    switch (kind) {
    case UPLOAD:
    case UPLOAD_CHUNKED:
        return "PUT /upload";
    case UPLOAD_HEAD:
        return "HEAD /upload";
    case STORED:
        return "GET /v1/responses/r1";
    case CANCEL:
        return "POST /v1/responses/r1/cancel";
    case REFUSED:
        return "POST /flush_cache";
    default:
        return "POST /v1/completions";
    }
}

static void write_chunks(struct run *r, struct buf *out, struct slice body)
{
    size_t piece = amount(r);
    while (body.len > 0) {
        size_t n = body.len < piece ? body.len : piece;
        CHECK(buf_printf(out, "%zx\r\n%.*s\r\n", n, (int)n, body.at) == 0);
        body = slice_skip(body, n);
    }
    CHECK(buf_append_cstr(out, "0\r\n\r\n") == 0);
}

static void make_request(struct run *r, struct peer *c)
{
    if (r->request_count == REQUESTS_MAX || c->gone)
        return;
    unsigned id = r->request_count++, kind = byte(r) % KINDS;
    struct request *q = &r->requests[id];
    struct buf *out = &c->pending;
    size_t before = out->len;
    c->requests[c->request_count++] = id;
    q->client = c;
    q->broken = kind == BAD_HEAD || kind == BOTH_LENGTHS || kind == BAD_CHUNK;
    q->to_head = kind == UPLOAD_HEAD;
    bool bodyless = kind == STORED || kind == UPLOAD_HEAD || kind == CANCEL;
    bool upload = kind == UPLOAD || kind == UPLOAD_CHUNKED;
    if (!bodyless) {
        if (!upload)
            CHECK(buf_printf(&q->body, "{\"model\":\"m\",\"stream\":%s,\"prompt\":\"",
                             kind == CHAT_STREAM ? "true" : "false") == 0);
        fill(&q->body, id, amount(r));
        if (!upload)
            CHECK(buf_append_cstr(&q->body, "\"}") == 0);
    }
    if (kind == CHAT_STREAM)
        CHECK(buf_printf(&q->asked, "{\"stream_options\":{\"include_usage\":true},%.*s",
                         (int)q->body.len - 1, q->body.at + 1) == 0);
    bool chunked = kind == CHAT_CHUNKED || kind == UPLOAD_CHUNKED || kind == BAD_CHUNK;
    CHECK(buf_printf(out, "%s HTTP/1.%c\r\nHost: g\r\nX-Request-Id: r%u\r\n", target_of(kind),
                     kind == CHAT_1_0 ? '0' : '1', id) == 0);
    if (kind == CHAT_EXPECT)
        CHECK(buf_append_cstr(out, "Expect: 100-continue\r\n") == 0);
    if (kind == CHAT_CLOSE)
        CHECK(buf_append_cstr(out, "Connection: close\r\n") == 0);
    if (kind == BAD_HEAD)
        CHECK(buf_append_cstr(out, "Content_Length: 1\r\n") == 0);
    if (chunked || kind == BOTH_LENGTHS)
        CHECK(buf_append_cstr(out, "Transfer-Encoding: chunked\r\n") == 0);
    if (!chunked && (!bodyless || kind == CANCEL))
        CHECK(buf_printf(out, "Content-Length: %zu\r\n", q->body.len) == 0);
    CHECK(buf_append_cstr(out, "\r\n") == 0);
    if (kind == BAD_CHUNK)
        CHECK(buf_append_cstr(out, "5\r\nabcdefgh") == 0);
    else if (chunked)
        write_chunks(r, out, buf_slice(&q->body));
    else
        CHECK(buf_append_slice(out, buf_slice(&q->body)) == 0);
    c->made += out->len - before;
}

/* --- answers --------------------------------------------------------------------------------- */

enum { BY_LENGTH, BY_CHUNKS, UNTIL_CLOSE, WITH_MORE, MALFORMED_HEAD, MALFORMED_CHUNK, FORMS };

/* Events as engines stream them: up to two events without a token (or an error), then tokens, and
 * mostly the terminal event. */
static void fill_stream(struct run *r, struct answer *a)
{
    unsigned b = byte(r);
    for (unsigned i = 0; i < b % 3; i++)
        CHECK(buf_printf(&a->body, "data: {\"id\":\"%u-%u\"}\n\n", r->answer_count, i) == 0);
    a->preamble = a->body.len;
    if (b / 3 % 8 == 0)
        CHECK(buf_printf(&a->body, "data: {\"error\":{\"code\":%u}}\n\n",
                         b / 24 % 2 == 0 ? 503 : 400) == 0);
    for (unsigned i = 0; i < 1 + b / 48; i++)
        CHECK(buf_printf(&a->body, "data: {\"text\":\"%u-%u\"}\n\n", r->answer_count, i) == 0);
    if (b % 8 != 7)
        CHECK(buf_append_cstr(&a->body, "data: [DONE]\n\n") == 0);
}

static void write_answer_head(struct run *r, struct buf *out, const struct answer *a, unsigned form,
                              bool stream)
{
    if (byte(r) % 8 == 0)
        CHECK(buf_append_cstr(out, "HTTP/1.1 100 Continue\r\n\r\n") == 0);
    CHECK(buf_printf(out, "HTTP/1.1 %u X\r\n%s", a->status,
                     form == MALFORMED_HEAD ? "Content-Length: 1, 2\r\n" : "") == 0);
    if (stream || byte(r) % 2 == 0)
        CHECK(buf_append_cstr(out, "Content-Type: text/event-stream\r\n") == 0);
    if (form == BY_LENGTH || form == WITH_MORE)
        CHECK(buf_printf(out, "Content-Length: %zu\r\n", a->body.len) == 0);
    else if (form == BY_CHUNKS || form == MALFORMED_CHUNK)
        CHECK(buf_append_cstr(out, "Transfer-Encoding: chunked\r\n") == 0);
    CHECK(buf_append_cstr(out, "\r\n") == 0);
}

/* An answer to the request with the received head. */
static void make_answer(struct run *r, struct peer *p)
{
    static const unsigned statuses[] = {200, 200, 200, 200, 404, 404, 503, 500};
    if (p->receiving < 0 || p->answering >= 0 || r->answer_count == ANSWERS_MAX || p->gone)
        return;
    p->answering = (int)r->answer_count;
    struct answer *a = &r->answers[r->answer_count++];
    unsigned choice = byte(r);
    unsigned form = choice % FORMS;
    bool to_head = r->requests[p->receiving].to_head;
    a->request = (unsigned)p->receiving;
    a->replica = (unsigned)p->wire->replica;
    a->status = statuses[choice / FORMS % ARRAY_LEN(statuses)];
    a->wire = p;
    a->never_whole = form == MALFORMED_HEAD || (form == MALFORMED_CHUNK && !to_head);
    a->until_close = form == UNTIL_CLOSE && !to_head;
    bool unknown = a->status == 404 && choice / FORMS % ARRAY_LEN(statuses) == 5;
    bool stream = a->status == 200 && choice >= 128 && !to_head;
    if (stream)
        fill_stream(r, a);
    else if (unknown)
        CHECK(buf_printf(&a->body,
                         "{\"error\":{\"message\":\"The model `m` does not exist.\","
                         "\"param\":\"model\",\"n\":%u}}",
                         r->answer_count) == 0);
    else
        fill(&a->body, 7777 + r->answer_count, amount(r) % 300000);
    struct buf *out = &p->pending;
    size_t before = out->len;
    write_answer_head(r, out, a, form, stream);
    if (form == BY_CHUNKS && !to_head)
        write_chunks(r, out, buf_slice(&a->body));
    else if (form == MALFORMED_CHUNK && !to_head)
        CHECK(buf_printf(out, "%zx\r\n%.*s?", a->body.len, SLICE_ARG(a->body)) == 0);
    else if (!to_head)
        CHECK(buf_append_slice(out, buf_slice(&a->body)) == 0);
    p->made += out->len - before;
    a->end = p->made;
    if (form == WITH_MORE) {
        CHECK(buf_append_cstr(out, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen") == 0);
        p->made += strlen("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen");
    }
}

static bool all_sent(const struct answer *a)
{
    return a->wire->sent >= a->end && !a->never_whole && (!a->until_close || a->wire->ended);
}

#endif
