/* A feed's sockets against libzmq's own publisher, as in vLLM. */
#include "node/io/kv_feed.h"

#include <stdio.h>

#include <zmq.h>

#include "tests/lib/test.h"

enum { STEPS = 4000 }; /* each at least a millisecond, until something counts as lost */

static uv_loop_t loop;
static void *ours, *engines;     /* libzmq's contexts */
static void *publisher, *router; /* the engine's sockets */
static char endpoint[64], asked_at[64];
static struct io_kv_feed *feed;
static char heard[8192]; /* c connected, N message, rN replayed message, e the replay's end */
static unsigned lives;
static uint64_t last;

static void note(const char *format, uint64_t number)
{
    size_t len = strlen(heard);
    (void)snprintf(heard + len, sizeof heard - len, format, (unsigned)number);
}

static void on_connected(void *context)
{
    (void)context;
    note("c ", 0);
}

static unsigned losses;

static void on_lost(void *context)
{
    (void)context;
    losses++;
}

static void on_live(void *context, uint64_t number, struct slice payload)
{
    (void)context;
    lives++;
    last = number;
    if (payload.len < 100)
        note("%u ", number);
}

static void on_replayed(void *context, uint64_t number, struct slice payload)
{
    (void)context;
    assert_true(payload.len > 0);
    note("r%u ", number);
}

static void on_replay_ended(void *context)
{
    (void)context;
    note("e ", 0);
}

static const struct io_kv_feed_user user = {on_connected, on_lost,         on_live,
                                            on_replayed,  on_replay_ended, NULL};

static void bind_to(void *socket, char *at, size_t size)
{
    assert_int_equal(zmq_bind(socket, at[0] != '\0' ? at : "tcp://127.0.0.1:*"), 0);
    assert_int_equal(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, at, &size), 0);
}

static void *socket_of(int type)
{
    int none = 0;
    void *socket = zmq_socket(engines, type);
    assert_non_null(socket);
    assert_int_equal(zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof none), 0);
    return socket;
}

static int setup(void **state)
{
    (void)state;
    heard[0] = endpoint[0] = asked_at[0] = '\0';
    lives = 0;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(io_kv_open(&ours), 0);
    engines = zmq_ctx_new();
    publisher = socket_of(ZMQ_PUB);
    router = socket_of(ZMQ_ROUTER);
    bind_to(publisher, endpoint, sizeof endpoint);
    bind_to(router, asked_at, sizeof asked_at);
    return 0;
}

static void end_feed(void)
{
    io_kv_feed_close(feed);
    while (uv_run(&loop, UV_RUN_NOWAIT) != 0)
        ;
}

static int teardown(void **state)
{
    (void)state;
    assert_int_equal(uv_loop_close(&loop), 0);
    io_kv_close(ours);
    assert_int_equal(zmq_close(publisher), 0);
    assert_int_equal(zmq_close(router), 0);
    assert_int_equal(zmq_ctx_term(engines), 0);
    return 0;
}

static bool is_heard(const void *text)
{
    return strcmp(heard, text) == 0;
}

static bool has_begun(const void *text)
{
    return strncmp(heard, text, strlen(text)) == 0;
}

static bool all_live(const void *count)
{
    return lives == *(const unsigned *)count;
}

static void until(bool (*condition)(const void *), const void *what)
{
    for (unsigned i = 0; i < STEPS && !condition(what); i++) {
        (void)uv_run(&loop, UV_RUN_NOWAIT);
        uv_sleep(1);
    }
    if (!condition(what))
        fail_msg("heard: %s", heard);
}

static void part(void *socket, struct slice bytes, bool more)
{
    assert_true(zmq_send(socket, bytes.at, bytes.len, more ? ZMQ_SNDMORE : 0) >= 0);
}

static struct slice number_of(uint64_t number)
{
    static char bytes[8];
    for (unsigned i = 0; i < 8; i++)
        bytes[i] = (char)(number >> (56 - 8 * i));
    return slice_of(bytes, 8);
}

static void publish(uint64_t number, struct slice payload)
{
    part(publisher, SLICE("kv"), true);
    part(publisher, number_of(number), true);
    part(publisher, payload, false);
}

static void open_feed(struct slice topic)
{
    assert_int_equal(io_kv_feed_open(&feed, &loop, ours, slice_of_cstr(endpoint),
                                     slice_of_cstr(asked_at), topic, &user),
                     0);
    until(is_heard, "c ");
    /* The publisher accepts the subscription a moment later, and does not report it. */
    for (unsigned i = 0; i < STEPS && lives == 0; i++) {
        publish(7, SLICE("first"));
        (void)uv_run(&loop, UV_RUN_NOWAIT);
        uv_sleep(1);
    }
    for (unsigned i = 0; i < 20; i++) {
        (void)uv_run(&loop, UV_RUN_NOWAIT);
        uv_sleep(1);
    }
    heard[0] = '\0';
    lives = 0;
}

static void test_messages_arrive_in_order(void **state)
{
    (void)state;
    unsigned many = 3 * IO_KV_AT_ONCE + 5;
    open_feed(SLICE("kv"));
    publish(0, SLICE("a")), publish(1, SLICE("b")), publish(UINT32_MAX, SLICE("c"));
    until(is_heard, "0 1 4294967295 ");
    heard[0] = '\0';
    lives = 0;
    for (unsigned i = 0; i < many; i++) /* more than are read at once */
        publish(i, SLICE("x"));
    until(all_live, &many);
    assert_int_equal(last, many - 1);
    end_feed();
}

