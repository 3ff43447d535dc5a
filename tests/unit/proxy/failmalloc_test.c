/* Requests while memory runs out: whichever allocation fails, nothing crashes, nothing is left,
 * every booking is released, and the next client is served. */
#include "tests/lib/failmalloc.h"

#include <stdio.h>

#include "base/check.h"
#include "base/err.h"
#include "node/kv/readers.h"
#include "node/route/policy.h"
#include "tests/lib/proxy_hosts.h"
#include "tests/lib/test.h"
#include "tests/lib/world/memory.h"
#include "tests/lib/zmtp.h"

static struct proxy_world world;
static size_t answered[WORLD_WIRES_MAX]; /* answered bytes of each replica's input */

static void open_world(const struct proxy_world_config *config)
{
    failmalloc_spare(true);
    memset(answered, 0, sizeof answered);
    proxy_world_open(&world, config);
    failmalloc_spare(false);
}

static void send(struct wire *wire, const char *text)
{
    if (wire != NULL && wire->used && !wire->closing && !wire->connecting)
        proxy_world_send(&world, wire, slice_of_cstr(text));
}

static bool has(const char *at, size_t len, const char *text)
{
    return memmem(at, len, text, strlen(text)) != NULL;
}

/* The answers of an engine with a required key: it refuses the router's model requests, and answers
 * the client's. */
static const char *engine_answer(const char *at, size_t len)
{
    bool health = has(at, len, "/health");
    if (health ? has(at, len, "Bearer k") : has(at, len, "/metrics"))
        return "HTTP/1.1 200 OK\r\n\r\n"; /* the body lasts until the engine closes */
    if (has(at, len, "/v1/models") && has(at, len, "Bearer b"))
        return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2d\r\n"
               "{\"object\":\"list\",\"data\":[{\"id\":\"m\",\"x\":100}]}\r\n0\r\n\r\n";
    return "HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\n{}";
}

/* Every replica accepts all connections, and sends `answer` for each received head. NULL:
 * engine_answer(). */
static void serve(const char *answer)
{
    for (unsigned round = 0; round < 8; round++) {
        for (unsigned i = 0; i < world.wire_count; i++) {
            struct wire *wire = &world.wires[i];
            if (wire->replica < 0)
                continue;
            if (wire->connecting)
                proxy_world_accept(&world, wire, 0);
            const char *head =
                answered[i] < wire->out.len
                    ? memmem(wire->out.at + answered[i], wire->out.len - answered[i], "\r\n\r\n", 4)
                    : NULL;
            if (head == NULL)
                continue;
            const char *own =
                engine_answer(wire->out.at + answered[i], wire->out.len - answered[i]);
            answered[i] = wire->out.len;
            send(wire, answer != NULL ? answer : own);
            if (answer == NULL && strstr(own, "Content-Length") == NULL)
                proxy_world_end(&world, wire, false);
        }
    }
}

static bool client_has(const struct wire *wire, const char *text)
{
    return wire != NULL && wire->out.len > 0 &&
           memmem(wire->out.at, wire->out.len, text, strlen(text)) != NULL;
}

static const char ask[] = "POST /v1/completions HTTP/1.1\r\nHost: g\r\nContent-Length: 26\r\n\r\n"
                          "{\"model\":\"m\",\"prompt\":\"x\"}";
static const char yes[] = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                          "Content-Length: 11\r\n\r\n{\"id\":\"r1\"}";

/* With enough memory, a new client gets an answer. */
static void recover_and_close(void)
{
    failmalloc_enough();
    proxy_world_wait(&world, 70000);
    struct wire *client = proxy_world_connect(&world, PROXY_PORT_CLIENT);
    assert_non_null(client);
    send(client, ask);
    serve(yes);
    assert_true(client_has(client, "{\"id\":\"r1\"}"));
    proxy_world_close(&world);
}

static const char *const no_limits[] = {"other-paths", "pass", "client-idle-timeout", "1s", NULL};
static const struct proxy_world_config two = {
    .replicas = 2, .engine = NODE_ENGINE_VLLM, .quiet = true, .settings = no_limits, .seed = 1};

