/* Compressed answers, in any framing and any pieces, to clients reading at any pace. A client gets
 * the uncompressed bytes, without unrequested usage. Whatever the ratio, only a bounded part is in
 * memory. */
#include "tests/lib/test.h"

#include <stdio.h>
#define ZLIB_CONST
#include <zlib.h>
#include <zstd.h>

#include "base/check.h"
#include "base/prng.h"
#include "http/chunked.h"
#include "node/proxy/client/client.h"
#include "node/proxy/exchange/exchange.h"
#include "tests/lib/proxy_world.h"

enum framing { LENGTH, CHUNKED, CLOSE };
enum fault { NONE, ENGINE_BREAKS, CLIENT_BREAKS, GARBLED, FAULTS };

enum {
    PLAIN_MAX = 8 << 20,
    /* Bytes waiting for a client, in segments of 64 KiB, up to 16 KiB above the limit; a decoder's
     * window; and the request. */
    HELD_MAX = PROXY_OUT_BYTES_HIGH + EXCHANGE_UNPACK_BYTES + 3 * 65536 + (1 << 20),
};

static struct proxy_world world;
static struct buf plain, wanted, packed, sent;

struct session {
    struct prng prng;
    bool gzip, streams, old_client;
    enum framing framing;
    enum fault fault;
    struct wire *client, *engine;
};

static void put(struct buf *to, const char *text)
{
    CHECK(buf_append_cstr(to, text) == 0);
}

