/* Clients and replicas of a proxy, driven by the input, in any order. Each byte is a step. A client
 * connects, makes a request, sends a piece of it, or goes. A replica accepts or refuses a
 * connection, makes an answer to a received request, sends a piece, or breaks. Kernels take few
 * bytes, names fail, time passes, the node drains.
 *
 * Requests and answers are made here, so their contents are known. A slow and simple reader checks
 * the bytes of the proxy:
 *
 *   1. A replica receives whole requests of clients, byte for byte except for the request for usage
 *      in front of a stream's. No new request comes on a connection before the last request's
 *      answer.
 *   2. No replica receives a request if the client already has a token, or a part of an answer that
 *      is not a stream.
 *   3. A client gets answers in the order of the requests, at most one per request. The received
 *      answer is the beginning of an answer by this replica to this request. If the answer ends
 *      normally, it is complete, and the replica sent everything. A stream may begin with the
 *      preamble of an attempt (the sign of life) and go on with the text after another attempt's
 *      preamble. A stream without the terminal event ends with an error event of the router, never
 *      like a complete answer. After the terminal event nothing is missing. For a stream with an
 *      error before the first token, the client may get the status in the error.
 *   4. When all peers fall silent, every connection is closed after a while, every booking is
 *      released and no memory is in use. */
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "base/hash.h"
#include "tests/fuzz/lib/proxy_read.h"
#include "tests/fuzz/lib/proxy_talk.h"
#include "tests/lib/proxy_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* --- requests at replicas -------------------------------------------------------------------- */

static void begin_receiving(struct run *r, struct peer *p, struct slice head)
{
    struct slice id = line_of(head, "x-request-id");
    CHECK(id.len > 1 && id.at[0] == 'r');
    p->receiving = (int)number(slice_skip(id, 1));
    CHECK((unsigned)p->receiving < r->request_count);
    const struct request *q = &r->requests[p->receiving];
    uint64_t length = number(line_of(head, "content-length"));
    bool asked = q->asked.len > 0 && length == q->asked.len;
    CHECK(!q->broken && (asked || length == q->body.len));
    const struct peer *c = q->client; /* perhaps answered since the last look */
    bool due = false;
    unsigned first =
        c->answered_before > 0 && c->alive ? c->answered_before - 1 : c->answered_before;
    for (unsigned i = first; i <= c->answered && i < c->request_count; i++)
        due = due || c->requests[i] == (unsigned)p->receiving;
    CHECK(due);
    p->body_left = buf_slice(asked ? &q->asked : &q->body);
    p->answering = -1;
}

static void look_at_replica(struct run *r, struct peer *p)
{
    for (;;) {
        struct slice rest = slice_skip(buf_slice(&p->wire->out), p->read);
        struct slice head;
        if (p->receiving >= 0 && p->body_left.len > 0) {
            size_t n = rest.len < p->body_left.len ? rest.len : p->body_left.len;
            if (n == 0)
                return;
            CHECK(memcmp(p->body_left.at, rest.at, n) == 0);
            p->body_left = slice_skip(p->body_left, n);
            p->read += n;
            continue;
        }
        if (rest.len == 0)
            return;
        /* A new request: the last must have been answered. */
        CHECK(p->receiving < 0 || (p->answering >= 0 && all_sent(&r->answers[p->answering])));
        if (!cut_head(&rest, &head))
            return;
        p->read += head.len;
        begin_receiving(r, p, head);
    }
}

/* --- answers at clients ---------------------------------------------------------------------- */

/* The whole answer was sent; or all but the end of the framing, which matters less than the
 * terminal event. */
static bool is_whole(const struct answer *a)
{
    return all_sent(a) ||
           (a->status == 200 && slice_ends_with(buf_slice(&a->body), SLICE("data: [DONE]\n\n")));
}

