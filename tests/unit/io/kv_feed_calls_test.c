/* A feed's sockets with rare results of libzmq's calls, and of the clock: the linker puts the
 * functions of this file in front of libzmq's. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <zmq.h>

#include "node/io/kv_feed.h"
#include "tests/lib/test.h"

enum { STEPS = 4000 }; /* each at least a millisecond */

static uv_loop_t loop;
static void *ours;
static struct io_kv_feed *feed;
static unsigned connected, lives;

/* --- functions in front of libzmq and the clock ----------------------------------------------- */

static bool interrupts; /* a signal interrupts every second call */
static bool second;
static unsigned connects;    /* to an engine */
static uint64_t time_by = 1; /* how much sooner the awaited time comes */

static bool interrupted(void)
{
    second = interrupts && !second;
    errno = second ? EINTR : errno;
    return second;
}

#define WRAP(name, parameters, arguments)                                                          \
    int __real_##name parameters;                                                                  \
    int __wrap_##name parameters;                                                                  \
    int __wrap_##name parameters                                                                   \
    {                                                                                              \
        return interrupted() ? -1 : __real_##name arguments;                                       \
    }

/* A subscription that never runs out of messages. */
enum { FLOOD_BYTES = 300 << 10 };
static bool floods;
static unsigned parts; /* of the received message */

int __real_zmq_getsockopt(void *socket, int option, void *value, size_t *len);
int __real_zmq_msg_recv(zmq_msg_t *part, void *socket, int flags);
int __wrap_zmq_msg_recv(zmq_msg_t *part, void *socket, int flags);
int __wrap_zmq_msg_recv(zmq_msg_t *part, void *socket, int flags)
{
    static const size_t sizes[] = {1, 8, FLOOD_BYTES};
    int type = ZMQ_PAIR;
    size_t len = sizeof type;
    if (interrupted())
        return -1;
    if (!floods || __real_zmq_getsockopt(socket, ZMQ_TYPE, &type, &len) != 0 || type != ZMQ_SUB)
        return __real_zmq_msg_recv(part, socket, flags);
    size_t size = sizes[parts++ % 3];
    assert_int_equal(zmq_msg_init_size(part, size), 0);
    memset(zmq_msg_data(part), 0, size);
    return (int)size;
}

int __real_zmq_msg_more(const zmq_msg_t *part);
int __wrap_zmq_msg_more(const zmq_msg_t *part);
int __wrap_zmq_msg_more(const zmq_msg_t *part)
{
    return floods ? parts % 3 != 0 : __real_zmq_msg_more(part);
}

WRAP(zmq_send, (void *socket, const void *bytes, size_t len, int flags),
     (socket, bytes, len, flags))
WRAP(zmq_socket_monitor, (void *socket, const char *endpoint, int events),
     (socket, endpoint, events))
WRAP(zmq_setsockopt, (void *socket, int option, const void *value, size_t len),
     (socket, option, value, len))
WRAP(zmq_getsockopt, (void *socket, int option, void *value, size_t *len),
     (socket, option, value, len))
WRAP(zmq_ctx_term, (void *context), (context))

int __real_zmq_connect(void *socket, const char *endpoint);
int __wrap_zmq_connect(void *socket, const char *endpoint);
int __wrap_zmq_connect(void *socket, const char *endpoint)
{
    connects += strncmp(endpoint, "tcp:", 4) == 0;
    return interrupted() ? -1 : __real_zmq_connect(socket, endpoint);
}

int __real_uv_timer_start(uv_timer_t *timer, uv_timer_cb cb, uint64_t timeout, uint64_t repeat);
int __wrap_uv_timer_start(uv_timer_t *timer, uv_timer_cb cb, uint64_t timeout, uint64_t repeat);
int __wrap_uv_timer_start(uv_timer_t *timer, uv_timer_cb cb, uint64_t timeout, uint64_t repeat)
{
    return __real_uv_timer_start(timer, cb, timeout / time_by, repeat);
}

/* --- a feed ---------------------------------------------------------------------------------- */

static void on_connected(void *context)
{
    (void)context;
    connected++;
}

static void on_lost(void *context)
{
    (void)context;
}

static void on_live(void *context, uint64_t number, struct slice payload)
{
    (void)context, (void)number, (void)payload;
    lives++;
}

static void on_replay_ended(void *context)
{
    (void)context;
}

static const struct io_kv_feed_user user = {on_connected, on_lost,         on_live,
                                            on_live,      on_replay_ended, NULL};

