/* Messages between routers outside of the state: they reach all listeners, disturb no other router,
 * and are not compared. */
#include <stdio.h>

#include "base/err.h"
#include "node/cluster/replication_internal.h"
#include "tests/lib/test.h"
#include "tests/lib/world/look.h"

/* A router's own message, and the last message received. */
struct side {
    uint64_t says; /* 0: nothing */
    uint64_t from, heard;
    unsigned times, writes;
    int64_t ahead_ms;
    bool deaf; /* rejects each message as malformed */
};

static int on_write(void *context, int64_t ahead_ms, uint64_t now_ms, struct buf *out)
{
    (void)now_ms;
    struct side *s = context;
    s->writes++;
    s->ahead_ms = ahead_ms;
    int err = s->says != 0 ? buf_append(out, &s->says, sizeof s->says) : 0;
    s->says = 0;
    return err;
}

static int on_read(void *context, uint64_t router, struct slice bytes, int64_t ahead_ms,
                   uint64_t now_ms)
{
    (void)ahead_ms, (void)now_ms;
    struct side *s = context;
    assert_int_equal(bytes.len, sizeof s->heard);
    memcpy(&s->heard, bytes.at, sizeof s->heard);
    s->from = router;
    s->times++;
    return s->deaf ? ERR_SYNTAX : 0;
}

static void listen(struct world *c, unsigned number, struct side *s)
{
    const struct node_replication_aside aside = {.context = s, .write = on_write, .read = on_read};
    node_replication_aside(c->nodes[number].node->replication, &aside);
}

static void messages_reach_all_listeners(void **state)
{
    (void)state;
    struct world c;
    struct side a = {0}, b = {0};
    start(&c, 3, 2);
    listen(&c, 0, &a);
    listen(&c, 1, &b); /* the third router does not know such messages */
    world_run(&c, 1 * S);
    assert_int_equal(b.times, 0); /* an empty message is not sent */
    assert_in_range(a.writes, 3, 5);
    a.says = 77;
    world_run(&c, 1 * S);
    assert_int_equal(b.times, 1);
    assert_int_equal(b.heard, 77);
    assert_int_equal(b.from, c.nodes[0].id);
    assert_int_equal(a.times, 0);
    b.says = 78;
    b.deaf = true;
    world_run(&c, 1 * S);
    assert_int_equal(a.heard, 78);
    assert_int_equal(a.from, c.nodes[1].id);
    a.says = 79;
    world_run(&c, 1 * S);
    assert_int_equal(c.nodes[1].node->replication->message_errors, 1);
    for (unsigned i = 0; i < 3; i++) {
        const struct node_replication *n = c.nodes[i].node->replication;
        assert_int_equal(n->messages_skipped, 0);
        assert_true(n->message_errors == (i == 1));
    }
    assert_true(world_until(&c, 5 * S, world_agrees));
    world_close(&c);
}

/* An earlier build skips and counts messages of an unknown kind. */
static void messages_of_an_unknown_kind_are_skipped(void **state)
{
    (void)state;
    struct world c;
    start(&c, 2, 2);
    struct node_replication *n = c.nodes[0].node->replication;
    world_run(&c, 1 * S);
    for (unsigned kind = NODE_MESSAGE_ASIDE + 1; kind < NODE_MESSAGE_ASIDE + 3; kind++) {
        assert_int_equal(node_message_begin(n, (enum node_message)kind, 0, n->now_us), 0);
        assert_int_equal(buf_append(&n->message, "later", 5), 0);
        assert_true(node_message_send(n, c.nodes[1].id, n->now_us));
    }
    world_run(&c, 1 * S);
    assert_int_equal(c.nodes[1].node->replication->messages_skipped, 2);
    assert_int_equal(c.nodes[1].node->replication->message_errors, 0);
    assert_true(world_until(&c, 5 * S, world_agrees));
    world_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_reach_all_listeners),
        cmocka_unit_test(messages_of_an_unknown_kind_are_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
