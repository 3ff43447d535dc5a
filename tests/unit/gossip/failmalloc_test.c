/* Out of memory while two members meet, push deltas, send messages, call each other and part. */
#include "tests/lib/failmalloc.h"

#include "base/check.h"
#include "base/err.h"
#include "gossip/call.h"
#include "tests/lib/gossip_net.h"
#include "tests/lib/test.h"
#include "tests/lib/world/memory.h"

enum { S = 1000000, DELTAS = 20 };

static struct net *net;

static void open_net(void)
{
    failmalloc_spare(true);
    net = net_new(2, 5);
    for (unsigned i = 0; i < 2; i++)
        net->nodes[i].item_bytes = 1000; /* a delta each */
    failmalloc_spare(false);
}

static int start(unsigned index)
{
    struct gossip_config config = {.name = index == 0 ? "node-000" : "node-001",
                                   .epoch = 1700000000000 + index,
                                   .address = net->nodes[index].at->address,
                                   .ring_bytes = 1 << 16};
    return net_create(net, index, &config);
}

static void make_items(void)
{
    failmalloc_spare(true);
    for (unsigned i = 0; i < 2 * DELTAS; i++)
        net_item(net, i % 2);
    failmalloc_spare(false);
}

static void talk(bool may_fail)
{
    static char text[5000];
    struct gossip *a = net->nodes[0].gossip;
    net_for(net, S / 2);
    assert_true(net_meshed(net) || may_fail);
    make_items();
    int err = gossip_message(a, net_node(1), slice_of(text, sizeof text), net->world.now_us);
    assert_true(err == 0 || (may_fail && (err == ERR_NOMEM || err == ERR_NOT_FOUND)));
    world_wake_plan(net->nodes[0].at);
    net_for(net, S / 2);
    struct buf vector = {0};
    err = gossip_vector_write(a, &vector);
    if (err == 0)
        err = gossip_vector_adopt(net->nodes[1].gossip, buf_slice(&vector), net->world.now_us);
    assert_true(err == 0 || (may_fail && err == ERR_NOMEM));
    buf_free(&vector);
}

static void two_members(bool may_fail)
{
    open_net();
    const struct net_node *n = &net->nodes[1];
    int err = start(0);
    if (err == 0)
        err = start(1);
    assert_true(err == 0 || (may_fail && err == ERR_NOMEM));
    if (err == 0) {
        talk(may_fail);
        failmalloc_enough();
        net_for(net, 3 * S);
        assert_true(net_meshed(net)); /* the failures have no lasting effect */
        uint64_t messages = n->messages, applied = n->applied;
        assert_true(may_fail || (messages == 1 && applied == DELTAS));
        talk(false);
        net_for(net, S);
        assert_int_equal(n->messages, messages + 1);
        assert_in_range(n->applied, applied + DELTAS, applied + 2 * DELTAS);
        net_check(net);
    }
    net_free(net);
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
    world_spare_by = failmalloc_spare;
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
