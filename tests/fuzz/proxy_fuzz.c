/* Clients and replicas that do what the input says, in any order, around one proxy. Each byte is a
 * step: a client connects, makes a request, sends a piece of it, goes; a replica takes a connection
 * or refuses it, makes an answer to what it received, sends a piece of it, breaks; kernels take
 * little, names fail, time passes, the node drains.
 *
 * Requests and answers are made here, so what they say is known, and a slow and simple reader looks
 * at the bytes that came out:
 *
 *   1. A replica receives whole requests of clients, byte for byte, and no new one on a connection
 *      before it has answered the one before.
 *   2. No replica receives a request of which the client has a part of an answer.
 *   3. A client gets answers to its requests in their order, at most one each. An answer of a
 *      replica is the start of one that this replica gave to this request; one that ends as answers
 *      end is all of it, and the replica sent all of it.
 *   4. When everybody falls silent, every connection is closed after a while, every booking is
 *      released and no memory is held.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "base/hash.h"
#include "tests/lib/proxy_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CLIENTS_MAX = 6, REQUESTS_MAX = 48, ANSWERS_MAX = 64, STEPS_MAX = 600 };

struct request {
    struct peer *client;
    struct buf body;
    bool to_head;
    bool broken; /* it is malformed: it must not reach a replica whole, and has no id */
};

struct answer {
    unsigned request;
    unsigned replica;
    unsigned status;
    struct buf body;
    struct peer *wire;
    uint64_t end; /* it is all sent when the wire has sent so much */
    bool never_whole;
    bool until_close;
};