/* In pieces both ways; the kernels take few bytes at a time. */
static void a_chat(bool may_fail)
{
    open_world(&two);
    struct wire *client = proxy_world_connect(&world, PROXY_PORT_CLIENT);
    send(client, "POST /v1/completions HTTP/1.1\r\nHost: g\r\nTransfer-Enc");
    send(client, "oding: chunked\r\n\r\n1a\r\n{\"model\":\"m\",\"prompt\":\"x\"}\r\n0");
    send(client, "\r\n\r\nGET /v1/respon");
    for (unsigned i = 0; i < world.wire_count; i++) {
        if (world.wires[i].replica >= 0)
            proxy_world_room(&world, &world.wires[i], 40);
    }
    serve("");
    for (unsigned i = 0; i < world.wire_count; i++)
        proxy_world_room(&world, &world.wires[i], SIZE_MAX);
    if (client != NULL)
        proxy_world_room(&world, client, 10);
    serve("HTTP/1.1 200 OK\r\nTransfer-Encoding: chu");
    for (unsigned i = 0; i < world.wire_count; i++) {
        if (world.wires[i].replica >= 0)
            send(&world.wires[i],
                 "nked\r\nContent-Type: text/event-stream\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
    }
    if (client != NULL)
        proxy_world_room(&world, client, SIZE_MAX);
    send(client, "ses/r1 HTTP/1.1\r\nHost: g\r\n\r\n");
    serve(yes);
    assert_true(may_fail || client_has(client, "5\r\nhello\r\n"));
    assert_true(may_fail || client_has(client, "{\"id\":\"r1\"}"));
    recover_and_close();
}

/* A body read straight into the final place. */
static void an_upload(bool may_fail)
{
    static char body[20000];
    open_world(&two);
    struct wire *client = proxy_world_connect(&world, PROXY_PORT_CLIENT);
    memset(body, 'x', sizeof body - 1);
    send(client, "PUT /upload HTTP/1.1\r\nHost: g\r\nExpect: 100-continue\r\n"
                 "Content-Length: 19999\r\n\r\n");
    serve("");
    send(client, body);
    serve("");
    for (unsigned i = 0; i < world.wire_count; i++) {
        if (world.wires[i].replica >= 0)
            send(&world.wires[i], yes);
    }
    assert_true(may_fail || client_has(client, "{\"id\":\"r1\"}"));
    recover_and_close();
}

/* An answer, held back, judged and passed on. */
/* A decoded answer, by parts: 512 KiB from a few bytes, to a client that does not read at first. */
static void a_packed_answer(bool may_fail)
{
    static const struct slice answer =
        SLICE("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: zstd\r\n"
              "Content-Length: 25\r\n\r\n\x28\xb5\x2f\xfd\x00\x50\x02\x00\x10x\x02\x00\x10x"
              "\x02\x00\x10x\x02\x00\x10y\x01\x00\x00");
    open_world(&two);
    struct wire *client = proxy_world_connect(&world, PROXY_PORT_CLIENT);
    send(client, ask);
    serve("");
    if (client != NULL && !client->closing)
        proxy_world_room(&world, client, 0);
    for (unsigned i = 0; i < world.wire_count; i++) {
        struct wire *wire = &world.wires[i];
        if (wire->replica >= 0 && wire->used && !wire->closing && !wire->connecting)
            proxy_world_send(&world, wire, answer);
    }
    if (client != NULL && !client->closing)
        proxy_world_room(&world, client, SIZE_MAX);
    assert_true(may_fail || client_has(client, "yyyy"));
    recover_and_close();
}

static void an_unknown_model(bool may_fail)
{
    open_world(&two);
    struct wire *client = proxy_world_connect(&world, PROXY_PORT_CLIENT);
    send(client, ask);
    serve("HTTP/1.1 404 Not Found\r\nContent-Length: 46\r\n\r\n"
          "{\"error\":{\"message\":\"?\",\"param\":\"model\",\"n\":1}}");
    assert_true(may_fail || client_has(client, "\"n\":1"));
    recover_and_close();
}

static void the_routers_own_errors(bool may_fail)
{
    open_world(&two);
    struct wire *a = proxy_world_connect(&world, PROXY_PORT_CLIENT);
    struct wire *b = proxy_world_connect(&world, PROXY_PORT_CLIENT);
    struct wire *admin = proxy_world_connect(&world, PROXY_PORT_ADMIN);
    send(a, "GET /v1/chat/completions HTTP/1.1\r\nHost: g\r\n\r\nnonsense\r\n\r\n");
    send(b, "POST /v1/completions HTTP/1.1\r\nHost: g\r\n");
    send(admin, "GET /metrics HTTP/1.1\r\nHost: g\r\n\r\n");
    proxy_world_wait(&world, 11000);
    assert_true(may_fail || (client_has(a, "405") && client_has(b, "408")));
    assert_true(may_fail || client_has(admin, "# none"));
    recover_and_close();
}

/* Probes, and engines that list models only to clients. */
static void models(bool may_fail)
{
    static const struct proxy_world_config probed = {.replicas = 2,
                                                     .names = true,
                                                     .probes = true,
                                                     .key = "k",
                                                     .quiet = true,
                                                     .settings = no_limits,
                                                     .seed = 1};
    static const char question[] =
        "GET /v1/models HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer b\r\n\r\n";
    open_world(&probed);
    proxy_hosts_resolved(&world, 0, (const unsigned[]){1, 2}, 2, false);
    proxy_hosts_resolved(&world, 1, (const unsigned[]){1, 2}, 2, false);
    proxy_world_wait(&world, 100);
    for (unsigned i = 0; i < world.wire_count; i++)
        proxy_world_accept(&world, &world.wires[i], i == 0 ? ERR_CLOSED : 0);
    for (unsigned i = 0; i < 20; i++) {
        serve(NULL);
        proxy_world_wait(&world, 100);
    }
    struct wire *client = proxy_world_connect(&world, PROXY_PORT_CLIENT);
    send(client, question);
    serve(NULL);
    proxy_world_wait(&world, 100);
    assert_true(may_fail || client_has(client, "\"id\":\"m\""));
    failmalloc_enough();
    proxy_world_close(&world);
}

static int kv_open(void *context, unsigned feed, struct slice endpoint, struct slice replay,
                   struct slice topic)
{
    (void)context, (void)feed, (void)endpoint, (void)replay, (void)topic;
    return ERR_OK;
}

static void kv_close(void *context, unsigned feed)
{
    (void)context, (void)feed;
}

static uint64_t kv_malformed(void *context, unsigned feed)
{
    (void)context, (void)feed;
    return 0;
}

static const struct kv_readers_shell kv_shell = {
    .open = kv_open, .close = kv_close, .malformed = kv_malformed};

static void with_events(void *context, struct node_config *node)
{
    (void)context;
    node->kv = &kv_shell;
}

/* The engine publishes two messages. */
static void an_engine_that_connects(bool may_fail)
{
    static const struct proxy_world_config config = {
        .replicas = 2, .quiet = true, .settings = no_limits, .seed = 1, .shape = with_events};
    open_world(&config);
    struct kv_reading_row row;
    (void)snprintf(world.peer, sizeof world.peer, "10.0.0.1");
    struct wire *engine = proxy_world_connect(&world, PROXY_PORT_EVENTS);
    world.peer[0] = '\0';
    struct buf bytes = {.at = NULL};
    failmalloc_spare(true);
    assert_int_equal(buf_append(&bytes, ZMTP_GREETING, ZMTP_GREETING_BYTES), 0);
    assert_int_equal(buf_append_slice(&bytes, ZMTP_READY), 0);
    zmtp_message(&bytes, SLICE(""), 0, SLICE("\x93\xcb\x41\xda\x22\xfa\xa0\x20\x00\x00\x90\x00"));
    zmtp_message(&bytes, SLICE(""), 1, SLICE("\x93\xcb\x41\xda\x22\xfa\xa0\x20\x00\x00\x90\x00"));
    failmalloc_spare(false);
    if (engine != NULL)
        proxy_world_send(&world, engine, buf_slice(&bytes));
    bool reads = kv_readers_row(world.node->kv_readers, 0, &row);
    assert_true(may_fail || (reads && row.stats.feed.messages == 2));
    buf_free(&bytes);
    failmalloc_enough();
    proxy_world_wait(&world, 1000);
    proxy_world_close(&world);
}

/* The proxy is created without memory, and accepts more clients than fit in memory. */
static void created(bool may_fail)
{
    static struct node_options options;
    failmalloc_spare(true);
    assert_int_equal(node_options_init(&options), 0);
    failmalloc_spare(false);
    struct proxy_config config = {.options = &options};
    struct proxy *proxy;
    int err = proxy_create(&proxy, &config, 0);
    assert_true(err == 0 || (may_fail && err == ERR_NOMEM));
    if (err == 0) {
        err = proxy_start(proxy, 0);
        assert_true(err == 0 || (may_fail && err == ERR_NOMEM));
        proxy_stop(proxy, 0);
        proxy_destroy(proxy);
    }
    node_options_free(&options);
}

#define EACH(name)                                                                                 \
    static void test_##name(void **state)                                                          \
    {                                                                                              \
        (void)state;                                                                               \
        print_message("%u allocations\n", failmalloc_each(name));                                  \
    }
EACH(a_chat)
EACH(a_packed_answer)
EACH(an_upload)
EACH(an_unknown_model)
EACH(the_routers_own_errors)
EACH(models)
EACH(created)
EACH(an_engine_that_connects)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_created),
        cmocka_unit_test(test_a_chat),
        cmocka_unit_test(test_an_upload),
        cmocka_unit_test(test_an_unknown_model),
        cmocka_unit_test(test_the_routers_own_errors),
        cmocka_unit_test(test_models),
        cmocka_unit_test(test_a_packed_answer),
        cmocka_unit_test(test_an_engine_that_connects),
    };
    world_spare_by = failmalloc_spare;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
