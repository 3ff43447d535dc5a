/* Cluster time: makes routers with different wall clocks count the same generations.
 *
 * Each router announces its cluster time with every anti-entropy message. A node stores a peer's
 * time as an offset to the node's monotonic clock, which stays correct until the peer changes the
 * time. A node follows the median of all offsets, with 0 for the node itself, so the majority wins.
 * If the two in the middle disagree, the router that has been ready longer wins, because it would
 * lose more. If both have been ready equally long, the later time wins, because going back costs an
 * index.
 *
 * A jump needs proof (proven()). The first few announcements are no majority. And a delayed
 * message, for example in the socket of a stopped router, announces a time already past.
 */
#include <stdlib.h>

#include "base/bug.h"
#include "base/err.h"
#include "node/cluster/replication_internal.h"

enum {
    FRESH_US = 60000000,  /* an announcement older than this does not count */
    SLEW_MS = 500,        /* maximum move of cluster time in a check; checks come once a second */
    GRAIN_MS = 100,       /* smaller differences may be network delay and are ignored */
    SLEW_GENERATIONS = 8, /* a clock ahead by at most this is slowed down, not set back */
    AGE_S = 5,            /* smaller differences of age count as equal */
    PROOF_US = 1500000,   /* a jump is made only after it has been due for this long */
    DRAIN_US = 500000,    /* time to read the messages queued in the socket */
};

void node_clock_heard(struct node_replication *n, uint64_t node, uint64_t cluster_ms,
                      uint64_t age_s, uint64_t now_us)
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
                              .heard_us = now_us > 0 ? now_us : 1,
                              .age_s = age_s};
}

static int64_t own_off(const struct node_replication *n, uint64_t now_us)
{
    uint64_t now_ms = node_replication_ms(now_us);
    return (int64_t)(node_state_cluster_ms(n->state, now_ms) - now_ms);
}

struct vote {
    int64_t off_ms; /* the peer's cluster time minus this node's */
    uint64_t age_s;
};

static int compare(const void *a, const void *b)
{
    int64_t x = ((const struct vote *)a)->off_ms, y = ((const struct vote *)b)->off_ms;
    return x < y ? -1 : x > y;
}

static int64_t median(struct vote *votes, unsigned count)
{
    qsort(votes, count, sizeof votes[0], compare);
    if (BUG(MEDIAN_IGNORED))
        return votes[count - 1].off_ms;
    const struct vote *upper = &votes[count / 2];
    if (count % 2 == 1)
        return upper->off_ms;
    const struct vote *lower = upper - 1;
    return lower->age_s > upper->age_s + AGE_S ? lower->off_ms : upper->off_ms;
}

/* How many milliseconds this node is behind the median of announcements since `since_us`. `heard`:
 * the number of announcing routers. Routers without an announcement, up to `voters` in all, count
 * as agreeing with this node. */
static int64_t behind(const struct node_replication *n, uint64_t since_us, unsigned voters,
                      uint64_t now_us, unsigned *heard)
{
    struct vote votes[NODE_CLOCKS_MAX + 1];
    unsigned count = 0;
    int64_t own = own_off(n, now_us);
    for (unsigned i = 0; i < NODE_CLOCKS_MAX; i++) {
        const struct node_clock *c = &n->clocks[i];
        const struct node_peer *p = c->heard_us > 0 ? node_replication_peer(n, c->node) : NULL;
        if (p && node_peer_counts(p) && c->heard_us > since_us)
            votes[count++] = (struct vote){
                .off_ms = c->off_ms - own,
                .age_s = node_clock_age_cut(c->age_s + (now_us - c->heard_us) / 1000000),
            };
    }
    *heard = count;
    do
        votes[count++] = (struct vote){.age_s = node_clock_age_s(n, now_us)};
    while (count <= voters);
    return median(votes, count);
}

static unsigned peers_alive(const struct node_replication *n)
{
    unsigned alive = 0;
    for (unsigned i = 0; i < n->peer_count; i++)
        alive += n->peers[i].state == GOSSIP_ALIVE && node_peer_counts(&n->peers[i]);
    return alive;
}

