/* No memory: two members that meet, push deltas, send messages and part; a call between them. */
#include "tests/lib/failmalloc.h"

#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/prng.h"
#include "gossip/call.h"
#include "gossip/gossip.h"
#include "tests/lib/test.h"

enum { DELAY_US = 300, STEP_US = 1000, SECOND = 1000000, PACKETS_MAX = 512 };

struct member {
    unsigned index;
    struct gossip *gossip;
    unsigned to_make, applied, messages;
};

static struct {
    struct member member[2];
    struct gossip_keyring keyring;
    struct prng prng;
    uint64_t now_us;
    struct {
        uint64_t at_us;
        unsigned to;
        size_t len;
        uint8_t bytes[GOSSIP_DATAGRAM_MAX];
    } packet[PACKETS_MAX];
    unsigned packets;
} world;

static struct gossip_address address_of(unsigned index)
{
    return (struct gossip_address){
        .ip = {10, 0, 0, (uint8_t)(1 + index)}, .port = 7000, .family = 4};
}

static size_t on_produce(void *context, uint64_t now_us, uint8_t *out, size_t max)
{
    struct member *m = context;
    (void)now_us;
    if (m->to_make == 0)
        return 0;
    m->to_make--;
    memset(out, 'x', max);
    return max;
}

static int on_apply(void *context, const struct gossip_origin *origin, struct slice delta,
                    uint64_t now_us)
{
    struct member *m = context;
    (void)origin, (void)delta, (void)now_us;
    m->applied++;
    return 0;
}

static void on_member(void *context, const struct gossip_member *member, uint64_t now_us)
{
    (void)context, (void)member, (void)now_us;
}

static void on_lost(void *context, uint64_t node, uint64_t now_us)
{
    (void)context, (void)node, (void)now_us;
}

static void on_message(void *context, uint64_t peer, struct slice bytes, bool settled,
                       uint64_t now_us)
{
    struct member *m = context;
    (void)peer, (void)bytes, (void)settled, (void)now_us;
    m->messages++;
}

static void on_send(void *context, const struct gossip_address *to, const uint8_t *bytes,
                    size_t len)
{
    (void)context;
    assert_true(world.packets < PACKETS_MAX);
    world.packet[world.packets].at_us = world.now_us + DELAY_US;
    world.packet[world.packets].to = to->ip[3] - 1u;
    world.packet[world.packets].len = len;
    memcpy(world.packet[world.packets++].bytes, bytes, len);
}

static void on_random(void *context, void *out, size_t len)
{
    (void)context;
    for (size_t i = 0; i < len; i++)
        ((uint8_t *)out)[i] = (uint8_t)prng_next(&world.prng);
}

static int start(unsigned index)
{
    static const char *const names[] = {"a", "b"};
    struct member *m = &world.member[index];
    *m = (struct member){.index = index};
    struct gossip_config config = {.name = names[index],
                                   .epoch = 1700000000000 + index,
                                   .address = address_of(index),
                                   .ring_bytes = 1 << 16};
    struct gossip_app app = {m, on_produce, on_apply, on_member, on_lost, on_message};
    struct gossip_io io = {.context = m, .send = on_send, .random = on_random};
    int err = gossip_create(&m->gossip, &config, &world.keyring, &app, &io, world.now_us);
    if (err == 0) {
        struct gossip_address other = address_of(1 - index);
        gossip_seeds(m->gossip, &other, 1, world.now_us);
    }
    return err;
}

static void deliver(void)
{
    unsigned kept = 0;
    unsigned count = world.packets;
    for (unsigned i = 0; i < count; i++) {
        if (world.packet[i].at_us <= world.now_us) {
            struct gossip_address from = address_of(1 - world.packet[i].to);
            gossip_datagram(world.member[world.packet[i].to].gossip, &from, world.packet[i].bytes,
                            world.packet[i].len, world.now_us);
            world.packet[i].len = 0;
        }
    }
    for (unsigned i = 0; i < world.packets; i++)
        if (world.packet[i].len > 0)
            world.packet[kept++] = world.packet[i];
    world.packets = kept;
}

static void run(uint64_t us)
{
    for (uint64_t end = world.now_us + us; world.now_us < end; world.now_us += STEP_US) {
        deliver();
        for (unsigned i = 0; i < 2; i++)
            if (gossip_due_us(world.member[i].gossip) <= world.now_us)
                gossip_run(world.member[i].gossip, world.now_us);
    }
}

static bool met(void)
{
    for (unsigned i = 0; i < 2; i++) {
        struct gossip_member m;
        if (gossip_member_find(world.member[i].gossip, gossip_self(world.member[1 - i].gossip),
                               world.now_us, &m) != 0 ||
            m.state != GOSSIP_ALIVE || !m.session)
            return false;
    }
    return true;
}

