/* The answers of engines, as a client may see them. */
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "http/coding.h"
#include "tests/engine-sim/options.h"
#include "tests/sim/service/service.h"

static const struct http_limits limits = {
    .head_bytes_max = 1 << 20, .target_bytes_max = 1 << 16, .fields_max = HTTP_FIELDS_MAX};

#define USAGE "\"choices\":[],\"usage\":{"

static bool is_gzip(struct slice body)
{
    return slice_starts_with(body, SLICE("\x1f\x8b"));
}

/* Decodes a body as far as possible, if the client would get it decoded. */
static bool unpack(struct buf *body)
{
    struct http_decoder *d;
    struct slice in = buf_slice(body);
    struct buf out = {0};
    size_t n, room = body->len + 1024; /* the simulated engine stores without compression */
    CHECK(buf_reserve(&out, room) == 0 && http_decoder_new(&d, HTTP_CODING_GZIP, true) == 0);
    bool good = http_decoder_next(d, &in, out.at, room, &n) == 0 && http_decoder_end(d) == 0;
    out.len = n;
    http_decoder_free(d);
    buf_free(body);
    *body = out;
    return good;
}

/* The bytes as they came. */
static bool sent_raw(const struct service_attempt *t, unsigned *status, struct buf *body)
{
    static struct http_head head;
    struct slice in = buf_slice(&t->sent);
    do {
        if (http_response_parse(&head, in.at, in.len, false, &limits) != 0)
            return false;
        in = slice_skip(in, head.bytes);
    } while (head.status < 200);
    *status = head.status;
    if (head.framing == HTTP_BODY_CHUNKED) {
        struct http_chunked chunks;
        http_chunked_init(&chunks);
        while (in.len > 0 && !chunks.done) {
            size_t used = 0;
            struct slice data = {0};
            if (http_chunked_next(&chunks, in, &used, &data) != 0)
                return false;
            CHECK(buf_append_slice(body, data) == 0);
            in = slice_skip(in, used);
        }
        return chunks.done;
    }
    CHECK(buf_append_slice(body, in) == 0);
    return head.framing != HTTP_BODY_LENGTH || in.len == head.content_length;
}

/* The bytes as they came, with the usage that the router requested. */
static bool sent_with_usage(const struct service_attempt *t, unsigned *status, struct buf *body)
{
    bool whole = sent_raw(t, status, body);
    bool decoded = is_gzip(buf_slice(body)) && !is_gzip(buf_slice(&t->ask->body));
    return (!decoded || unpack(body)) && whole;
}

static bool ends_with(struct slice body, size_t at, struct slice text)
{
    return at >= text.len && memcmp(body.at + at - text.len, text.at, text.len) == 0;
}

bool service_between_events(struct slice body, size_t at)
{
    return ends_with(body, at, SLICE("\n\n")) || ends_with(body, at, SLICE("\r\n\r\n"));
}

static bool is_streamed_text(const struct service_ask *a)
{
    return a->stream && (a->kind == SERVICE_CHAT || a->kind == SERVICE_COMPLETIONS);
}

static const char *find(struct slice s, struct slice what)
{
    return s.len > 0 ? memmem(s.at, s.len, what.at, what.len) : NULL;
}

/* Removes the usage event, from `from` to `end`. The event right before gets the fingerprint, as in
 * an answer without usage. */
static void cut_usage(struct buf *body, size_t from, size_t end)
{
    static const struct slice mark = SLICE("\"system_fingerprint\":\"");
    struct slice all = buf_slice(body), usage = slice_of(all.at + from, end - from);
    size_t before = from > 0 ? from - 1 : 0;
    while (before > 0 && !service_between_events(all, before))
        before--;
    struct slice event = slice_of(all.at + before, from - before);
    const char *print = find(usage, mark);
    bool moves = print != NULL && find(event, mark) == NULL &&
                 find(event, SLICE("\"finish_reason\":\"")) != NULL;
    size_t at = moves ? (size_t)((char *)memrchr(event.at, '}', event.len) - all.at) : from;
    struct buf out = {0};
    CHECK(buf_append(&out, all.at, at) == 0);
    if (moves) {
        struct slice rest = slice_skip(usage, (size_t)(print - usage.at) + mark.len);
        size_t len = mark.len + slice_find(rest, '"') + 1;
        CHECK(buf_append(&out, ",", 1) == 0 && buf_append(&out, print, len) == 0);
    }
    CHECK(buf_append(&out, all.at + at, from - at) == 0);
    CHECK(buf_append_slice(&out, slice_skip(all, end)) == 0);
    buf_free(body);
    *body = out;
}

bool service_sent(const struct service_attempt *t, unsigned *status, struct buf *body)
{
    const struct service_ask *a = t->ask;
    bool whole = sent_with_usage(t, status, body);
    bool may_have = is_streamed_text(a) && !a->usage_asked;
    const char *found =
        may_have && body->len > 0 ? memmem(body->at, body->len, USAGE, sizeof USAGE - 1) : NULL;
    if (found == NULL)
        return whole;
    size_t from = (size_t)(found - body->at), end = from;
    while (from > 0 && !service_between_events(buf_slice(body), from))
        from--;
    while (end <= body->len && !service_between_events(buf_slice(body), end))
        end++;
    if (end > body->len)
        return false;
    cut_usage(body, from, end);
    return whole;
}

/* Omits comment lines and their line ends. */
static void put_without_comments(struct slice body, struct buf *out)
{
    while (body.len > 0) {
        struct slice line = slice_cut(&body, '\n');
        if (line.len > 0 && line.at[0] == ':')
            continue;
        CHECK(buf_append_slice(out, line) == 0 && buf_append(out, "\n", 1) == 0);
    }
}

bool service_same(const struct service_attempt *t, struct slice one, struct slice other)
{
    const struct service_ask *a = t->ask;
    const struct service_habits *h = &a->service->engines[t->engine].habits;
    bool comments = (h->framing & SIM_FRAMING_COMMENTS) != 0 || h->ping_s > 0;
    if (slice_equal(one, other))
        return true;
    if (!comments || !is_streamed_text(a) || a->usage_asked)
        return false;
    struct buf left = {0}, right = {0};
    put_without_comments(one, &left);
    put_without_comments(other, &right);
    bool same = slice_equal(buf_slice(&left), buf_slice(&right));
    buf_free(&left);
    buf_free(&right);
    return same;
}

bool service_leaked(const struct service_ask *a)
{
    return is_streamed_text(a) && !a->usage_asked && a->body.len > 0 &&
           memmem(a->body.at, a->body.len, USAGE, sizeof USAGE - 1) != NULL;
}
