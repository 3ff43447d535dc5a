/* Speed of skimming bodies: chat requests of several sizes with the escapes of code and prose, and
 * the events of a streamed answer. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/prng.h"
#include "http/skim.h"
#include "http/usage.h"

enum { REQUEST_PART = 65536 }; /* bytes of a socket read */

static double now_s(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void must(int err)
{
    CHECK(err == 0);
}

/* Code and prose about code: an escape every 35 bytes, as in the agents' transcripts of
 * ../shared/traces. */
static void append_code(struct buf *out, struct prng *prng, size_t len)
{
    static const char prose[] =
        "The test fails because the parser does not expect a line that ends without a newline. I "
        "will change the loop so that the last line is handled as well, and then run the tests "
        "again.\\n";
    static const char *const lines[] = {
        "    for (size_t i = 0; i < count; i++) {\\n",
        "        printf(\\\"%s: %d\\\\n\\\", names[i], values[i]);\\n",
        "\\n",
        "def handle_request(self, request: Request) -> Response:\\n",
        "    return {\\\"status\\\": \\\"ok\\\", \\\"items\\\": self.items[:limit]}\\n",
        "    # The cache keeps entries that were used in the last hour, and drops the rest.\\n",
        prose,
        "if err != nil {\\n",
        "\\treturn fmt.Errorf(\\\"cannot open %q: %w\\\", path, err)\\n",
        "    assert result.status_code == 200, f'unexpected status {result.status_code}'\\n",
        "        self.entries = sorted(self.entries, key=lambda entry: entry.last_used)\\n",
        "}\\n",
    };
    size_t start = out->len;
    while (out->len - start < len)
        must(buf_append_cstr(out, lines[prng_next(prng) % (sizeof lines / sizeof lines[0])]));
}

static void make_chat(struct buf *out, size_t len)
{
    struct prng prng;
    prng_seed(&prng, len);
    must(buf_append_cstr(out,
                         "{\"model\":\"meta-llama/Llama-3.1-8B-Instruct\",\"messages\":["
                         "{\"role\":\"system\",\"content\":\"You are a helpful assistant.\"}"));
    size_t turn = len / 12 < 200 ? 200 : len / 12;
    for (unsigned i = 0; out->len + turn / 2 < len; i++) {
        must(
            buf_printf(out, ",{\"role\":\"%s\",\"content\":\"", i % 2 == 0 ? "user" : "assistant"));
        append_code(out, &prng, turn);
        must(buf_append_cstr(out, "\"}"));
    }
    must(buf_append_cstr(out, "],\"max_tokens\":256,\"temperature\":0.7,\"stream\":true,"
                              "\"stream_options\":{\"include_usage\":true},\"user\":\"u-1234\"}"));
}

static void bench_chat(const char *name, size_t len)
{
    static struct http_skim skim;
    struct hash_secret secret;
    hash_secret_from_seed(&secret, 1);
    struct buf body = {.at = NULL};
    make_chat(&body, len);
    unsigned rounds = (unsigned)(80000000 / body.len) + 1;
    double best = 1e9;
    for (int repeat = 0; repeat < 5; repeat++) {
        double start = now_s();
        for (unsigned i = 0; i < rounds; i++) {
            http_skim_init(&skim, &secret);
            for (size_t at = 0; at < body.len; at += REQUEST_PART)
                http_skim_feed(&skim, body.at + at,
                               body.len - at < REQUEST_PART ? body.len - at : REQUEST_PART);
            http_skim_finish(&skim);
            CHECK(skim.understood);
        }
        double took = (now_s() - start) / rounds;
        best = took < best ? took : best;
    }
    printf("%-12s %8zu bytes %9.2f us %7.2f GB/s %4u points\n", name, body.len, best * 1e6,
           (double)body.len / best / 1e9, (unsigned)http_skim_chain(&skim)->length);
    buf_free(&body);
}

static void bench_ids(void)
{
    static struct http_skim skim;
    struct hash_secret secret;
    hash_secret_from_seed(&secret, 1);
    struct prng prng;
    prng_seed(&prng, 3);
    struct buf body = {.at = NULL};
    must(buf_append_cstr(&body, "{\"model\":\"m\",\"prompt\":[1"));
    for (int i = 0; i < 100000; i++)
        must(buf_printf(&body, ",%u", (unsigned)(prng_next(&prng) % 128000)));
    must(buf_append_cstr(&body, "]}"));
    double best = 1e9;
    for (int repeat = 0; repeat < 20; repeat++) {
        double start = now_s();
        http_skim_init(&skim, &secret);
        http_skim_feed(&skim, body.at, body.len);
        http_skim_finish(&skim);
        double took = now_s() - start;
        best = took < best ? took : best;
        CHECK(skim.understood && http_skim_chain(&skim)->token_ids);
    }
    printf("%-12s %8zu bytes %9.2f us %7.2f ns/id\n", "100k ids", body.len, best * 1e6,
           best * 1e9 / 100001);
    buf_free(&body);
}

static void bench_answer(void)
{
    static const char event[] =
        "data: {\"id\":\"chatcmpl-b4799679660c65e4\",\"object\":\"chat.completion.chunk\","
        "\"created\":1795273254,\"model\":\"meta-llama/Llama-3.1-8B-Instruct\",\"choices\":[{"
        "\"index\":0,\"delta\":{\"content\":\" the\"},\"logprobs\":null,\"finish_reason\":null,"
        "\"token_ids\":null}]}\n\n";
    struct http_usage usage;
    double best = 1e9;
    for (int repeat = 0; repeat < 5; repeat++) {
        http_usage_init(&usage, HTTP_USAGE_SSE);
        double start = now_s();
        for (int i = 0; i < 100000; i++)
            http_usage_feed(&usage, event, sizeof event - 1);
        double took = (now_s() - start) / 100000;
        best = took < best ? took : best;
        http_usage_finish(&usage);
        CHECK(usage.token_events == 100000);
    }
    printf("%-12s %8zu bytes %9.0f ns\n", "SSE event", sizeof event - 1, best * 1e9);
}

int main(void)
{
    bench_chat("chat", 1024);
    bench_chat("chat", 32 * 1024);
    bench_chat("chat", 400 * 1024);
    bench_ids();
    bench_answer();
    return 0;
}
