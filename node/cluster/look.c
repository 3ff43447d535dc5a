/* Members in short, for what needs attention (node/admin/attention.h). */
#include <string.h>

#include "node/cluster/replication_internal.h"

unsigned node_replication_look_count(const struct node_replication *n)
{
    return gossip_member_count(n->gossip);
}

/* Whether a router that lives, this one too, has started after that cluster time. */
static bool has_successor(const struct node_replication *n, uint64_t gone_ms)
{
    bool any = n->started_ms > gone_ms;
    for (unsigned i = 0; i < n->peer_count && !any; i++)
        any = node_peer_lives(&n->peers[i]) && n->peers[i].started_ms > gone_ms;
    return any;
}

void node_replication_look(const struct node_replication *n, unsigned index, uint64_t now_us,
                           struct node_member_look *out)
{
    struct gossip_member m;
    gossip_member_at(n->gossip, index, now_us, &m);
    const struct node_peer *p = node_replication_peer(n, m.node);
    *out = (struct node_member_look){.state = m.state, .self = m.self};
    memcpy(out->name, m.name, sizeof out->name);
    out->draining = m.self ? n->draining : p != NULL && p->draining;
    if (p == NULL)
        return;
    uint64_t now_ms = node_state_cluster_ms(n->state, node_replication_ms(now_us));
    uint64_t ago_ms = m.heard_us > 0 && now_us > m.heard_us ? (now_us - m.heard_us) / 1000 : 0;
    out->old = m.state == GOSSIP_DEAD && has_successor(n, now_ms > ago_ms ? now_ms - ago_ms : 0);
    if (p->mismatch)
        node_peer_differs(n, p, out->differs);
    (void)node_peer_filtered(n, p, now_us, out->filtered);
}
