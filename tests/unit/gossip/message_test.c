/* Messages in parts between two tables of messages, without sessions. */
#include "tests/lib/test.h"

#include "base/err.h"
#include "base/prng.h"
#include "gossip/message.h"

enum { QUEUE = 512, SENDER = 1, RECEIVER = 2 };

static struct wire {
    struct gossip_messages out, in;
    struct gossip_delivered delivered;
    struct prng prng;
    double loss;
    bool held; /* the sender has no budget */
    unsigned parts, resends, measured, failed, delivered_count;
    size_t delivered_len;
    uint64_t now_us;
    struct {
        bool part;
        struct gossip_frame_part p;
        struct gossip_frame_resend r;
    } queue[QUEUE];
    unsigned count;
} wire;

static bool io_part(void *context, uint64_t peer, const struct gossip_frame_part *part, bool again)
{
    (void)context;
    (void)again;
    assert_int_equal(peer, RECEIVER);
    if (wire.held)
        return false;
    wire.parts++;
    if (prng_unit(&wire.prng) >= wire.loss && wire.count < QUEUE) {
        wire.queue[wire.count].part = true;
        wire.queue[wire.count++].p = *part; /* the bytes live as long as the message */
    }
    return true;
}

static bool io_resend(void *context, uint64_t peer, const struct gossip_frame_resend *resend)
{
    (void)context;
    assert_int_equal(peer, SENDER);
    wire.resends++;
    if (prng_unit(&wire.prng) >= wire.loss && wire.count < QUEUE) {
        wire.queue[wire.count].part = false;
        wire.queue[wire.count++].r = *resend;
    }
    return true;
}

static struct gossip_trip io_trip(void *context, uint64_t peer)
{
    (void)context;
    (void)peer;
    return (struct gossip_trip){.smooth_us = 500, .var_us = 100};
}

static void io_measured(void *context, uint64_t peer, uint64_t us)
{
    (void)context;
    (void)us;
    assert_int_equal(peer, RECEIVER);
    wire.measured++;
}

static void io_failed(void *context, uint64_t peer)
{
    (void)context;
    (void)peer;
    wire.failed++;
}

static const struct gossip_message_io io = {.part = io_part,
                                            .resend = io_resend,
                                            .trip = io_trip,
                                            .measured = io_measured,
                                            .failed = io_failed};

static void start(uint64_t in_max, double loss)
{
    memset(&wire, 0, sizeof wire);
    gossip_messages_init(&wire.out, 1 << 20);
    gossip_messages_init(&wire.in, in_max);
    prng_seed(&wire.prng, 5);
    wire.loss = loss;
    wire.now_us = 1;
}

static void stop(void)
{
    gossip_messages_free(&wire.out);
    gossip_messages_free(&wire.in);
}

/* Advances by `ms` milliseconds; packets sent in a millisecond arrive in the next. */
static void pass(unsigned ms)
{
    while (ms-- > 0) {
        unsigned count = wire.count;
        for (unsigned i = 0; i < count; i++) {
            if (!wire.queue[i].part) {
                gossip_messages_resend(&wire.out, &io, RECEIVER, &wire.queue[i].r, wire.now_us);
                continue;
            }
            struct buf whole = {0};
            int status = gossip_messages_part(&wire.in, &io, SENDER, &wire.delivered,
                                              &wire.queue[i].p, wire.now_us, &whole);
            if (status == 1) {
                wire.delivered_count++;
                wire.delivered_len = whole.len;
                for (size_t k = 0; k < whole.len; k++)
                    assert_int_equal((uint8_t)whole.at[k], (uint8_t)(k * 31 >> 3));
            }
            buf_free(&whole);
        }
        memmove(wire.queue, wire.queue + count, (wire.count - count) * sizeof wire.queue[0]);
        wire.count -= count;
        gossip_messages_run(&wire.out, &io, wire.now_us);
        gossip_messages_run(&wire.in, &io, wire.now_us);
        gossip_messages_check(&wire.out);
        gossip_messages_check(&wire.in);
        wire.now_us += 1000;
    }
}

static int send(uint64_t id, size_t len)
{
    static char text[GOSSIP_MESSAGE_MAX];
    for (size_t k = 0; k < sizeof text; k++)
        text[k] = (char)(k * 31 >> 3);
    return gossip_messages_send(&wire.out, RECEIVER, 9, id, 0, slice_of(text, len), wire.now_us);
}

static void test_each_length_arrives_once(void **state)
{
    (void)state;
    static const size_t lens[] = {1,     GOSSIP_PART_BYTES - 1, GOSSIP_PART_BYTES, 1161,
                                  74240, GOSSIP_MESSAGE_MAX};
    for (unsigned i = 0; i < sizeof lens / sizeof lens[0]; i++) {
        start(1 << 20, 0);
        assert_int_equal(send(1, lens[i]), 0);
        pass(15);
        assert_int_equal(wire.delivered_count, 1);
        assert_int_equal(wire.delivered_len, lens[i]);
        assert_int_equal(wire.parts, (lens[i] + GOSSIP_PART_BYTES - 1) / GOSSIP_PART_BYTES);
        assert_int_equal(wire.out.bytes_used + wire.in.bytes_used, 0);
        assert_int_equal(wire.measured, 1);
        pass(20); /* timers of ended messages run out */
        assert_int_equal(wire.out.due_us, UINT64_MAX);
        assert_int_equal(wire.in.due_us, UINT64_MAX);
        stop();
    }
}

