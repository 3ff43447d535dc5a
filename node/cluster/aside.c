/* Messages between routers outside the shared state: numbers that may get lost, because only the
 * latest numbers count. They are not part of digests, snapshots and anti-entropy. While there is
 * news, a message of a separate kind goes to each member with a common version, a few times a
 * second. Routers without support skip the message. */
#include "base/err.h"
#include "node/cluster/replication_internal.h"

enum {
    ASIDE_US = 250000,
    ASIDE_MEMBER_US = 10000, /* in all, at most a hundred such messages a second */
};

static int64_t ahead_ms(const struct node_replication *n, uint64_t now_us)
{
    uint64_t now_ms = node_replication_ms(now_us);
    return (int64_t)(node_state_cluster_ms(n->state, now_ms) - now_ms);
}

void node_replication_aside(struct node_replication *n, const struct node_replication_aside *aside)
{
    n->aside = *aside;
}

uint64_t node_aside_due(const struct node_replication *n)
{
    return n->aside.write != NULL ? n->aside_due_us : UINT64_MAX;
}

void node_aside_run(struct node_replication *n, uint64_t now_us)
{
    if (now_us < node_aside_due(n))
        return;
    unsigned members = 0;
    for (unsigned i = 0; i < n->peer_count; i++)
        members += node_peer_counts(&n->peers[i]);
    uint64_t pace_us = (uint64_t)members * ASIDE_MEMBER_US;
    n->aside_due_us = now_us + (pace_us > ASIDE_US ? pace_us : ASIDE_US);
    if (node_message_begin(n, NODE_MESSAGE_ASIDE, 0, now_us) != ERR_OK ||
        n->aside.write(n->aside.context, ahead_ms(n, now_us), node_replication_ms(now_us),
                       &n->message) != ERR_OK ||
        n->message.len == NODE_MESSAGE_HEAD)
        return;
    for (unsigned i = 0; i < n->peer_count; i++) {
        /* A member that cannot take a message now gets the current numbers with a later message. */
        if (node_peer_counts(&n->peers[i]))
            DISCARD(gossip_message(n->gossip, n->peers[i].node, buf_slice(&n->message), now_us));
    }
}

bool node_aside_message(struct node_replication *n, uint64_t peer, struct slice bytes,
                        uint64_t now_us)
{
    if (bytes.len < NODE_MESSAGE_HEAD || (uint8_t)bytes.at[0] != NODE_MESSAGE_ASIDE)
        return false;
    if (n->aside.read != NULL &&
        n->aside.read(n->aside.context, peer, slice_skip(bytes, NODE_MESSAGE_HEAD),
                      ahead_ms(n, now_us), node_replication_ms(now_us)) != ERR_OK)
        n->message_errors++;
    return true;
}
