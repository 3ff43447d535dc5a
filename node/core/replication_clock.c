/* Cluster time: how routers whose wall clocks differ come to count the same generations.
 *
 * Each tells its cluster time with every message of anti-entropy. What a peer told is kept as an
 * offset to this node's own monotonic clock, so it stays true until that peer moves its time. A
 * node follows the upper median of all offsets, its own (0) among them: of two that disagree the
 * later one wins, since going back costs an index and going forward nothing that the other does not
 * have; among more the majority wins.
 */
#include <stdlib.h>

#include "base/err.h"
#include "node/core/replication_internal.h"

enum {
    FRESH_US = 60000000,  /* what was told longer ago does not count */
    SLEW_MS = 500,        /* at most per check, so per second */
    GRAIN_MS = 100,       /* the network's delay: differences below are none */
    SLEW_GENERATIONS = 8, /* ahead by no more than this: slowed down instead of set back */
};

void node_clock_told(struct node_replication *n, uint64_t node, uint64_t cluster_ms,
                     uint64_t now_us)
{
    struct node_clock *at = &n->clocks[0];
    for (unsigned i = 0; i < NODE_CLOCKS_MAX; i++) {
        struct node_clock *c = &n->clocks[i];
        if (c->node == node) {
            at = c;
            break;
        }
        if (c->heard_us < at->heard_us)
            at = c;
    }
    *at = (struct node_clock){.node = node,
                              .off_ms = (int64_t)(cluster_ms - node_replication_ms(now_us)),
                              .heard_us = now_us > 0 ? now_us : 1};
}

static int64_t own_off(const struct node_replication *n, uint64_t now_us)
{
    uint64_t now_ms = node_replication_ms(now_us);
    return (int64_t)(node_router_cluster_ms(n->router, now_ms) - now_ms);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* How many ms this node is behind the median; `heard` is of how many others. */
static int64_t behind(const struct node_replication *n, uint64_t now_us, unsigned *heard)
{
    int64_t offs[NODE_CLOCKS_MAX + 1];
    unsigned count = 0;
    int64_t own = own_off(n, now_us);
    for (unsigned i = 0; i < NODE_CLOCKS_MAX; i++) {
        const struct node_clock *c = &n->clocks[i];
        const struct node_peer *p = c->heard_us > 0 ? node_replication_peer(n, c->node) : NULL;
        if (p && node_peer_lives(p) && now_us - c->heard_us < FRESH_US)
            offs[count++] = c->off_ms - own;
    }
    *heard = count;
    offs[count++] = 0;
    qsort(offs, count, sizeof offs[0], compare);
    return offs[count / 2];
}

static unsigned peers_alive(const struct node_replication *n)
{
    unsigned alive = 0;
    for (unsigned i = 0; i < n->peer_count; i++)
        alive += n->peers[i].state == GOSSIP_ALIVE;
    return alive;
}

static void ask_all(struct node_replication *n, uint64_t now_us)
{
    unsigned asked = 0;
    for (unsigned i = 0; i < n->peer_count && asked < NODE_CLOCKS_MAX; i++) {
        if (n->peers[i].state != GOSSIP_ALIVE)
            continue;
        node_reconcile_say(n, n->peers[i].node, NODE_MESSAGE_CLOCK_ASK, now_us);
        asked++;
    }
}

static void forward(struct node_replication *n, uint64_t node, int64_t by_ms, uint64_t now_us)
{
    node_router_cluster_move(n->router, by_ms, node_replication_ms(now_us));
    n->clock_forward++;
    node_replication_event(n, NODE_REPLICATION_CLOCK_FORWARD, node, by_ms);
}

static void back(struct node_replication *n, uint64_t node, int64_t by_ms, uint64_t now_us)
{
    if (node_router_rewind(n->router, by_ms, node_replication_ms(now_us)) != ERR_OK)
        return; /* no memory: tried again at the next check */
    n->state_id++;
    n->clock_back++;
    node_replication_retell(n);
    node_replication_event(n, NODE_REPLICATION_CLOCK_BACK, node, by_ms);
}

void node_clock_adopt(struct node_replication *n, uint64_t node, uint64_t cluster_ms,
                      uint64_t now_us)
{
    uint64_t now_ms = node_replication_ms(now_us);
    int64_t by = (int64_t)(cluster_ms - node_router_cluster_ms(n->router, now_ms));
    int64_t generation = node_router_generation_ms(n->router);
    if (by > generation)
        forward(n, node, by, now_us);
    else if (by < -generation)
        back(n, node, -by, now_us);
    else
        node_router_cluster_move(n->router, by, now_ms);
}

void node_clock_check(struct node_replication *n, uint64_t now_us)
{
    if (!n->ready)
        return;
    unsigned heard;
    int64_t by = behind(n, now_us, &heard);
    if (heard == 0 || llabs(by) < GRAIN_MS)
        return;
    int64_t generation = node_router_generation_ms(n->router);
    if (by <= generation && by >= -SLEW_GENERATIONS * generation) {
        int64_t step = by > SLEW_MS ? SLEW_MS : by < -SLEW_MS ? -SLEW_MS : by;
        node_router_cluster_move(n->router, step, node_replication_ms(now_us));
        n->clock_slewed_ms += (uint64_t)llabs(step);
        return;
    }
    unsigned alive = peers_alive(n);
    if (heard < (alive < NODE_CLOCKS_MAX ? alive : NODE_CLOCKS_MAX)) {
        /* A few that were heard first are no majority. */
        ask_all(n, now_us);
        return;
    }
    if (by > 0) {
        forward(n, 0, by, now_us);
        /* What the others told of a time that was the future here was refused. */
        n->snapshot_of = gossip_peer_random(n->gossip, 0);
    } else {
        back(n, 0, -by, now_us);
        node_join_again(n, now_us);
    }
}
