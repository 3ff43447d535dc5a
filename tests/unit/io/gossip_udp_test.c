/* Datagrams refused by a full kernel wait, in order, up to a limit. */
#include "tests/lib/test.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "node/io/gossip_internal.h"

enum { LEN = 1000 };

static uv_loop_t loop;
static struct io_gossip *g;
static uv_udp_send_t first;
static int receiver;
static struct gossip_address to;

static int setup(void **state)
{
    (void)state;
    struct sockaddr_in at;
    socklen_t len = sizeof at;
    g = calloc(1, sizeof *g);
    receiver = socket(AF_INET, SOCK_DGRAM, 0);
    if (g == NULL || receiver < 0 || uv_loop_init(&loop) != 0 ||
        uv_ip4_addr("127.0.0.1", 0, &at) != 0 || uv_udp_init(&loop, &g->udp) != 0 ||
        uv_udp_bind(&g->udp, (struct sockaddr *)&at, 0) != 0 ||
        bind(receiver, (struct sockaddr *)&at, sizeof at) != 0 ||
        getsockname(receiver, (struct sockaddr *)&at, &len) != 0)
        return -1;
    CHECK(io_address_from(&to, (struct sockaddr *)&at));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    if (!uv_is_closing((uv_handle_t *)&g->udp))
        uv_close((uv_handle_t *)&g->udp, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(g->queue_bytes, 0);
    assert_int_equal(uv_loop_close(&loop), 0);
    free(g);
    return close(receiver);
}

static void send_one(uint8_t number)
{
    uint8_t bytes[LEN] = {number};
    io_udp_send(g, &to, bytes, sizeof bytes);
}

/* libuv takes no other datagram before this datagram is reported, as with a full kernel. */
static void fill(void)
{
    static uint8_t bytes[LEN];
    struct sockaddr_storage at;
    uv_buf_t iov = uv_buf_init((char *)bytes, sizeof bytes);
    assert_true(io_address_to(&at, &to, false));
    assert_int_equal(uv_udp_send(&first, &g->udp, &iov, 1, (struct sockaddr *)&at, NULL), 0);
}

static void queued_datagrams_are_sent_in_order(void **state)
{
    (void)state;
    send_one(0); /* at once */
    assert_int_equal(g->stats.send_queued, 0);
    fill();
    send_one(1);
    send_one(2);
    assert_int_equal(g->stats.send_queued, 2);
    assert_int_equal(g->queue_bytes, 2 * LEN);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(g->queue_bytes, 0);
    static const uint8_t want[] = {0, 0, 1, 2};
    for (size_t i = 0; i < sizeof want; i++) {
        uint8_t got[2 * LEN];
        assert_int_equal(recv(receiver, got, sizeof got, 0), LEN);
        assert_int_equal(got[0], want[i]);
    }
    assert_int_equal(g->stats.send_errors + g->stats.send_dropped, 0);
}

static void datagrams_beyond_the_limit_are_dropped(void **state)
{
    (void)state;
    fill();
    unsigned fit = IO_UDP_QUEUE_BYTES / LEN;
    for (unsigned i = 0; i < fit + 3; i++)
        send_one(1);
    assert_int_equal(g->stats.send_queued, fit);
    assert_int_equal(g->stats.send_dropped, 3);
    assert_int_equal(g->queue_bytes, fit * LEN);
}

static void queued_datagrams_are_freed_at_the_end(void **state)
{
    (void)state;
    fill();
    send_one(1);
    uv_close((uv_handle_t *)&g->udp, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(g->queue_bytes, 0);
    assert_int_equal(g->stats.send_errors, 0);
}

static void send_errors_are_counted(void **state)
{
    (void)state;
    struct gossip_address nowhere = to, other_kind = {.family = 6, .port = 7};
    nowhere.port = 0;
    io_udp_send(g, &nowhere, (const uint8_t *)"x", 1);
    io_udp_send(g, &other_kind, (const uint8_t *)"x", 1);
    static uint8_t huge[70000]; /* EMSGSIZE */
    io_udp_send(g, &to, huge, sizeof huge);
    assert_int_equal(g->stats.send_errors, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(queued_datagrams_are_sent_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(datagrams_beyond_the_limit_are_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(queued_datagrams_are_freed_at_the_end, setup, teardown),
        cmocka_unit_test_setup_teardown(send_errors_are_counted, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
