/* Decides which members operators see, and describes each in short for the list of problems
 * (node/admin/attention.h). */
#include <string.h>

#include "node/cluster/replication_internal.h"

enum {
    LEFT_SHOWN_US = 60000000,  /* how long a departed router is shown, as proof that it left in
                                * order during a rollout */
    DEAD_SHOWN_US = 600000000, /* how long a dead router is shown: enough for a paged operator to
                                * look */
};

/* True if a live router has the address of the router `gone`. */
static bool is_replaced(const struct node_replication *n, const struct gossip_member *gone,
                        uint64_t now_us)
{
    char there[NODE_ADDRESS_MAX], here[NODE_ADDRESS_MAX];
    bool any = false;
    node_address_text(&gone->address, there);
    for (unsigned i = 0; i < gossip_member_count(n->gossip) && !any && there[0] != '\0'; i++) {
        struct gossip_member m;
        gossip_member_at(n->gossip, i, now_us, &m);
        node_address_text(&m.address, here);
        any = !m.self && m.node != gone->node &&
              (m.state == GOSSIP_ALIVE || m.state == GOSSIP_SUSPECT) && strcmp(there, here) == 0;
    }
    return any;
}

bool node_member_shown(const struct node_replication *n, const struct gossip_member *m,
                       uint64_t now_us)
{
    const struct node_peer *p = node_replication_peer(n, m->node);
    uint64_t for_us = now_us > m->since_us ? now_us - m->since_us : 0;
    if (m->self || (m->state != GOSSIP_DEAD && m->state != GOSSIP_LEFT))
        return true;
    if (p != NULL && p->forgotten)
        return false;
    if (m->state == GOSSIP_LEFT)
        return for_us < LEFT_SHOWN_US;
    return for_us < DEAD_SHOWN_US && !is_replaced(n, m, now_us);
}

bool node_replication_forget(struct node_replication *n, struct slice name)
{
    bool any = false;
    for (unsigned i = 0; i < n->peer_count; i++) {
        struct node_peer *p = &n->peers[i];
        if (!slice_equal(name, slice_of_cstr(p->name)) || node_peer_lives(p))
            continue;
        p->forgotten = true;
        any = true;
    }
    return any;
}

unsigned node_replication_look_count(const struct node_replication *n)
{
    return gossip_member_count(n->gossip);
}

/* True if a live router, this one included, started after the cluster time `gone_ms`. */
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
    out->shown = node_member_shown(n, &m, now_us);
    out->draining = m.self ? n->draining : p != NULL && p->draining;
    uint64_t now_ms = node_state_cluster_ms(n->state, node_replication_ms(now_us));
    uint64_t started_ms = m.self ? n->started_ms : p != NULL ? p->started_ms : 0;
    out->up_ms = started_ms != 0 && now_ms > started_ms ? now_ms - started_ms : 0;
    if (p == NULL)
        return;
    uint64_t ago_ms = m.heard_us > 0 && now_us > m.heard_us ? (now_us - m.heard_us) / 1000 : 0;
    out->old = m.state == GOSSIP_DEAD && has_successor(n, now_ms > ago_ms ? now_ms - ago_ms : 0);
    if (p->mismatch)
        node_peer_differs(n, p, out->differs);
    (void)node_peer_filtered(n, p, now_us, out->filtered);
}