static void talk(bool may_fail)
{
    static char text[5000];
    struct gossip *a = world.member[0].gossip;
    run(SECOND / 2);
    assert_true(met() || may_fail);
    world.member[0].to_make = world.member[1].to_make = 20;
    gossip_wake(a, world.now_us);
    gossip_wake(world.member[1].gossip, world.now_us);
    int err = gossip_message(a, gossip_self(world.member[1].gossip), slice_of(text, sizeof text),
                             world.now_us);
    assert_true(err == 0 || (may_fail && (err == ERR_NOMEM || err == ERR_NOT_FOUND)));
    run(SECOND / 2);
    struct buf vector = {0};
    err = gossip_vector_write(a, &vector);
    if (err == 0)
        err = gossip_vector_adopt(world.member[1].gossip, buf_slice(&vector), world.now_us);
    assert_true(err == 0 || (may_fail && err == ERR_NOMEM));
    buf_free(&vector);
}

static void two_members(bool may_fail)
{
    memset(&world, 0, sizeof world);
    prng_seed(&world.prng, 5);
    gossip_keyring_insecure(&world.keyring);
    world.now_us = 10 * SECOND;
    int err = start(0);
    if (err == 0)
        err = start(1);
    assert_true(err == 0 || (may_fail && err == ERR_NOMEM));
    if (err == 0) {
        talk(may_fail);
        failmalloc_enough();
        run(3 * SECOND);
        assert_true(met()); /* nothing that failed once keeps them apart */
        unsigned messages = world.member[1].messages;
        unsigned applied = world.member[1].applied;
        assert_true(may_fail || (messages == 1 && applied == 20));
        talk(false);
        run(SECOND);
        assert_int_equal(world.member[1].messages, messages + 1);
        assert_in_range(world.member[1].applied, applied + 20, applied + 40);
        for (unsigned i = 0; i < 2; i++)
            gossip_check(world.member[i].gossip);
    }
    for (unsigned i = 0; i < 2; i++)
        gossip_destroy(world.member[i].gossip);
}

/* --- a call ---------------------------------------------------------------------------------- */

static int carry(struct gossip_call *from, struct gossip_call *to)
{
    struct buf *out = gossip_call_out(from);
    int err = gossip_call_feed(to, buf_slice(out));
    buf_clear(out);
    return err;
}

static int talk_by_call(struct gossip_call *client, struct gossip_call *server)
{
    static char chunk[10000];
    unsigned answered = 0;
    unsigned got = 0;
    for (unsigned i = 0; i < 100; i++) {
        enum gossip_call_step step = GOSSIP_CALL_WAIT;
        uint8_t kind = 0;
        struct slice bytes = {0};
        int err = carry(client, server);
        if (err == 0)
            err = gossip_call_step(server, &step, &kind, &bytes);
        if (err == 0 && gossip_call_wants(server) && answered < 3) {
            err = gossip_call_answer(server, slice_of(chunk, sizeof chunk));
            answered++;
        } else if (err == 0 && gossip_call_wants(server)) {
            err = gossip_call_end(server);
        }
        if (err == 0)
            err = carry(server, client);
        do {
            if (err == 0)
                err = gossip_call_step(client, &step, &kind, &bytes);
            got += err == 0 && step == GOSSIP_CALL_CHUNK;
        } while (err == 0 && step == GOSSIP_CALL_CHUNK);
        if (err < 0)
            return err;
        if (step == GOSSIP_CALL_DONE) {
            assert_int_equal(got, 3);
            return 0;
        }
    }
    return ERR_AGAIN;
}

static void call(bool may_fail)
{
    struct gossip_keyring keyring;
    gossip_keyring_insecure(&keyring);
    uint8_t random[32] = {1};
    uint8_t other[32] = {2};
    struct gossip_call *client = NULL;
    struct gossip_call *server = NULL;
    int err = gossip_call_open(&client, &keyring, (struct gossip_versions){1, 1}, random, 1,
                               SLICE("question"));
    if (err == 0)
        err = gossip_call_accept(&server, &keyring, (struct gossip_versions){1, 1}, other);
    if (err == 0)
        err = talk_by_call(client, server);
    assert_true(err == 0 || (may_fail && err == ERR_NOMEM));
    gossip_call_free(client);
    gossip_call_free(server);
}

static void test_two_members(void **state)
{
    (void)state;
    print_message("%u allocations\n", failmalloc_each(two_members));
}

static void test_a_call(void **state)
{
    (void)state;
    print_message("%u allocations\n", failmalloc_each(call));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_members),
        cmocka_unit_test(test_a_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