static void test_malformed_messages_are_counted(void **state)
{
    (void)state;
    open_feed(SLICE("kv"));
    part(publisher, SLICE("kv"), true), part(publisher, number_of(1), false);
    part(publisher, SLICE("kv"), true), part(publisher, SLICE("1234567"), true);
    part(publisher, SLICE("x"), false);
    publish(2, SLICE(""));
    for (unsigned i = 0; i < 6; i++)
        part(publisher, SLICE("kv"), i < 5);
    part(publisher, SLICE("other"), false); /* another topic: libzmq drops it */
    publish(3, SLICE("x"));
    until(is_heard, "3 ");
    assert_int_equal(io_kv_feed_stats(feed).malformed, 4);
    end_feed();
}

/* Answers the replay request: messages from the requested number up to `to`. */
static bool answer(uint64_t to, bool has_topic)
{
    char who[16];
    unsigned char bytes[8];
    int len = zmq_recv(router, who, sizeof who, ZMQ_DONTWAIT);
    if (len < 0)
        return false;
    assert_int_equal(zmq_recv(router, bytes, 8, 0), 0); /* the empty part */
    assert_int_equal(zmq_recv(router, bytes, 8, 0), 8);
    uint64_t from = 0;
    for (unsigned i = 0; i < 8; i++)
        from = from << 8 | bytes[i];
    for (uint64_t n = from; n <= to + 1; n++) {
        part(router, slice_of(who, (size_t)len), true);
        part(router, SLICE(""), true);
        if (has_topic)
            part(router, n <= to ? SLICE("kv") : SLICE(""), true);
        part(router, number_of(n <= to ? n : UINT64_MAX), true);
        part(router, n <= to ? SLICE("x") : SLICE(""), false);
    }
    return true;
}

static void until_answered(uint64_t to, bool has_topic)
{
    bool answered = false;
    for (unsigned i = 0; i < STEPS && !answered; i++) {
        (void)uv_run(&loop, UV_RUN_NOWAIT);
        uv_sleep(1);
        answered = answer(to, has_topic);
    }
    assert_true(answered);
}

static void test_replays_in_both_forms(void **state)
{
    (void)state;
    open_feed(SLICE(""));
    for (unsigned has_topic = 0; has_topic < 2; has_topic++) {
        heard[0] = '\0';
        assert_int_equal(io_kv_feed_replay(feed, 5), 0);
        until_answered(7, has_topic == 1);
        until(is_heard, "r5 r6 r7 e ");
    }
    heard[0] = '\0';
    assert_int_equal(io_kv_feed_replay(feed, 1), 0);
    assert_int_equal(io_kv_feed_replay(feed, 9), 0); /* the first replay is given up */
    for (unsigned i = 0; i < 100; i++) {
        (void)answer(9, true);
        (void)uv_run(&loop, UV_RUN_NOWAIT);
        uv_sleep(1);
    }
    until(is_heard, "r9 e ");
    end_feed();
}

static void test_a_lost_feed_reconnects(void **state)
{
    (void)state;
    open_feed(SLICE(""));
    losses = 0;
    assert_int_equal(zmq_close(publisher), 0);
    for (unsigned i = 0; i < 50; i++) {
        (void)uv_run(&loop, UV_RUN_NOWAIT);
        uv_sleep(1);
    }
    publisher = socket_of(ZMQ_PUB);
    bind_to(publisher, endpoint, sizeof endpoint);
    until(has_begun, "c ");
    assert_int_equal(io_kv_feed_stats(feed).connects, 2);
    assert_true(losses > 0);
    end_feed();
}

static void test_an_oversized_message_ends_the_connection(void **state)
{
    (void)state;
    char *large = calloc(1, IO_KV_MESSAGE_MAX + 1);
    assert_non_null(large);
    open_feed(SLICE(""));
    publish(1, slice_of(large, IO_KV_MESSAGE_MAX + 1));
    until(has_begun, "c "); /* the feed is opened again */
    assert_int_equal(lives, 0);
    end_feed();
    free(large);
}

static void test_no_endpoint(void **state)
{
    (void)state;
    static const char *const none[] = {"engine", "tcp://", "tcp://127.0.0.1", "udp://a:1"};
    for (unsigned i = 0; i < sizeof none / sizeof *none; i++) {
        assert_int_equal(io_kv_feed_open(&feed, &loop, ours, slice_of_cstr(none[i]), SLICE(""),
                                         SLICE(""), &user),
                         ERR_SYNTAX);
        while (uv_run(&loop, UV_RUN_NOWAIT) != 0)
            ;
    }
}

/* The engine connects elsewhere, and answers replays here. */
static void test_replays_alone(void **state)
{
    (void)state;
    assert_int_equal(
        io_kv_feed_open(&feed, &loop, ours, SLICE(""), slice_of_cstr(asked_at), SLICE(""), &user),
        0);
    assert_int_equal(io_kv_feed_replay(feed, 3), 0);
    until_answered(4, true);
    until(is_heard, "r3 r4 e ");
    end_feed();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_messages_arrive_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_malformed_messages_are_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(test_replays_in_both_forms, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_lost_feed_reconnects, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_oversized_message_ends_the_connection, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_no_endpoint, setup, teardown),
        cmocka_unit_test_setup_teardown(test_replays_alone, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
