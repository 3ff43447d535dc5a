/* Anti-entropy messages: each carries the sender's cluster time. */
#include "base/check.h"
#include "base/err.h"
#include "node/cluster/replication_internal.h"

int node_message_begin(struct node_replication *n, enum node_message kind, uint8_t flags,
                       uint64_t now_us)
{
    uint8_t head[NODE_MESSAGE_HEAD];
    struct wire_writer w = wire_writer_of(head, sizeof head);
    wire_write_u8(&w, (uint8_t)kind);
    wire_write_u8(&w, flags);
    wire_write_u48(&w, node_state_cluster_ms(n->state, node_replication_ms(now_us)));
    wire_write_u16(&w, node_clock_age_s(n, now_us));
    CHECK(!w.bad);
    buf_clear(&n->message);
    return buf_append(&n->message, head, sizeof head);
}

bool node_message_send(struct node_replication *n, uint64_t peer, uint64_t now_us)
{
    struct node_reconcile *a = &n->reconcile;
    /* A peer that cannot take the message now gets a message in a later round. */
    if (gossip_message(n->gossip, peer, buf_slice(&n->message), now_us) != ERR_OK)
        return false;
    a->bytes_out += n->message.len;
    if (a->round.open && a->round.peer == peer) {
        a->round.bytes_out += n->message.len;
        a->round.ended_us = now_us;
    }
    return true;
}

void node_message_say(struct node_replication *n, uint64_t peer, enum node_message kind,
                      uint64_t now_us)
{
    if (node_message_begin(n, kind, 0, now_us) == ERR_OK)
        (void)node_message_send(n, peer, now_us);
}