/* The start of the router's error event, behind the end of a cut event. */
static bool is_error_event(struct slice rest)
{
    static const struct slice error = SLICE("data: {\"error\":{\"message\":");
    static const struct slice ends[] = {SLICE(""), SLICE("\n\n"), SLICE("-\n\n")};
    for (unsigned i = 0; i < ARRAY_LEN(ends); i++) {
        if (slice_starts_with(ends[i], rest))
            return true;
        struct slice event = slice_skip(rest, ends[i].len);
        if (slice_starts_with(rest, ends[i]) &&
            (slice_starts_with(error, event) || slice_starts_with(event, error)))
            return true;
    }
    return false;
}

/* The beginning of a cut answer, or of a continued answer, and the router's ending. */
static bool is_cut_short(struct slice full, struct slice body)
{
    enum { SAME_START = 24 }; /* bytes equal at the beginning of all events */
    size_t same = 0;
    while (same < full.len && same < body.len && full.at[same] == body.at[same])
        same++;
    for (size_t n = same < SAME_START ? 0 : same - SAME_START; n <= same; n++) {
        if (is_error_event(slice_skip(body, n)))
            return true;
    }
    return false;
}

/* The bytes after a sign of life: an attempt, without the preamble if another attempt's events came
 * before. */
static bool goes_on(const struct run *r, unsigned request, struct slice rest, bool events,
                    bool whole)
{
    if (!whole && is_error_event(rest))
        return true;
    for (unsigned i = 0; i < r->answer_count; i++) {
        const struct answer *a = &r->answers[i];
        if (a->request != request || a->status != 200)
            continue;
        struct slice full = slice_skip(buf_slice(&a->body), events ? a->preamble : 0);
        if (whole ? is_whole(a) && slice_equal(full, rest) : is_cut_short(full, rest))
            return true;
    }
    return false;
}

/* An attempt's preamble, or the part received of it, and the rest of another attempt. */
static bool is_spliced(const struct run *r, unsigned request, const struct answer *first,
                       struct slice body, bool whole)
{
    struct slice preamble = slice_of(first->body.at, first->preamble);
    for (size_t n = 0; n <= preamble.len && n <= body.len; n++) {
        bool event_ends = n == 0 || (n >= 2 && memcmp(preamble.at + n - 2, "\n\n", 2) == 0);
        if (event_ends && slice_starts_with(body, slice_of(preamble.at, n)) &&
            goes_on(r, request, slice_skip(body, n), n > 0, whole))
            return true;
    }
    return false;
}

/* A stream that failed before the first token: the error event's status and message. */
static bool is_named_error(const struct answer *a, unsigned status, struct slice body, bool whole)
{
    char event[64];
    int len = snprintf(event, sizeof event, "data: {\"error\":{\"code\":%u}}\n", status);
    struct slice rest = slice_skip(buf_slice(&a->body), a->preamble);
    return a->status == 200 && whole && slice_starts_with(rest, slice_of(event, (size_t)len)) &&
           slice_starts_with(body, SLICE("{\"error\":{\"message\":\"The engine failed.\""));
}

/* A rejection too long to be kept while another replica is asked: the status, and the router's
 * words instead of the rejection's text. */
static bool is_long_rejection(const struct answer *a, unsigned status, struct slice body,
                              bool whole)
{
    enum { KEPT_MAX = 8 * 1024 }; /* docs/http.md */
    struct slice said = SLICE("{\"error\":{\"message\":\"The replica returned status ");
    return a->status == status && status / 100 == 4 && a->body.len > KEPT_MAX && whole &&
           slice_starts_with(body, said);
}

/* Checks that the replica gave this answer to this request, and is complete if `whole`. */
static void check_answer(const struct run *r, unsigned request, unsigned status, unsigned replica,
                         struct slice body, bool whole)
{
    for (unsigned i = 0; i < r->answer_count; i++) {
        const struct answer *a = &r->answers[i];
        if (a->request != request || a->replica != replica)
            continue;
        if (is_named_error(a, status, body, whole) || is_long_rejection(a, status, body, whole))
            return;
        if (a->status != status)
            continue;
        struct slice full = r->requests[request].to_head ? slice_of("", 0) : buf_slice(&a->body);
        if (slice_starts_with(full, body) && (!whole || (is_whole(a) && full.len == body.len)))
            return;
        if (status == 200 && !whole && is_cut_short(full, body))
            return;
        if (status == 200 && is_spliced(r, request, a, body, whole))
            return;
    }
    CHECK(!"the client has bytes that no replica gave to its request");
}