static int setup(void **state)
{
    (void)state;
    connected = lives = connects = 0;
    time_by = 1;
    interrupts = second = floods = false;
    parts = 0;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(io_kv_open(&ours), 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    io_kv_feed_close(feed);
    while (uv_run(&loop, UV_RUN_NOWAIT) != 0)
        ;
    assert_int_equal(uv_loop_close(&loop), 0);
    io_kv_close(ours);
    return 0;
}

static void until(const unsigned *count, unsigned least)
{
    for (unsigned i = 0; i < STEPS && *count < least; i++) {
        (void)uv_run(&loop, UV_RUN_NOWAIT);
        uv_sleep(1);
    }
    assert_true(*count >= least);
}

/* --- tests ----------------------------------------------------------------------------------- */

/* libzmq does not report some failures, such as an unresolved name, or, as here, a peer that
 * accepts the connection and stays silent. */
static void an_unanswered_connect_is_retried(void **state)
{
    (void)state;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int silent = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(silent >= 0 && bind(silent, (struct sockaddr *)&at, len) == 0 &&
                listen(silent, 8) == 0 && getsockname(silent, (struct sockaddr *)&at, &len) == 0);
    char endpoint[64];
    (void)snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%u", ntohs(at.sin_port));
    time_by = 200;
    assert_int_equal(
        io_kv_feed_open(&feed, &loop, ours, slice_of_cstr(endpoint), SLICE(""), SLICE(""), &user),
        ERR_OK);
    until(&connects, 4);
    assert_int_equal(connected, 0);
    (void)close(silent);
}

/* No message is lost, and the feed does not end. */
static void interrupted_calls_are_retried(void **state)
{
    (void)state;
    void *engines = zmq_ctx_new(), *publisher = zmq_socket(engines, ZMQ_XPUB);
    void *router = zmq_socket(engines, ZMQ_ROUTER);
    char endpoint[64], asked_at[64];
    size_t len = sizeof endpoint;
    assert_int_equal(zmq_bind(publisher, "tcp://127.0.0.1:*"), 0);
    assert_int_equal(zmq_getsockopt(publisher, ZMQ_LAST_ENDPOINT, endpoint, &len), 0);
    len = sizeof asked_at;
    assert_int_equal(zmq_bind(router, "tcp://127.0.0.1:*"), 0);
    assert_int_equal(zmq_getsockopt(router, ZMQ_LAST_ENDPOINT, asked_at, &len), 0);
    interrupts = true;
    assert_int_equal(io_kv_feed_open(&feed, &loop, ours, slice_of_cstr(endpoint),
                                     slice_of_cstr(asked_at), SLICE("t"), &user),
                     ERR_OK);
    until(&connected, 1);
    assert_int_equal(io_kv_feed_replay(feed, 0), ERR_OK);
    interrupts = false;
    char subscription[8]; /* the subscription has come */
    assert_int_equal(zmq_recv(publisher, subscription, sizeof subscription, 0), 2);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(zmq_send(publisher, "t", 1, ZMQ_SNDMORE), 1);
        assert_int_equal(zmq_send(publisher, "12345678", 8, ZMQ_SNDMORE), 8);
        assert_int_equal(zmq_send(publisher, "payload", 7, 0), 7);
    }
    interrupts = true;
    until(&lives, 3);
    assert_int_equal(connects, 4); /* two, each interrupted once */
    interrupts = false;
    assert_int_equal(zmq_recv(router, subscription, sizeof subscription, 0), 5);
    assert_int_equal(zmq_close(router), 0);
    assert_int_equal(zmq_close(publisher), 0);
    assert_int_equal(zmq_ctx_term(engines), 0);
    interrupts = true; /* until the context is closed */
}

/* An endless sender is read in parts, and other work has a turn between them. */
static void a_loop_iteration_reads_limited_bytes(void **state)
{
    (void)state;
    const unsigned in_a_turn = (IO_KV_BYTES_AT_ONCE + FLOOD_BYTES - 1) / FLOOD_BYTES;
    assert_true(in_a_turn < IO_KV_AT_ONCE);
    assert_int_equal(io_kv_feed_open(&feed, &loop, ours, SLICE("tcp://127.0.0.1:1"), SLICE(""),
                                     SLICE(""), &user),
                     ERR_OK);
    floods = true;
    for (unsigned turn = 0; turn < 20; turn++) {
        unsigned before = lives;
        (void)uv_run(&loop, UV_RUN_NOWAIT);
        assert_int_equal(lives - before, in_a_turn);
    }
    assert_int_equal(io_kv_feed_stats(feed).bytes, lives * (uint64_t)FLOOD_BYTES);
    floods = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(interrupted_calls_are_retried, setup, teardown),
        cmocka_unit_test_setup_teardown(a_loop_iteration_reads_limited_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(an_unanswered_connect_is_retried, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