static void test_only_missing_parts_are_resent(void **state)
{
    (void)state;
    start(1 << 20, 0.1);
    unsigned parts = 0;
    for (unsigned id = 1; id <= 50; id++) {
        assert_int_equal(send(id, GOSSIP_MESSAGE_MAX), 0);
        pass(300);
        assert_int_equal(wire.delivered_count, id);
        parts += 113;
    }
    assert_true(wire.parts < parts * 13 / 10);
    assert_int_equal(wire.failed, 0);
    stop();
}

static void test_a_stalled_message_is_dropped_at_both_ends(void **state)
{
    (void)state;
    start(1 << 20, 0);
    assert_int_equal(send(1, 100000), 0);
    pass(2);
    wire.loss = 1;
    pass(998);
    assert_int_equal(wire.failed, 0);
    pass(20);
    assert_int_equal(wire.failed, 1);
    assert_int_equal(wire.out.bytes_used, 0);
    pass(700);
    assert_int_equal(wire.in.bytes_used, 0);
    assert_true(wire.parts < 113 + 20 && wire.resends < 20); /* the sender backed off */
    stop();
}

/* A peer that asks for the same part for ever, or sends a part now and then, occupies no memory for
 * ever. */
static void test_a_misbehaving_peer_cannot_prolong_a_message(void **state)
{
    (void)state;
    static const char filler[GOSSIP_PART_BYTES];
    start(1 << 20, 1);
    assert_int_equal(send(1, 100000), 0);
    struct gossip_frame_part part = {
        .epoch = 1, .id = 1, .total = 100000, .bytes = slice_of(filler, GOSSIP_PART_BYTES)};
    struct gossip_frame_resend again = {
        .epoch = 9, .id = 1, .ranges.count = 1, .ranges.at = {{1, 1}}};
    for (unsigned i = 0; i < 40; i++) {
        gossip_messages_resend(&wire.out, &io, RECEIVER, &again, wire.now_us);
        struct buf whole = {0};
        part.index = i;
        assert_int_equal(gossip_messages_part(&wire.in, &io, SENDER, &wire.delivered, &part,
                                              wire.now_us, &whole),
                         0);
        assert_true(wire.out.count == 1 && wire.in.count == 1);
        pass(500);
    }
    pass(300); /* the receiver asks at least this often */
    assert_int_equal(wire.out.count, 0);
    assert_int_equal(wire.failed, 1);
    assert_int_equal(wire.in.count, 0);
    stop();
}

static void test_memory_is_bounded(void **state)
{
    (void)state;
    start(150000, 0);
    assert_int_equal(send(1, 100000), 0);
    wire.held = true;
    pass(5); /* without budget nothing is sent */
    assert_int_equal(wire.parts, 0);
    wire.held = false;
    assert_int_equal(send(2, 100000), 0); /* waits until the receiver has room */
    pass(1);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(send(3 + i, 100000), 0);
    assert_int_equal(send(11, 100000), ERR_FULL);
    assert_int_equal(send(11, 0), ERR_RANGE);
    assert_int_equal(send(11, GOSSIP_MESSAGE_MAX + 1), ERR_LIMIT);
    pass(1300); /* messages go in turn, until the senders give up */
    assert_true(wire.delivered_count >= 5);
    assert_int_equal(wire.delivered_count + wire.failed, 10);
    stop();
}

static void test_a_message_is_delivered_only_once(void **state)
{
    (void)state;
    start(1 << 20, 0);
    struct gossip_frame_part p = {.epoch = 9, .total = 3, .bytes = SLICE("abc")};
    struct buf whole = {0};
    static const uint64_t ids[] = {1, 3, 2, 70, 69, 7, 200};
    for (unsigned i = 0; i < 7; i++) {
        p.id = ids[i];
        for (unsigned again = 0; again < 3; again++)
            assert_int_equal(
                gossip_messages_part(&wire.in, &io, SENDER, &wire.delivered, &p, 1, &whole),
                again == 0 ? 1 : 0);
    }
    p.id = 2; /* older than the remembered ids */
    assert_int_equal(gossip_messages_part(&wire.in, &io, SENDER, &wire.delivered, &p, 1, &whole),
                     0);
    p.epoch = 8;
    p.id = 1000; /* an earlier life */
    assert_int_equal(gossip_messages_part(&wire.in, &io, SENDER, &wire.delivered, &p, 1, &whole),
                     0);
    p.epoch = 10;
    p.id = 1;
    assert_int_equal(gossip_messages_part(&wire.in, &io, SENDER, &wire.delivered, &p, 1, &whole),
                     1);
    assert_int_equal(whole.len, 3 * 8);
    assert_int_equal(wire.resends, 7 * 3 + 3);
    buf_free(&whole);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_length_arrives_once),
        cmocka_unit_test(test_only_missing_parts_are_resent),
        cmocka_unit_test(test_a_stalled_message_is_dropped_at_both_ends),
        cmocka_unit_test(test_a_misbehaving_peer_cannot_prolong_a_message),
        cmocka_unit_test(test_memory_is_bounded),
        cmocka_unit_test(test_a_message_is_delivered_only_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