static bool end_is_proper(const struct peer *c)
{
    return c->wire->closing && !c->wire->reset && !c->gone && !c->slow;
}

/* Continues after the last whole answer. `last`: the connection is closed. */
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
        struct slice text = buf_slice(&body);
        c->alive = status == 200 && !whole &&
                   slice_equal(line_of(head, "content-type"), SLICE("text/event-stream")) &&
                   (text.len == 0 || memmem(text.at, text.len, "\"text\"", 6) == NULL);
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

/* A wire chosen by the input: of a client, or of a replica. NULL: none. */
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
    char *piece = malloc(n); /* a copy, so that ASan sees reads beyond the end */
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

/* Completes all open actions successfully. */
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
    static const int errors[] = {ERR_FULL, ERR_CLOSED, ERR_LIMIT, ERR_CLOSED, ERR_NOMEM};
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
        r->world.connect_error = errors[byte(r) % ARRAY_LEN(errors)];
    else if (what == 17 && byte(r) % 8 == 0)
        proxy_world_drain(&r->world, byte(r) % 2 == 0);
    else
        flow(r);
}

/* --- a run ----------------------------------------------------------------------------------- */

enum { CROWDED_MAX = 40 };

/* Settings for few requests in flight, so that the rest waits. */
static void crowd(struct run *r, const char **settings)
{
    static const char *const crowded[] = {"other-paths", "pass",
                                          SHORT_LIMITS,  "upstream-keepalive",
                                          "400ms",       "access-log",
                                          "off",         "buffered-bytes-max",
                                          "200KiB",      "request-timeout",
                                          "900ms",       "queue-timeout",
                                          "400ms",       NULL};
    static const char *const counts[] = {"0", "1", "2", "3", "4"};
    unsigned c = byte(r);
    CHECK(ARRAY_LEN(crowded) + 8 <= CROWDED_MAX);
    memcpy(settings, crowded, sizeof crowded);
    const char **at = settings + ARRAY_LEN(crowded) - 1;
    *at++ = "replica-requests-max";
    *at++ = counts[c % 3];
    *at++ = "requests-max";
    *at++ = counts[1 + c / 3 % 4];
    *at++ = "queue-max";
    *at++ = counts[c / 12 % 5];
    *at++ = "client-half-close";
    *at++ = c % 2 == 0 ? "gone" : "answer";
    *at = NULL;
}

static const char *const usual[] = {"other-paths",        "pass",  SHORT_LIMITS,  SHORT_ANSWERS,
                                    "upstream-keepalive", "400ms", "stream-hold", "100ms",
                                    "access-log",         "off",   NULL};
static const char *const tight[] = {"other-paths",
                                    "pass",
                                    SHORT_LIMITS,
                                    SHORT_ANSWERS,
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

static void begin(struct run *r)
{
    unsigned b = byte(r);
    const char *settings[CROWDED_MAX];
    if (b / 24 % 4 == 3)
        crowd(r, settings);
    struct proxy_world_config config = {.replicas = 1 + b % 3,
                                        .engine = NODE_ENGINE_VLLM,
                                        .quiet = true,
                                        .settings = b / 24 % 4 == 3  ? settings
                                                    : b / 3 % 2 == 0 ? usual
                                                                     : tight,
                                        .seed = b};
    proxy_world_open(&r->world, &config);
}

/* Peers do nothing from now on: time limits end open connections. */
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
    for (unsigned i = 0; i < r->request_count; i++) {
        buf_free(&r->requests[i].body);
        buf_free(&r->requests[i].asked);
    }
    for (unsigned i = 0; i < r->answer_count; i++)
        buf_free(&r->answers[i].body);
    return 0;
}