static void ask_all(struct node_replication *n, uint64_t now_us)
{
    unsigned asked = 0;
    for (unsigned i = 0; i < n->peer_count && asked < NODE_CLOCKS_MAX; i++) {
        if (n->peers[i].state != GOSSIP_ALIVE || !node_peer_counts(&n->peers[i]))
            continue;
        node_message_say(n, n->peers[i].node, NODE_MESSAGE_CLOCK_ASK, now_us);
        asked++;
    }
}

static void forward(struct node_replication *n, uint64_t node, int64_t by_ms, uint64_t now_us)
{
    node_state_clock_move(n->state, by_ms, node_replication_ms(now_us));
    n->clock_forward++;
    node_replication_event(n, NODE_REPLICATION_CLOCK_FORWARD, node, by_ms);
}

static void back(struct node_replication *n, uint64_t node, int64_t by_ms, uint64_t now_us)
{
    if (node_state_rewind(n->state, by_ms, node_replication_ms(now_us)) != ERR_OK)
        return; /* no memory: the next check retries */
    n->clock_back++;
    node_replication_rewound(n);
    node_replication_event(n, NODE_REPLICATION_CLOCK_BACK, node, by_ms);
}

/* The peer read the clock at some moment between request and answer. Every offset between the two
 * bounds is equally good (Cristian, Probabilistic clock synchronization, 1989). */
void node_clock_adopt(struct node_replication *n, uint64_t node, uint64_t cluster_ms,
                      uint64_t asked_us, uint64_t now_us)
{
    uint64_t now_ms = node_replication_ms(now_us);
    int64_t least = (int64_t)(cluster_ms - node_state_cluster_ms(n->state, now_ms));
    int64_t most = least + (int64_t)((now_us - asked_us) / 1000);
    int64_t by = least > 0 ? least : most < 0 ? most : 0;
    int64_t generation = node_state_config_of(n->state)->generation_ms;
    if (by > generation)
        forward(n, node, by, now_us);
    else if (by < -generation)
        back(n, node, -by, now_us);
    else
        node_state_clock_move(n->state, by, now_ms);
}

static bool is_jump(const struct node_replication *n, int64_t by)
{
    int64_t generation = node_state_config_of(n->state)->generation_ms;
    return by > generation || by < -SLEW_GENERATIONS * generation;
}

static void slew(struct node_replication *n, int64_t by, uint64_t now_us)
{
    int64_t step = by > SLEW_MS ? SLEW_MS : by < -SLEW_MS ? -SLEW_MS : by;
    node_state_clock_move(n->state, step, node_replication_ms(now_us));
    n->clock_slewed_ms += (uint64_t)llabs(step);
}

/* Called while a jump seems to be due: asks live members for their time. Returns the size of the
 * jump according to their announcements, once a jump has been due for PROOF_US during which this
 * router was not stopped. 0: not proven yet. */
static int64_t proven(struct node_replication *n, bool stopped, uint64_t now_us)
{
    if (n->jump_due_us == 0 || stopped)
        n->jump_due_us = now_us;
    unsigned alive = peers_alive(n);
    unsigned heard;
    int64_t by = behind(n, n->jump_due_us + DRAIN_US,
                        alive < NODE_CLOCKS_MAX ? alive : NODE_CLOCKS_MAX, now_us, &heard);
    if (now_us - n->jump_due_us >= PROOF_US && heard > 0 && is_jump(n, by))
        return by;
    ask_all(n, now_us);
    return 0;
}

bool node_clock_check(struct node_replication *n, uint64_t now_us)
{
    bool stopped = now_us - n->clock_checked_us > 2 * (uint64_t)n->config.reconcile_us;
    n->clock_checked_us = now_us;
    if (!n->ready)
        return false;
    unsigned heard;
    int64_t by = behind(n, now_us > FRESH_US ? now_us - FRESH_US : 0, 0, now_us, &heard);
    if (heard == 0 || !is_jump(n, by)) {
        n->jump_due_us = 0;
        if (heard > 0 && llabs(by) >= GRAIN_MS)
            slew(n, by, now_us);
        return false;
    }
    by = proven(n, stopped, now_us);
    if (by == 0)
        return false;
    n->jump_due_us = 0;
    if (by < 0) {
        back(n, 0, -by, now_us);
        return true;
    }
    forward(n, 0, by, now_us);
    /* Fetches a snapshot, because this router refused data as from the future. */
    n->snapshot_of = gossip_peer_random(n->gossip, 0);
    return false;
}