/* What stands at the other end of a wire. */
struct peer {
    struct wire *wire;
    struct buf pending; /* made, and not sent yet */
    uint64_t sent;
    uint64_t made; /* sent + pending */
    bool gone;     /* it has ended or broken */
    bool ended;    /* properly */
    bool slow;     /* its kernel took little at some time */
    size_t read;   /* of wire->out by the checks */
    /* A client: its requests in order. */
    unsigned requests[REQUESTS_MAX];
    unsigned request_count;
    unsigned answered; /* heads of final answers that it has */
    unsigned answered_before;
    /* A replica's: the request that it receives or answers. */
    int receiving; /* -1: none */
    size_t body_at;
    size_t body_left;
    int answering; /* the answer that it gives to it; -1: none yet */
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

/* Mostly little, sometimes much. */
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

static void write_answer_head(struct run *r, struct buf *out, const struct answer *a, unsigned form)
{
    if (byte(r) % 8 == 0)
        CHECK(buf_append_cstr(out, "HTTP/1.1 100 Continue\r\n\r\n") == 0);
    CHECK(buf_printf(out, "HTTP/1.1 %u X\r\n%s", a->status,
                     form == MALFORMED_HEAD ? "Content-Length: 1, 2\r\n" : "") == 0);
    if (byte(r) % 2 == 0)
        CHECK(buf_append_cstr(out, "Content-Type: text/event-stream\r\n") == 0);
    if (form == BY_LENGTH || form == WITH_MORE)
        CHECK(buf_printf(out, "Content-Length: %zu\r\n", a->body.len) == 0);
    else if (form == BY_CHUNKS || form == MALFORMED_CHUNK)
        CHECK(buf_append_cstr(out, "Transfer-Encoding: chunked\r\n") == 0);
    CHECK(buf_append_cstr(out, "\r\n") == 0);
}

/* An answer to the request of which it has the head. */
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
    if (unknown)
        CHECK(buf_printf(&a->body,
                         "{\"error\":{\"message\":\"The model `m` does not exist.\","
                         "\"param\":\"model\",\"n\":%u}}",
                         r->answer_count) == 0);
    else
        fill(&a->body, 7777 + r->answer_count, amount(r) % 300000);
    struct buf *out = &p->pending;
    size_t before = out->len;
    write_answer_head(r, out, a, form);
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

/* --- what replicas received ------------------------------------------------------------------ */

static struct slice line_of(struct slice head, const char *name)
{
    while (head.len > 0) {
        struct slice line = slice_cut(&head, '\n');
        struct slice key = slice_cut(&line, ':');
        if (slice_equal_nocase(key, slice_of_cstr(name)))
            return slice_trim(slice_of(line.at, slice_find(line, '\r')));
    }
    return slice_of(NULL, 0);
}

/* The head at the front of `rest`; false: it is not whole. */
static bool cut_head(struct slice *rest, struct slice *head)
{
    const char *end = rest->len == 0 ? NULL : memmem(rest->at, rest->len, "\r\n\r\n", 4);
    if (end == NULL)
        return false;
    *head = slice_of(rest->at, (size_t)(end - rest->at) + 4);
    *rest = slice_skip(*rest, head->len);
    return true;
}

static uint64_t number(struct slice s)
{
    uint64_t n = 0;
    CHECK(s.at == NULL || slice_to_u64(s, &n) == 0);
    return n;
}

static void begin_receiving(struct run *r, struct peer *p, struct slice head)
{
    struct slice id = line_of(head, "x-request-id");
    CHECK(id.len > 1 && id.at[0] == 'r');
    p->receiving = (int)number(slice_skip(id, 1));
    CHECK((unsigned)p->receiving < r->request_count);
    const struct request *q = &r->requests[p->receiving];
    CHECK(!q->broken && number(line_of(head, "content-length")) == q->body.len);
    const struct peer *c = q->client; /* it may have been answered since the last look */
    bool due = false;
    for (unsigned i = c->answered_before; i <= c->answered && i < c->request_count; i++)
        due = due || c->requests[i] == (unsigned)p->receiving;
    CHECK(due);
    p->body_at = 0;
    p->body_left = q->body.len;
    p->answering = -1;
}

static void look_at_replica(struct run *r, struct peer *p)
{
    for (;;) {
        struct slice rest = slice_skip(buf_slice(&p->wire->out), p->read);
        struct slice head;
        if (p->receiving >= 0 && p->body_left > 0) {
            size_t n = rest.len < p->body_left ? rest.len : p->body_left;
            if (n == 0)
                return;
            const struct request *q = &r->requests[p->receiving];
            CHECK(memcmp(q->body.at + p->body_at, rest.at, n) == 0);
            p->body_at += n;
            p->body_left -= n;
            p->read += n;
            continue;
        }
        if (rest.len == 0)
            return;
        /* A new request: the one before must have been answered. */
        CHECK(p->receiving < 0 || (p->answering >= 0 && all_sent(&r->answers[p->answering])));
        if (!cut_head(&rest, &head))
            return;
        p->read += head.len;
        begin_receiving(r, p, head);
    }
}

/* --- what clients received ------------------------------------------------------------------- */

/* Cuts a body off. Returns whether it is whole. */
static bool cut_body(struct slice head, struct slice *rest, bool none, struct buf *body)
{
    struct slice length = line_of(head, "content-length");
    if (none)
        return true;
    if (length.at != NULL) {
        size_t wanted = (size_t)number(length), n = rest->len < wanted ? rest->len : wanted;
        CHECK(buf_append(body, rest->at, n) == 0);
        *rest = slice_skip(*rest, n);
        return n == wanted;
    }
    if (line_of(head, "transfer-encoding").at == NULL) {
        CHECK(buf_append_slice(body, *rest) == 0);
        *rest = slice_of(NULL, 0);
        return true; /* if the end is a proper one */
    }
    for (;;) {
        struct slice line = *rest;
        struct slice data = slice_skip(line, slice_find(line, '\n') + 1);
        size_t n = data.len > 0 ? (size_t)strtoul(line.at, NULL, 16) : SIZE_MAX - 2;
        CHECK(data.len == 0 || buf_append(body, data.at, data.len < n ? data.len : n) == 0);
        *rest = slice_skip(data, n + 2);
        if (data.len < n + 2)
            return false;
        CHECK(memcmp(data.at + n, "\r\n", 2) == 0);
        if (n == 0)
            return true;
    }
}

/* It is one that the replica gave to this request, all of it if it is whole. */
static void check_answer(const struct run *r, unsigned request, unsigned status, unsigned replica,
                         struct slice body, bool whole)
{
    for (unsigned i = 0; i < r->answer_count; i++) {
        const struct answer *a = &r->answers[i];
        if (a->request != request || a->replica != replica || a->status != status)
            continue;
        struct slice full = r->requests[request].to_head ? slice_of("", 0) : buf_slice(&a->body);
        if (slice_starts_with(full, body) && (!whole || (all_sent(a) && full.len == body.len)))
            return;
    }
    CHECK(!"the client has bytes that no replica gave to its request");
}

static bool end_is_proper(const struct peer *c)
{
    return c->wire->closing && !c->wire->reset && !c->gone && !c->slow;
}

/* Goes on behind the answers that are whole. `last`: the connection is closed. */
static void look_at_client(struct run *r, struct peer *c, bool last)
{
    unsigned index = 0;
    struct slice rest = buf_slice(&c->wire->out), head;
    while (cut_head(&rest, &head)) {
        unsigned status = (unsigned)strtoul(head.at + strlen("HTTP/1.1 "), NULL, 10);
        CHECK(slice_starts_with(head, SLICE("HTTP/1.1 ")));
        if (status == 100)
            continue;
        struct slice id = line_of(head, "x-request-id");
        bool known = id.len > 0 && id.at[0] == 'r';
        unsigned request = known ? (unsigned)number(slice_skip(id, 1)) : 0;
        CHECK(known || status >= 400);
        CHECK(!known || (index < c->request_count && c->requests[index] == request));
        struct slice replica = line_of(head, "x-grapevine-replica");
        bool none = known && r->requests[request].to_head;
        bool framed = none || line_of(head, "content-length").at != NULL ||
                      line_of(head, "transfer-encoding").at != NULL;
        struct buf body = {0};
        bool whole = cut_body(head, &rest, none, &body);
        if (!framed && !(last && end_is_proper(c)))
            whole = false;
        CHECK(whole || rest.len == 0);
        if (replica.at != NULL) {
            CHECK(known && slice_starts_with(replica, SLICE("10.0.0.")));
            check_answer(r, request, status, (unsigned)(replica.at[7] - '1'), buf_slice(&body),
                         whole);
        }
        buf_free(&body);
        index++;
    }
    CHECK(index >= c->answered);
    c->answered = index;
}

static void look(struct run *r)
{
    for (unsigned i = 0; i < r->world.wire_count; i++) {
        struct peer *p = &r->peers[i];
        if (p->wire == NULL)
            *p = (struct peer){.wire = &r->world.wires[i], .receiving = -1, .answering = -1};
        p->answered_before = p->answered;
        if (!p->wire->used || p->wire->replica >= 0 || p->wire->out.len == p->read)
            continue;
        look_at_client(r, p, false);
        p->read = p->wire->out.len;
    }
    for (unsigned i = 0; i < r->world.wire_count; i++) {
        if (r->world.wires[i].used && r->world.wires[i].replica >= 0)
            look_at_replica(r, &r->peers[i]);
    }
}

/* --- steps ----------------------------------------------------------------------------------- */

/* A wire that the input picks: of a client, or of a replica. NULL: there is none. */
static struct peer *pick(struct run *r, bool client)
{
    struct peer *open[WORLD_WIRES_MAX];
    unsigned count = 0;
    for (unsigned i = 0; i < r->world.wire_count; i++) {
        const struct wire *w = &r->world.wires[i];
        if (w->used && !w->closing && (w->replica < 0) == client)
            open[count++] = &r->peers[i];
    }
    unsigned b = byte(r);
    return count == 0 ? NULL : open[b % count];
}

static void send_some(struct run *r, struct peer *p, size_t bytes)
{
    if (p->gone || p->wire->closing || p->wire->connecting)
        return;
    size_t n = p->pending.len < bytes ? p->pending.len : bytes;
    if (n == 0)
        return;
    char *piece = malloc(n); /* a copy, so that reading behind it is seen */
    CHECK(piece != NULL);
    memcpy(piece, p->pending.at, n);
    buf_consume(&p->pending, n);
    p->sent += n;
    proxy_world_send(&r->world, p->wire, slice_of(piece, n));
    free(piece);
}

static void go(struct run *r, struct peer *p, bool breaks)
{
    if (p->gone || p->wire->connecting)
        return;
    p->gone = true;
    p->ended = !breaks && p->pending.len == 0;
    proxy_world_end(&r->world, p->wire, breaks);
}

static void limit_room(struct run *r, struct peer *p)
{
    unsigned b = byte(r);
    p->slow = true;
    proxy_world_room(&r->world, p->wire, b < 40 ? 0 : b < 200 ? (size_t)b * b : SIZE_MAX);
}

/* All that can go well goes well. */
static void flow(struct run *r)
{
    for (unsigned i = 0; i < r->world.wire_count; i++) {
        struct peer *p = &r->peers[i];
        if (!p->wire->used || p->wire->closing)
            continue;
        if (p->wire->connecting)
            proxy_world_accept(&r->world, p->wire, 0);
        look(r);
        if (p->wire->replica >= 0)
            make_answer(r, p);
        send_some(r, p, SIZE_MAX);
        look(r);
    }
}

static void step_client(struct run *r, unsigned what)
{
    struct peer *c = what == 0 ? NULL : pick(r, true);
    if (what == 0 && r->clients < CLIENTS_MAX) {
        r->clients++;
        (void)proxy_world_connect(&r->world, PROXY_PORT_CLIENT);
    }
    if (c == NULL)
        return;
    switch (what) {
    case 1:
    case 2:
        make_request(r, c);
        if (what == 2)
            send_some(r, c, SIZE_MAX);
        break;
    case 3:
        send_some(r, c, amount(r));
        break;
    case 4:
        limit_room(r, c);
        break;
    default:
        go(r, c, byte(r) % 2 == 0);
    }
}

static void step_replica(struct run *r, unsigned what)
{
    struct peer *p = pick(r, false);
    if (p == NULL)
        return;
    switch (what) {
    case 6:
        proxy_world_accept(&r->world, p->wire, 0);
        break;
    case 7:
        proxy_world_accept(&r->world, p->wire, byte(r) % 2 == 0 ? ERR_CLOSED : ERR_UNREACHABLE);
        break;
    case 8:
    case 9:
        make_answer(r, p);
        send_some(r, p, what == 8 ? SIZE_MAX : amount(r));
        break;
    case 10:
        send_some(r, p, amount(r));
        break;
    case 11:
        limit_room(r, p);
        break;
    case 12:
        proxy_world_deafen(&r->world, p->wire);
        break;
    default:
        go(r, p, byte(r) % 2 == 0);
    }
}

static void step(struct run *r)
{
    unsigned what = byte(r) % 20;
    if (what < 6)
        step_client(r, what);
    else if (what < 14)
        step_replica(r, what);
    else if (what == 14)
        proxy_world_wait(&r->world, byte(r) * 5);
    else if (what == 15)
        proxy_world_stand_still(&r->world, byte(r) * 20);
    else if (what == 16)
        r->world.connect_error = byte(r) % 2 == 0 ? ERR_FULL : ERR_CLOSED;
    else if (what == 17 && byte(r) % 8 == 0)
        proxy_world_drain(&r->world, byte(r) % 2 == 0);
    else
        flow(r);
}

/* --- a run ----------------------------------------------------------------------------------- */

static void begin(struct run *r)
{
    static const char *const usual[] = {"other-paths",
                                        "pass",
                                        "client-idle-timeout",
                                        "500ms",
                                        "client-head-timeout",
                                        "300ms",
                                        "client-body-timeout",
                                        "300ms",
                                        "client-write-timeout",
                                        "500ms",
                                        "upstream-connect-timeout",
                                        "200ms",
                                        "upstream-first-byte-timeout",
                                        "300ms",
                                        "upstream-whole-answer-timeout",
                                        "400ms",
                                        "upstream-idle-timeout",
                                        "300ms",
                                        "upstream-keepalive",
                                        "400ms",
                                        "access-log",
                                        "off",
                                        NULL};
    static const char *const tight[] = {"other-paths",
                                        "pass",
                                        "client-idle-timeout",
                                        "500ms",
                                        "client-head-timeout",
                                        "300ms",
                                        "client-body-timeout",
                                        "300ms",
                                        "client-write-timeout",
                                        "500ms",
                                        "upstream-connect-timeout",
                                        "200ms",
                                        "upstream-first-byte-timeout",
                                        "300ms",
                                        "upstream-whole-answer-timeout",
                                        "400ms",
                                        "upstream-idle-timeout",
                                        "300ms",
                                        "upstream-keepalive",
                                        "0",
                                        "access-log",
                                        "off",
                                        "head-bytes-max",
                                        "1KiB",
                                        "body-bytes-max",
                                        "40KiB",
                                        "buffered-bytes-max",
                                        "200KiB",
                                        "connections-max",
                                        "4",
                                        "upstream-connections-max",
                                        "2",
                                        "retries-max",
                                        "1",
                                        NULL};
    unsigned b = byte(r);
    struct proxy_world_config config = {.replicas = 1 + b % 3,
                                        .engine = NODE_ENGINE_VLLM,
                                        .quiet = true,
                                        .settings = b / 3 % 2 == 0 ? usual : tight,
                                        .seed = b};
    proxy_world_open(&r->world, &config);
}

/* Nobody does anything any more: time limits end what is open. */
static void fall_silent(struct run *r)
{
    for (unsigned i = 0; i < 4000 && proxy_stats(r->world.proxy)->connections_open > 0; i++) {
        proxy_world_wait(&r->world, PROXY_TICK_MS);
        look(r);
    }
    CHECK(proxy_stats(r->world.proxy)->connections_open == 0);
    proxy_world_wait(&r->world, 500);
    for (unsigned i = 0; i < r->world.wire_count; i++)
        CHECK(!r->world.wires[i].used || r->world.wires[i].closed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct run run;
    struct run *r = &run;
    memset(r, 0, sizeof *r);
    r->at = data;
    r->end = data + size;
    begin(r);
    for (unsigned i = 0; i < STEPS_MAX && r->at < r->end; i++) {
        step(r);
        look(r);
    }
    fall_silent(r);
    for (unsigned i = 0; i < r->world.wire_count; i++) {
        struct peer *p = &r->peers[i];
        if (p->wire->used && p->wire->replica < 0)
            look_at_client(r, p, true);
        buf_free(&p->pending);
    }
    proxy_world_close(&r->world);
    for (unsigned i = 0; i < r->request_count; i++)
        buf_free(&r->requests[i].body);
    for (unsigned i = 0; i < r->answer_count; i++)
        buf_free(&r->answers[i].body);
    return 0;
}