/* 1 event in 4 is so repetitive that it shrinks to a thousandth. */
static void write_plain(struct session *s)
{
    size_t events = 1 + prng_below(&s->prng, 40);
    buf_clear(&plain);
    if (!s->streams)
        put(&plain, "{\"choices\":[{\"text\":\"");
    for (size_t i = 0; i < events && plain.len < PLAIN_MAX / 2; i++) {
        bool flat = prng_below(&s->prng, 4) == 0;
        size_t len = prng_below(&s->prng, flat ? 2000000 : 2000);
        if (s->streams)
            put(&plain, "data: {\"choices\":[{\"delta\":{\"content\":\"");
        CHECK(buf_reserve(&plain, len) == 0);
        for (size_t j = 0; j < len; j++)
            plain.at[plain.len++] = flat ? 'x' : (char)('a' + prng_below(&s->prng, 26));
        if (s->streams)
            put(&plain, "\"}}]}\n\n");
    }
    if (!s->streams)
        put(&plain, "\"}]}");
    buf_clear(&wanted);
    CHECK(buf_append_slice(&wanted, buf_slice(&plain)) == 0);
    if (!s->streams)
        return;
    put(&plain,
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\n");
    put(&plain, "data: [DONE]\n\n");
    put(&wanted, "data: [DONE]\n\n");
}

static void pack(const struct session *s)
{
    buf_clear(&packed);
    CHECK(buf_reserve(&packed, plain.len + (1 << 16)) == 0);
    if (!s->gzip) {
        packed.len = ZSTD_compress(packed.at, packed.cap, plain.at, plain.len, 1);
        CHECK(!ZSTD_isError(packed.len));
        return;
    }
    z_stream z = {.zalloc = NULL};
    CHECK(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    z.next_in = (const Bytef *)plain.at;
    z.avail_in = (uInt)plain.len;
    z.next_out = (Bytef *)packed.at;
    z.avail_out = (uInt)packed.cap;
    CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END);
    packed.len = packed.cap - z.avail_out;
    CHECK(deflateEnd(&z) == Z_OK);
}

static void write_answer(struct session *s)
{
    static const char *const codings[] = {"zstd", "gzip"};
    static const char *const types[] = {"application/json", "text/event-stream"};
    buf_clear(&sent);
    if (s->fault == GARBLED)
        packed.at[prng_below(&s->prng, packed.len)] ^= (char)(1 + prng_below(&s->prng, 255));
    CHECK(buf_printf(&sent, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Encoding: %s\r\n",
                     types[s->streams], codings[s->gzip]) == 0);
    if (s->framing == LENGTH)
        CHECK(buf_printf(&sent, "Content-Length: %zu\r\n", packed.len) == 0);
    put(&sent, s->framing == CHUNKED ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n");
    size_t at = 0;
    while (at < packed.len) {
        size_t n = packed.len - at;
        if (s->framing == CHUNKED) {
            size_t most = 1 + prng_below(&s->prng, prng_below(&s->prng, 2) != 0 ? 30000 : 100);
            n = n < most ? n : most;
            CHECK(buf_printf(&sent, "%zx\r\n", n) == 0);
        }
        CHECK(buf_append(&sent, packed.at + at, n) == 0);
        at += n;
        if (s->framing == CHUNKED)
            put(&sent, "\r\n");
    }
    if (s->framing == CHUNKED)
        put(&sent, prng_below(&s->prng, 2) != 0 ? "0\r\nX-Sum: 1\r\n\r\n" : "0\r\n\r\n");
}

static void check_held(void)
{
    assert_true(proxy_body_bytes(world.proxy) <= HELD_MAX);
}

/* The answer comes in pieces, and the client reads now and then. */
static void play(struct session *s)
{
    size_t at = 0, end = sent.len;
    if (s->fault == ENGINE_BREAKS || s->fault == CLIENT_BREAKS)
        end = prng_below(&s->prng, sent.len);
    proxy_world_room(&world, s->client, prng_below(&s->prng, 3) != 0 ? SIZE_MAX : 0);
    while (at < end) {
        size_t most = prng_below(&s->prng, 3) == 0 ? 100 : 100000;
        size_t n = 1 + prng_below(&s->prng, end - at < most ? end - at : most);
        if (!s->engine->used || s->engine->closing)
            return;
        proxy_world_send(&world, s->engine, slice_of(sent.at + at, n));
        at += n;
        check_held();
        if (prng_below(&s->prng, 3) == 0)
            proxy_world_wait(&world, PROXY_TICK_MS);
        if (prng_below(&s->prng, 4) == 0 && !s->client->closing)
            proxy_world_room(&world, s->client, prng_below(&s->prng, 500000));
        check_held();
    }
    bool closes = s->framing == CLOSE && s->fault != CLIENT_BREAKS;
    if (s->fault == CLIENT_BREAKS && !s->client->closing)
        proxy_world_end(&world, s->client, true);
    else if ((s->fault == ENGINE_BREAKS || closes) && !s->engine->closing)
        proxy_world_end(&world, s->engine, s->fault == ENGINE_BREAKS);
}

static void read_on(struct session *s)
{
    for (unsigned i = 0; i < 400 && !s->client->closing; i++) {
        proxy_world_room(&world, s->client, i % 2 == 0 ? 100000 : SIZE_MAX);
        check_held();
        proxy_world_wait(&world, PROXY_TICK_MS);
    }
}

/* Takes the client's part of the body. True: up to the end. */
static bool got(const struct session *s, struct buf *body)
{
    struct slice in = buf_slice(&s->client->out);
    const char *head = in.len > 0 ? memmem(in.at, in.len, "\r\n\r\n", 4) : NULL;
    struct http_chunked c;
    buf_clear(body);
    if (head == NULL || memcmp(in.at, "HTTP/1.1 200", 12) != 0)
        return false;
    in = slice_skip(in, (size_t)(head - in.at) + 4);
    if (s->old_client) {
        CHECK(buf_append_slice(body, in) == 0);
        return s->client->closing && !s->client->reset;
    }
    http_chunked_init(&c);
    while (in.len > 0 && !c.done) {
        size_t used;
        struct slice data;
        assert_int_equal(http_chunked_next(&c, in, &used, &data), 0);
        CHECK(buf_append_slice(body, data) == 0);
        in = slice_skip(in, used);
    }
    assert_int_equal(in.len, 0);
    return c.done;
}

static void judge(const struct session *s)
{
    static struct buf body;
    bool whole = got(s, &body);
    size_t n = body.len < wanted.len ? body.len : wanted.len;
    if (s->fault == NONE) {
        assert_true(whole);
        assert_int_equal(body.len, wanted.len);
        assert_memory_equal(body.at, wanted.at, wanted.len);
        return;
    }
    if (whole && s->fault != GARBLED) /* the fault came after the whole answer */
        assert_int_equal(body.len, wanted.len);
    if (s->fault != GARBLED && n > 300) /* a cut body may end with an error event */
        assert_memory_equal(body.at, wanted.at, n - 300);
    buf_free(&body);
}

static void session(uint64_t seed)
{
    struct session s = {.fault = NONE};
    prng_seed(&s.prng, seed);
    s.gzip = prng_below(&s.prng, 2) != 0;
    s.streams = prng_below(&s.prng, 3) != 0;
    s.old_client = prng_below(&s.prng, 5) == 0;
    s.framing = (enum framing)prng_below(&s.prng, 3);
    if (prng_below(&s.prng, 3) == 0)
        s.fault = (enum fault)prng_below(&s.prng, FAULTS);
    static const char *const settings[] = {"retries-max", "0", NULL};
    proxy_world_open(&world, &(struct proxy_world_config){.replicas = 1,
                                                          .engine = NODE_ENGINE_SGLANG,
                                                          .quiet = true,
                                                          .settings = settings,
                                                          .seed = seed});
    proxy_world_wait(&world, 1000);
    s.client = proxy_world_connect(&world, PROXY_PORT_CLIENT);
    char ask[256];
    const char *body = s.streams ? "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
                                 : "{\"model\":\"m\",\"messages\":[]}";
    (void)snprintf(
        ask, sizeof ask,
        "POST /v1/chat/completions HTTP/1.%d\r\nHost: g\r\nContent-Length: %zu\r\n\r\n%s",
        s.old_client ? 0 : 1, strlen(body), body);
    proxy_world_send(&world, s.client, slice_of_cstr(ask));
    s.engine = proxy_world_find(&world, SLICE("1a"));
    assert_non_null(s.engine);
    proxy_world_accept(&world, s.engine, 0);
    write_plain(&s);
    pack(&s);
    write_answer(&s);
    play(&s);
    read_on(&s);
    judge(&s);
    proxy_world_close(&world);
}

static void answers_are_decompressed_unchanged(void **state)
{
    (void)state;
    const char *only = getenv("SEED");
    for (uint64_t seed = only != NULL ? strtoull(only, NULL, 10) : 1; seed <= 150; seed++) {
        session(seed);
        if (only != NULL)
            break;
    }
    buf_free(&plain);
    buf_free(&wanted);
    buf_free(&packed);
    buf_free(&sent);
}

/* A client has asked, and the engine has the request. */
static void ask(struct wire **client, struct wire **engine)
{
    proxy_world_open(&world, &(struct proxy_world_config){.replicas = 1, .quiet = true});
    *client = proxy_world_connect(&world, PROXY_PORT_CLIENT);
    proxy_world_send(&world, *client,
                     SLICE("POST /v1/completions HTTP/1.1\r\nHost: g\r\n"
                           "Content-Length: 26\r\n\r\n{\"model\":\"m\",\"prompt\":\"x\"}"));
    *engine = proxy_world_find(&world, SLICE("1a"));
    proxy_world_accept(&world, *engine, 0);
    buf_clear(&sent);
}

/* `count` blocks of 128 KiB, each compressed to a few bytes, come at once to a client reading at
 * once. */
static void blocks(unsigned count, uint64_t waits)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                               "Content-Encoding: zstd\r\n\r\n\x28\xb5\x2f\xfd\x00\x50",
                      block[] = "\x02\x00\x10x", last[] = "\x01\x00\x00";
    struct wire *client, *engine;
    ask(&client, &engine);
    CHECK(buf_append(&sent, head, sizeof head - 1) == 0);
    for (unsigned i = 0; i < count; i++)
        CHECK(buf_append(&sent, block, sizeof block - 1) == 0);
    CHECK(buf_append(&sent, last, sizeof last - 1) == 0);
    proxy_world_send(&world, engine, buf_slice(&sent));
    proxy_world_end(&world, engine, false);
    for (unsigned i = 0; i < waits; i++) {
        const struct proxy_stats *stats = proxy_stats(world.proxy);
        assert_int_equal(stats->unpack_waits, i + 1);
        assert_int_equal(stats->requests_open, 1);
        assert_true(client->out.len < (i + 1) * (EXCHANGE_UNPACK_TURN_BYTES + 3 * 65536));
        proxy_world_wait(&world, PROXY_TICK_MS);
    }
    assert_int_equal(proxy_stats(world.proxy)->unpack_waits, waits);
    assert_int_equal(proxy_stats(world.proxy)->requests_open, 0);
    assert_true(client->out.len > count * 131072);
    assert_int_equal(proxy_body_bytes(world.proxy), 0);
    proxy_world_close(&world);
    buf_free(&sent);
}

static void a_write_decodes_at_most_a_mebibyte(void **state)
{
    (void)state;
    blocks(1, 0);
    blocks(7, 0);
    blocks(9, 1);
    blocks(31, 3);
}

/* The client is behind, the decoder has all input, and part of the output is not out yet. This part
 * is sent when the client has read, though the engine sends nothing more for now. */
static void decoded_bytes_are_sent_without_more_input(void **state)
{
    (void)state;
    static const char *const framings[] = {"Content-Length: 21\r\n\r\n",
                                           "Transfer-Encoding: chunked\r\n\r\n12\r\n", "\r\n"};
    static const char *const ends[] = {"\x01", "\r\n3\r\n\x01", "\x01"};
    static const char blocks_3[] =
        "\x28\xb5\x2f\xfd\x00\x50\x02\x00\x10x\x02\x00\x10y\x02\x00\x10z";
    for (unsigned framing = LENGTH; framing <= CLOSE; framing++) {
        struct wire *client, *engine;
        ask(&client, &engine);
        proxy_world_room(&world, client, 0);
        put(&sent, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: zstd\r\n");
        put(&sent, framings[framing]);
        CHECK(buf_append(&sent, blocks_3, sizeof blocks_3 - 1) == 0);
        proxy_world_send(&world, engine, buf_slice(&sent));
        assert_true(proxy_body_bytes(world.proxy) > PROXY_OUT_BYTES_HIGH);
        proxy_world_room(&world, client, SIZE_MAX);
        assert_true(client->out.len > 3 * 131072);
        buf_clear(&sent);
        put(&sent, ends[framing]);
        CHECK(buf_append(&sent, "\0\0", 2) == 0);
        put(&sent, framing == CHUNKED ? "\r\n0\r\n\r\n" : "");
        proxy_world_send(&world, engine, buf_slice(&sent));
        if (framing == CLOSE)
            proxy_world_end(&world, engine, false);
        assert_int_equal(proxy_stats(world.proxy)->requests_open, 0);
        struct session s = {.client = client};
        struct buf body = {0};
        assert_true(got(&s, &body));
        assert_int_equal(body.len, 3 * 131072);
        assert_int_equal(body.at[body.len - 1], 'z');
        buf_free(&body);
        proxy_world_close(&world);
    }
    buf_free(&sent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decoded_bytes_are_sent_without_more_input),
        cmocka_unit_test(a_write_decodes_at_most_a_mebibyte),
        cmocka_unit_test(answers_are_decompressed_unchanged),
    };
    return cmocka_run_group_tests_name("packed", tests, NULL, NULL);
}
