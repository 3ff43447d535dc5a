#include "http/forward.h"

#include <stdio.h>

#include "base/check.h"
#include "base/err.h"
#include "tests/lib/test.h"

static struct http_head head, again;
static struct buf out;

static int setup(void **state)
{
    (void)state;
    buf_init(&out, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    buf_free(&out);
    return 0;
}

/* Parses and forwards the head, compares the result, and parses it again. */
static void check_request(const char *text, const struct http_forward_request *how,
                          const char *want)
{
    assert_int_equal(http_request_parse(&head, text, strlen(text), &http_limits_default), 0);
    buf_clear(&out);
    assert_int_equal(http_forward_request_write(&out, &head, how), 0);
    assert_slice_equal(buf_slice(&out), want);
    assert_int_equal(http_request_parse(&again, out.at, out.len, &http_limits_default), 0);
    assert_int_equal(again.framing, how->framing);
    assert_int_equal(again.content_length, how->content_length);
}

static void check_response(const char *text, const struct http_forward_response *how,
                           const char *want)
{
    assert_int_equal(http_response_parse(&head, text, strlen(text), false, &http_limits_default),
                     0);
    buf_clear(&out);
    assert_int_equal(http_forward_response_write(&out, &head, how), 0);
    assert_slice_equal(buf_slice(&out), want);
    assert_int_equal(http_response_parse(&again, out.at, out.len, false, &http_limits_default), 0);
}

static const struct http_forward_request as_is = {.framing = HTTP_BODY_NONE};

static void nothing_to_drop(void **state)
{
    (void)state;
    const char *text = "GET /x?y HTTP/1.1\r\nHost: a\r\nX:  two \r\nY:\r\n\r\n";
    check_request(text, &as_is, text);
}

static void hop_by_hop_request(void **state)
{
    (void)state;
    check_request("POST / HTTP/1.1\r\nConnection: keep-alive, X-Drop, upgrade\r\nHost: a\r\n"
                  "A: 1\r\nKeep-Alive: 5\r\nx-drop: y\r\nX-Drop-Not: z\r\nProxy-Connection: x\r\n"
                  "TE: trailers\r\nTrailer: X\r\nTransfer-Encoding: chunked\r\nUpgrade: h2c\r\n"
                  "B: 2\r\nHTTP2-Settings: x\r\nProxy-Authorization: x\r\nExpect: 100-continue\r\n"
                  "Endpoint-Load-Metrics-Format: json\r\nC: 3\r\n\r\n",
                  &(struct http_forward_request){.framing = HTTP_BODY_CHUNKED},
                  "POST / HTTP/1.1\r\nHost: a\r\nA: 1\r\nX-Drop-Not: z\r\nB: 2\r\nC: 3\r\n"
                  "Transfer-Encoding: chunked\r\n\r\n");
}

/* Each line of Connection names hop-by-hop fields, not only the first. */
static void every_connection_line_names_hop_by_hop_fields(void **state)
{
    (void)state;
    check_request("GET / HTTP/1.1\r\nHost: a\r\nConnection: x-a\r\nX-A: 1\r\nX-B: 1\r\n"
                  "X-C: 1\r\nConnection: x-b\r\n\r\n",
                  &as_is, "GET / HTTP/1.1\r\nHost: a\r\nX-C: 1\r\n\r\n");
}

static void connection_cannot_strip_important_fields(void **state)
{
    (void)state;
    check_request("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nAuthorization: b\r\n"
                  "Connection: host, content-length, authorization, x-forwarded-for\r\n"
                  "X-Forwarded-For: 1.1.1.1\r\nConnection: Content-Type, x-real-ip\r\n"
                  "Content-Type: c\r\nX-Real-IP: 2.2.2.2\r\n\r\n",
                  &(struct http_forward_request){.framing = HTTP_BODY_LENGTH, .content_length = 3},
                  "POST / HTTP/1.1\r\nHost: a\r\nAuthorization: b\r\nX-Forwarded-For: 1.1.1.1\r\n"
                  "Content-Type: c\r\nX-Real-IP: 2.2.2.2\r\nContent-Length: 3\r\n\r\n");
}

static void length_instead_of_chunks(void **state)
{
    (void)state;
    check_request(
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        &(struct http_forward_request){.framing = HTTP_BODY_LENGTH, .content_length = UINT64_MAX},
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551615\r\n\r\n");
    check_request("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 007\r\n\r\n",
                  &(struct http_forward_request){.framing = HTTP_BODY_LENGTH, .content_length = 7},
                  "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\n");
}

static void hosts(void **state)
{
    (void)state;
    check_request("GET / HTTP/1.1\r\nX: y\r\nHost: a\r\n\r\n",
                  &(struct http_forward_request){.host = SLICE("engine:8000")},
                  "GET / HTTP/1.1\r\nHost: engine:8000\r\nX: y\r\n\r\n");
    check_request("GET / HTTP/1.0\r\nX: y\r\n\r\n",
                  &(struct http_forward_request){.host_fallback = SLICE("engine")},
                  "GET / HTTP/1.1\r\nHost: engine\r\nX: y\r\n\r\n");
    check_request("GET http://a/b?c HTTP/1.1\r\nHost: a\r\n\r\n", &as_is,
                  "GET /b?c HTTP/1.1\r\nHost: a\r\n\r\n");
    check_request("GET http://a?c HTTP/1.0\r\n\r\n", &as_is, "GET /?c HTTP/1.1\r\nHost: a\r\n\r\n");
    check_request("OPTIONS http://a HTTP/1.1\r\nHost: a\r\n\r\n", &as_is,
                  "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
    check_request("GET /? HTTP/1.1\r\nHost: a\r\n\r\n", &as_is,
                  "GET /? HTTP/1.1\r\nHost: a\r\n\r\n");
}

static void forwarding_fields(void **state)
{
    (void)state;
    struct http_forward_request how = {.client_address = SLICE("10.0.0.1")};
    check_request("GET / HTTP/1.1\r\nHost: a:80\r\nX: y\r\n\r\n", &how,
                  "GET / HTTP/1.1\r\nHost: a:80\r\nX-Forwarded-For: 10.0.0.1\r\n"
                  "X-Forwarded-Proto: http\r\nX-Forwarded-Host: a:80\r\nX: y\r\n\r\n");
    /* A proxy in front of the router: the proxy's values are continued. */
    const char *behind = "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1.1.1.1\r\n"
                         "X-Forwarded-Proto: https\r\nX-Forwarded-Host: b\r\nX-Real-IP: 1.1.1.1\r\n"
                         "Forwarded: for=1.1.1.1\r\nX-Forwarded-For: 2.2.2.2, 3.3.3.3\r\n\r\n";
    check_request(behind, &how,
                  "GET / HTTP/1.1\r\nHost: a\r\n"
                  "X-Forwarded-For: 1.1.1.1, 2.2.2.2, 3.3.3.3, 10.0.0.1\r\n"
                  "Forwarded: for=1.1.1.1, for=10.0.0.1;host=\"a\";proto=http\r\n"
                  "X-Forwarded-Proto: https\r\nX-Forwarded-Host: b\r\n"
                  "X-Real-IP: 1.1.1.1\r\n\r\n");
    how.distrust_client = true;
    check_request(behind, &how,
                  "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 10.0.0.1\r\n"
                  "X-Forwarded-Proto: http\r\nX-Forwarded-Host: a\r\n\r\n");
    /* Nor can a client set the client address by another field. */
    static const char *const others[] = {
        "X-Forwarded-Port: 1",
        "X-Forwarded-Prefix: /x",
        "X-Forwarded-Server: s",
        "X_Forwarded_For: 1",
        "x-forwarded_host: s",
        "X-Client-IP: 1",
        "True-Client-IP: 1",
        "X_Real_IP: 1",
        "X-Original-Forwarded-For: 1",
        "CF-Connecting-IP: 1",
        "Fastly-Client-IP: 1",
        "X-Envoy-External-Address: 1",
        "CF-Connecting-IPv6: 1",
        "X-Cluster-Client-IP: 1",
        "X-Forwarded-Anything-That-Is-Long-Enough: 1",
    };
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        char in[256], want[320];
        (void)snprintf(in, sizeof in,
                       "GET / HTTP/1.1\r\nHost: a\r\nX-Client: 1\r\n%s\r\nForward: 2\r\n\r\n",
                       others[i]);
        check_request(in, &how,
                      "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 10.0.0.1\r\n"
                      "X-Forwarded-Proto: http\r\nX-Forwarded-Host: a\r\nX-Client: 1\r\n"
                      "Forward: 2\r\n\r\n");
        how.distrust_client = false;
        (void)snprintf(want, sizeof want,
                       "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 10.0.0.1\r\n"
                       "X-Forwarded-Proto: http\r\nX-Forwarded-Host: a\r\nX-Client: 1\r\n%s\r\n"
                       "Forward: 2\r\n\r\n",
                       others[i]);
        check_request(in, &how, want);
        how.distrust_client = true;
    }
    how = (struct http_forward_request){.client_address = SLICE("2001:db8::1"),
                                        .proto = SLICE("https")};
    check_request(
        "GET / HTTP/1.0\r\nHost: a\r\nForwarded: for=_x\r\n\r\n", &how,
        "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 2001:db8::1\r\nX-Forwarded-Proto: https\r\n"
        "X-Forwarded-Host: a\r\n"
        "Forwarded: for=_x, for=\"[2001:db8::1]\";host=\"a\";proto=https\r\n\r\n");
}

static void via_is_continued(void **state)
{
    (void)state;
    const struct http_forward_request ours = {.via = SLICE("grapevine-1"), .distrust_client = true};
    check_request("GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n", &ours,
                  "GET / HTTP/1.1\r\nHost: a\r\nVia: 1.1 grapevine-1\r\nX: y\r\n\r\n");
    check_request("GET / HTTP/1.1\r\nvia: 1.0 fred, 1.1 p.example (x)\r\nHost: a\r\nVia:\r\n"
                  "Connection: via\r\nVIA: 2 z\r\n\r\n",
                  &ours,
                  "GET / HTTP/1.1\r\nHost: a\r\n"
                  "Via: 1.0 fred, 1.1 p.example (x), 2 z, 1.1 grapevine-1\r\n\r\n");
    check_request("GET / HTTP/1.0\r\nHost: a\r\n\r\n", &ours,
                  "GET / HTTP/1.1\r\nHost: a\r\nVia: 1.0 grapevine-1\r\n\r\n");
}

static void via_counts_routers(void **state)
{
    (void)state;
    static const struct {
        const char *lines;
        unsigned routers;
        bool self;
    } rows[] = {
        {"", 0, false},
        {"Via: 1.1 grapevine-1\r\n", 1, true},
        {"Via: 1.1 grapevine-2\r\n", 1, false},
        {"Via: 1.1 grapevine-12\r\n", 1, false},
        {"Via: 1.0 fred, HTTP/1.1  grapevine-2 (a comment),1.1 grapevine-1\r\n", 2, true},
        {"Via: 1.1 grapevine-2\r\nA: b\r\nvia: 1.1 grapevine-3\r\nVia: 1.1 x\r\n", 2, false},
        {"Via: grapevine-1\r\n", 0, false}, /* no protocol: not a router's */
        {"Via: ,, ,1.1,1.1 \r\n", 0, false},
        {"X-Via: 1.1 grapevine-1\r\n", 0, false},
        {"Via: 1.1 a (grapevine-1)\r\n", 0, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[256];
        (void)snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: a\r\n%s\r\n", rows[i].lines);
        assert_int_equal(http_request_parse(&head, text, strlen(text), &http_limits_default), 0);
        bool self = true;
        unsigned routers = http_via_routers(&head, SLICE("grapevine-1"), &self);
        if (routers != rows[i].routers || self != rows[i].self)
            fail_msg("%s: %u routers, self %d", rows[i].lines, routers, self);
    }
}

static void request_id_and_extra(void **state)
{
    (void)state;
    struct http_line extra[] = {{SLICE("x-session-id"), SLICE("new")}, {SLICE("Z"), SLICE("1")}};
    struct http_forward_request how = {
        .request_id = SLICE("id-1"), .extra = extra, .extra_count = ARRAY_LEN(extra)};
    check_request("GET / HTTP/1.1\r\nHost: a\r\nX-Request-ID: old\r\nX-Session-Id: old\r\n"
                  "traceparent: 00-1-2-01\r\n\r\n",
                  &how,
                  "GET / HTTP/1.1\r\nHost: a\r\ntraceparent: 00-1-2-01\r\nX-Request-Id: id-1\r\n"
                  "x-session-id: new\r\nZ: 1\r\n\r\n");
    check_request("GET / HTTP/1.1\r\nHost: a\r\nX-Request-ID: old\r\n\r\n", &as_is,
                  "GET / HTTP/1.1\r\nHost: a\r\nX-Request-ID: old\r\n\r\n");
}

static void responses(void **state)
{
    (void)state;
    struct http_line extra[] = {{SLICE("x-grapevine-replica"), SLICE("r1")},
                                {SLICE("x-request-id"), SLICE("id")}};
    check_response("HTTP/1.1 200 Fine\r\nDate: now\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\n"
                   "Content-Length: 5\r\nEndpoint-Load-Metrics: a=b\r\nX-Request-Id: engine\r\n"
                   "endpoint-load-metrics-json: {}\r\nKeep-Alive: timeout=5\r\nServer: u\r\n"
                   "X-Grapevine-Replica: forged\r\nProxy-Authenticate: x\r\n"
                   "x-grapevine-reason: forged\r\nX_Grapevine_Limit: forged\r\n\r\n",
                   &(struct http_forward_response){.client_minor = 1,
                                                   .keep_alive = true,
                                                   .framing = HTTP_BODY_LENGTH,
                                                   .content_length = 5,
                                                   .extra = extra,
                                                   .extra_count = 2},
                   "HTTP/1.1 200 Fine\r\nDate: now\r\nServer: u\r\nContent-Length: 5\r\n"
                   "x-grapevine-replica: r1\r\nx-request-id: id\r\n\r\n");
    check_response("HTTP/1.0 404 \r\nA: b\r\n\r\n",
                   &(struct http_forward_response){
                       .client_minor = 1, .keep_alive = true, .framing = HTTP_BODY_CHUNKED},
                   "HTTP/1.1 404 \r\nA: b\r\nTransfer-Encoding: chunked\r\n\r\n");
    check_response("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                   &(struct http_forward_response){.framing = HTTP_BODY_UNTIL_CLOSE},
                   "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
    check_response("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
                   &(struct http_forward_response){.keep_alive = true, .framing = HTTP_BODY_LENGTH},
                   "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n");
}

static void responses_without_body(void **state)
{
    (void)state;
    struct http_forward_response how = {.client_minor = 1, .keep_alive = true};
    check_response("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", &how,
                   "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n");
    check_response("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", &how,
                   "HTTP/1.1 204 No Content\r\n\r\n");
    check_response("HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", &how,
                   "HTTP/1.1 204 No Content\r\n\r\n");
}

static void framing_for_a_client(void **state)
{
    (void)state;
    static const enum http_framing in[] = {HTTP_BODY_NONE, HTTP_BODY_LENGTH, HTTP_BODY_CHUNKED,
                                           HTTP_BODY_UNTIL_CLOSE};
    static const enum http_framing want[2][4] = {
        {HTTP_BODY_NONE, HTTP_BODY_LENGTH, HTTP_BODY_UNTIL_CLOSE, HTTP_BODY_UNTIL_CLOSE},
        {HTTP_BODY_NONE, HTTP_BODY_LENGTH, HTTP_BODY_CHUNKED, HTTP_BODY_CHUNKED}};
    for (unsigned minor = 0; minor < 2; minor++) {
        for (size_t i = 0; i < 4; i++) {
            head.framing = in[i];
            assert_int_equal(http_forward_response_framing(&head, minor), want[minor][i]);
        }
    }
}

static void full_buffer_is_left_alone(void **state)
{
    (void)state;
    const char *text = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_int_equal(http_request_parse(&head, text, strlen(text), &http_limits_default), 0);
    struct buf small;
    buf_init(&small, 100);
    assert_int_equal(buf_append_cstr(&small, "before"), 0);
    assert_int_equal(http_forward_request_write(&small, &head, &as_is), ERR_LIMIT);
    assert_slice_equal(buf_slice(&small), "before");
    buf_free(&small);
}

static uint64_t draw(uint64_t *seed, uint64_t below)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (*seed >> 33) % below;
}

/* The forwarded head has the same end-to-end fields in the same order, and no hop-by-hop field. */
static void random_heads_keep_end_to_end_fields(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool kept;
    } names[] = {{"A", true},           {"x-hop", false},        {"Accept", true},
                 {"Connection", false}, {"Keep-Alive", false},   {"X-Forwarded-For", true},
                 {"TE", false},         {"Content-Type", true},  {"X-Very-Long-Name", true},
                 {"Upgrade", false},    {"Authorization", true}, {"Cookie", true}};
    uint64_t seed = 7;
    for (int round = 0; round < 20000; round++) {
        char text[4096];
        size_t kept[64];
        size_t kept_count = 0;
        size_t count = draw(&seed, 60);
        int len = snprintf(text, sizeof text,
                           "GET / HTTP/1.1\r\nHost: a\r\nConnection: x-hop, , cookie\r\n");
        for (size_t i = 0; i < count; i++) {
            size_t which = draw(&seed, ARRAY_LEN(names));
            const char *value = strcmp(names[which].name, "Connection") == 0 ? "keep-alive" : "v";
            len += snprintf(text + len, sizeof text - (size_t)len, "%s:%*s%s%zu\r\n",
                            names[which].name, (int)draw(&seed, 3), "", value,
                            value[0] == 'v' ? i : (size_t)0);
            if (names[which].kept)
                kept[kept_count++] = which;
        }
        len += snprintf(text + len, sizeof text - (size_t)len, "\r\n");
        assert_int_equal(http_request_parse(&head, text, (size_t)len, &http_limits_default), 0);
        buf_clear(&out);
        assert_int_equal(http_forward_request_write(&out, &head, &as_is), 0);
        assert_int_equal(http_request_parse(&again, out.at, out.len, &http_limits_default), 0);
        assert_int_equal(again.field_count, 1 + kept_count);
        for (size_t i = 0; i < kept_count; i++)
            assert_slice_equal(again.fields[i + 1].name, names[kept[i]].name);
        size_t from = 0;
        for (size_t i = 0; i < again.field_count; i++, from++) {
            while (!slice_equal(head.fields[from].name, again.fields[i].name) ||
                   !slice_equal(head.fields[from].value, again.fields[i].value))
                assert_true(++from < head.field_count);
        }
    }
}

/* Each attempt may go to a replica of another name: shorter, longer, or as long. */
static void the_host_of_a_head_is_changed(void **state)
{
    (void)state;
    static const char *const hosts[] = {"engines.internal:8000", "b", "[2001:db8::1]:8000", "c"};
    static const char text[] =
        "POST /x HTTP/1.1\r\nX: 1\r\nHost: a\r\nCONTENT-LENGTH: 3\r\nY: Host: a\r\n\r\n";
    assert_int_equal(http_request_parse(&head, text, strlen(text), &http_limits_default), 0);
    struct http_forward_request how = {.framing = HTTP_BODY_LENGTH, .content_length = 3};
    buf_clear(&out);
    assert_int_equal(http_forward_request_write(&out, &head, &how), 0);
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        char want[256];
        assert_int_equal(http_forward_host_set(&out, slice_of_cstr(hosts[i])), 0);
        (void)snprintf(want, sizeof want,
                       "POST /x HTTP/1.1\r\nHost: %s\r\nX: 1\r\nY: Host: a\r\n"
                       "Content-Length: 3\r\n\r\n",
                       hosts[i]);
        assert_slice_equal(buf_slice(&out), want);
    }
    struct buf full = out;
    full.max = full.cap = full.len;
    assert_int_equal(http_forward_host_set(&full, SLICE("longer.than.there.is.room.for")),
                     ERR_LIMIT);
    assert_slice_equal(http_head_get(&head, HTTP_HOST), "a");
}

static void a_field_is_set_in_a_written_head(void **state)
{
    (void)state;
    buf_clear(&out);
    assert_int_equal(buf_append_cstr(&out, "POST /rank: HTTP/1.1\r\nHost: a\r\nRANK: 7\r\nB: c\r\n"
                                           "rank:8\r\nranks: 3\r\n\r\n"),
                     0);
    assert_int_equal(http_forward_field_set(&out, SLICE("Rank"), SLICE("12")), 0);
    assert_slice_equal(buf_slice(&out), "POST /rank: HTTP/1.1\r\nHost: a\r\nB: c\r\nranks: 3\r\n"
                                        "Rank: 12\r\n\r\n");
    assert_int_equal(http_forward_field_set(&out, SLICE("Rank"), SLICE("3")), 0);
    assert_slice_equal(buf_slice(&out), "POST /rank: HTTP/1.1\r\nHost: a\r\nB: c\r\nranks: 3\r\n"
                                        "Rank: 3\r\n\r\n");
    assert_int_equal(http_forward_field_set(&out, SLICE("rank"), SLICE("")), 0);
    assert_slice_equal(buf_slice(&out),
                       "POST /rank: HTTP/1.1\r\nHost: a\r\nB: c\r\nranks: 3\r\n\r\n");
}

static void a_length_too_long_leaves_the_head_unchanged(void **state)
{
    (void)state;
    struct slice before = SLICE("POST / HTTP/1.1\r\nHost: a\r\n\r\n");
    struct buf small;
    buf_init(&small, before.len + 4);
    assert_int_equal(buf_append_slice(&small, before), 0);
    assert_int_equal(http_forward_length_write(&small, 12345), ERR_LIMIT);
    assert_true(slice_equal(buf_slice(&small), before));
    buf_free(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_length_too_long_leaves_the_head_unchanged),
        cmocka_unit_test(nothing_to_drop),
        cmocka_unit_test(hop_by_hop_request),
        cmocka_unit_test(every_connection_line_names_hop_by_hop_fields),
        cmocka_unit_test(connection_cannot_strip_important_fields),
        cmocka_unit_test(length_instead_of_chunks),
        cmocka_unit_test(hosts),
        cmocka_unit_test(forwarding_fields),
        cmocka_unit_test(via_is_continued),
        cmocka_unit_test(via_counts_routers),
        cmocka_unit_test(request_id_and_extra),
        cmocka_unit_test(responses),
        cmocka_unit_test(responses_without_body),
        cmocka_unit_test(framing_for_a_client),
        cmocka_unit_test(full_buffer_is_left_alone),
        cmocka_unit_test(random_heads_keep_end_to_end_fields),
        cmocka_unit_test(the_host_of_a_head_is_changed),
        cmocka_unit_test(a_field_is_set_in_a_written_head),
    };
    return cmocka_run_group_tests_name("http/forward", tests, setup, teardown);
}
