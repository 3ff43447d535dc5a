/* Nanoseconds per head: requests of LLM clients, responses of engines. */
#include <stdio.h>
#include <time.h>

#include "base/check.h"
#include "http/chunked.h"
#include "http/forward.h"
#include "http/path.h"

enum { ROUNDS = 500000, TRIES = 5 };

/* A chat request of the OpenAI client in Python; a body of 1 KB follows. */
static const char request[] =
    "POST /v1/chat/completions HTTP/1.1\r\n"
    "Host: llm.internal.example.com:8080\r\n"
    "Accept-Encoding: gzip, deflate, br, zstd\r\n"
    "Connection: keep-alive\r\n"
    "Accept: application/json\r\n"
    "Content-Type: application/json\r\n"
    "User-Agent: OpenAI/Python 1.99.1 (Linux; x86_64) CPython/3.12.3\r\n"
    "X-Stainless-Lang: python\r\n"
    "X-Stainless-Raw-Response: true\r\n"
    "Authorization: Bearer sk-0123456789abcdef0123456789abcdef0123456789abcdef\r\n"
    "Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n"
    "Content-Length: 1024\r\n\r\n";

/* A head of 1 KB with ten fields. */
static const char filler[] =
    "X-Baggage: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\r\n\r\n";

static const char response[] = "HTTP/1.1 200 OK\r\n"
                               "date: Tue, 01 Jul 2025 12:00:00 GMT\r\n"
                               "server: uvicorn\r\n"
                               "content-type: text/event-stream; charset=utf-8\r\n"
                               "transfer-encoding: chunked\r\n\r\n";

static struct http_head head;
static struct buf out;
static struct slice input;

static double now_ns(void)
{
    struct timespec t;
    CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Takes the best of a few tries: the machine is shared. */
static void measure(const char *what, void (*work)(void))
{
    double best = 1e18;
    for (int i = 0; i < TRIES; i++) {
        double start = now_ns();
        for (int n = 0; n < ROUNDS; n++)
            work();
        double ns = (now_ns() - start) / ROUNDS;
        if (ns < best)
            best = ns;
    }
    printf("%-48s %7.0f ns\n", what, best);
}

static void parse_request(void)
{
    CHECK(http_request_parse(&head, input.at, input.len, &http_limits_default) == 0);
}

static void parse_and_forward_request(void)
{
    parse_request();
    struct http_forward_request how = {.client_address = SLICE("203.0.113.77"),
                                       .request_id = SLICE("0123456789abcdef0123456789abcdef"),
                                       .via = SLICE(HTTP_VIA_ROUTER "0123456789abcdef"),
                                       .framing = head.framing,
                                       .content_length = head.content_length};
    buf_clear(&out);
    CHECK(http_forward_request_write(&out, &head, &how) == 0);
}

static void route(void)
{
    CHECK(http_path_lookup(head.path, head.method).kind == HTTP_PATH_CHAT);
}

static void parse_and_forward_response(void)
{
    struct http_line extra[2] = {{SLICE("x-grapevine-replica"), SLICE("replica-1")},
                                 {SLICE("x-request-id"), SLICE("0123456789abcdef")}};
    CHECK(http_response_parse(&head, response, sizeof response - 1, false, &http_limits_default) ==
          0);
    struct http_forward_response how = {.client_minor = 1,
                                        .keep_alive = true,
                                        .framing = HTTP_BODY_CHUNKED,
                                        .extra = extra,
                                        .extra_count = 2};
    buf_clear(&out);
    CHECK(http_forward_response_write(&out, &head, &how) == 0);
}

static void decode_event(void)
{
    static struct http_chunked c; /* all zero is http_chunked_init */
    static char event[] = "100\r\n................................................................"
                          "................................................................"
                          "................................................................"
                          "................................................................\r\n";
    struct slice in = slice_of(event, sizeof event - 1), data;
    while (in.len > 0) {
        size_t used;
        CHECK(http_chunked_next(&c, in, &used, &data) == 0);
        in = slice_skip(in, used);
    }
}

int main(void)
{
    input = slice_of(request, sizeof request - 1);
    char what[96];
    (void)snprintf(what, sizeof what, "request head, %zu bytes: parse", input.len);
    measure(what, parse_request);
    measure("  parse and forward", parse_and_forward_request);
    measure("  look its path up", route);

    struct buf large = {0};
    CHECK(buf_append(&large, request, sizeof request - 3) == 0);
    CHECK(buf_append(&large, filler, sizeof filler - 1) == 0);
    input = buf_slice(&large);
    (void)snprintf(what, sizeof what, "request head, %zu bytes: parse", input.len);
    measure(what, parse_request);
    measure("  parse and forward", parse_and_forward_request);
    buf_free(&large);

    (void)snprintf(what, sizeof what, "response head, %zu bytes: parse and forward",
                   sizeof response - 1);
    measure(what, parse_and_forward_response);
    measure("chunk of 256 bytes: decode", decode_event);
    buf_free(&out);
    return 0;
}
