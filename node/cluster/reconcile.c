/* Anti-entropy: compares this node's state with a random peer's, and repairs differences. */
#include "base/bug.h"
#include "base/check.h"
#include "base/err.h"
#include "node/cluster/replication_internal.h"

enum {
    FORCE_US = 3000000,     /* a difference that lasts this long is not just data in transit */
    LOST_US = 50000,        /* wait after a loss, because more losses are likely to follow */
    SNAPSHOT_US = 30000000, /* minimum time between snapshots for repair */
    CUT_US = 1000000,       /* minimum time between walks for a cut */
    CUT_MAX_US = 64000000,  /* while cuts are too different to decode, the time between walks
                             * doubles up to this */
};

/* --- rounds --------------------------------------------------------------------------------- */

static void round_end(struct node_replication *n)
{
    struct node_reconcile *a = &n->reconcile;
    struct node_round *r = &a->round;
    if (!r->open)
        return;
    r->open = false;
    /* Either peer may have decoded cells. Then the round counts as worked for both. */
    r->worked = r->bytes_in > 0 && !r->equal && !r->differs && !r->incomparable;
    a->rounds_equal += r->equal;
    a->rounds_incomparable += r->incomparable;
    a->rounds_unsettled += r->differs;
    a->rounds_worked += r->worked && !r->too_many;
    a->rounds_too_many += r->too_many;
    a->rounds_unanswered += r->bytes_in == 0;
    a->differed = r->differs || (a->differed && r->bytes_in == 0);
    /* A forced round without an answer is repeated with another peer, because this peer may be cut
     * off. */
    if (r->force && r->bytes_in > 0)
        a->forced_us = r->began_us;
    if (r->worked)
        a->repair = *r;
}

static uint64_t draw_peer(struct node_replication *n)
{
    uint64_t lost = n->reconcile.lost;
    n->reconcile.lost = 0;
    const struct node_peer *p = lost != 0 ? node_replication_peer(n, lost) : NULL;
    return p && p->state == GOSSIP_ALIVE && node_peer_counts(p) ? lost
                                                                : gossip_peer_random(n->gossip, 0);
}

static void round_begin(struct node_replication *n, uint64_t now_us)
{
    struct node_reconcile *a = &n->reconcile;
    bool force = a->lost != 0 || (a->differed && now_us - a->forced_us >= FORCE_US);
    uint64_t peer = draw_peer(n);
    if (peer == 0 || BUG(NO_RECONCILE))
        return;
    round_end(n);
    if (node_message_begin(n, NODE_MESSAGE_SUMMARY, force ? NODE_MESSAGE_FORCE : 0, now_us) !=
            ERR_OK ||
        crdt_state_summary(node_state_crdt(n->state), &n->message) != ERR_OK)
        return;
    a->round = (struct node_round){
        .peer = peer, .open = true, .force = force, .began_us = now_us, .ended_us = now_us};
    if (!node_message_send(n, peer, now_us)) {
        a->round.open = false;
        return;
    }
    a->rounds++;
    if (!a->differed)
        a->forced_us = now_us;
}

void node_reconcile_lost(struct node_replication *n, uint64_t node, uint64_t now_us)
{
    n->reconcile.lost = node;
    if (n->reconcile.due_us > now_us + LOST_US)
        n->reconcile.due_us = now_us + LOST_US;
}

bool node_reconcile_run(struct node_replication *n, uint64_t now_us)
{
    struct node_reconcile *a = &n->reconcile;
    if (now_us < a->due_us)
        return false;
    /* A random spread, so that not all nodes compare at the same time. */
    a->due_us = now_us + n->config.reconcile_us * 3 / 4 +
                prng_below(&n->prng, n->config.reconcile_us / 2 + 1);
    if (node_clock_check(n, now_us))
        return true;
    if (n->ready)
        round_begin(n, now_us);
    return false;
}

/* --- received messages ------------------------------------------------------------------------ */

static void take_snapshot(struct node_replication *n, uint64_t peer, uint64_t now_us)
{
    if (!n->ready || now_us < n->repair_us)
        return;
    n->repair_us = now_us + SNAPSHOT_US;
    n->snapshot_of = peer;
    n->join_due_us = now_us;
}

static void cut_account(struct node_reconcile *a, const struct crdt_reconciled *done,
                        uint64_t now_us)
{
    if (done->cut_decoded || a->cut_wait_us == 0)
        a->cut_wait_us = CUT_US;
    if (done->cut_hard && a->cut_wait_us < CUT_MAX_US)
        a->cut_wait_us *= 2;
    if (done->cut_walked || done->cut_hard)
        a->cut_due_us = now_us + a->cut_wait_us;
}

/* Handles a message of the state's protocol (crdt/state.h). */
static void take_state(struct node_replication *n, uint64_t peer, enum node_message kind,
                       uint8_t flags, struct slice rest, bool settled, uint64_t now_us)
{
    struct node_reconcile *a = &n->reconcile;
    struct node_round *round = &a->round;
    bool own = round->open && round->peer == peer && kind == NODE_MESSAGE_STEP;
    bool force = (flags & NODE_MESSAGE_FORCE) != 0;
    struct crdt_reconciled done = {0};
    if (node_message_begin(n, NODE_MESSAGE_STEP, flags & NODE_MESSAGE_FORCE, now_us) != ERR_OK)
        return;
    if (now_us >= a->cut_due_us)
        crdt_state_cut_renew(node_state_crdt(n->state));
    int err =
        crdt_state_message(node_state_crdt(n->state), rest, settled || force, &n->message, &done);
    if (err < 0) {
        n->message_errors++;
        return;
    }
    cut_account(a, &done, now_us);
    a->differences += done.differences;
    a->joined += done.joined;
    if (own) {
        round->equal = round->equal || (done.summary && done.equal);
        round->too_many = round->too_many || done.too_many;
        round->incomparable = round->incomparable || done.incomparable;
        round->differences += done.differences;
        round->joined += done.joined;
    }
    /* While deltas are in transit to either node, a difference will most likely settle without
     * repair. */
    bool wait = kind == NODE_MESSAGE_SUMMARY && !settled && !force && !done.equal;
    if (n->message.len > NODE_MESSAGE_HEAD && !wait)
        (void)node_message_send(n, peer, now_us);
    else if (kind == NODE_MESSAGE_SUMMARY)
        node_message_say(n, peer,
                         done.equal          ? NODE_MESSAGE_EQUAL
                         : done.incomparable ? NODE_MESSAGE_INCOMPARABLE
                                             : NODE_MESSAGE_DIFFERS,
                         now_us);
    if (own && n->message.len <= NODE_MESSAGE_HEAD)
        round_end(n);
    if (wait)
        return;
    if (done.too_many)
        take_snapshot(n, peer, now_us);
}

static void take_verdict(struct node_replication *n, uint64_t peer, enum node_message verdict)
{
    struct node_round *round = &n->reconcile.round;
    if (!round->open || round->peer != peer)
        return;
    round->equal = verdict == NODE_MESSAGE_EQUAL;
    round->differs = verdict == NODE_MESSAGE_DIFFERS;
    round->incomparable = verdict == NODE_MESSAGE_INCOMPARABLE;
    round_end(n);
}

void node_reconcile_message(struct node_replication *n, uint64_t peer, struct slice bytes,
                            bool settled, uint64_t now_us)
{
    struct wire_reader r = wire_reader_of(bytes.at, bytes.len);
    enum node_message kind = (enum node_message)wire_read_u8(&r);
    uint8_t flags = wire_read_u8(&r);
    uint64_t cluster_ms = wire_read_u48(&r);
    uint64_t age_s = wire_read_u16(&r);
    struct slice rest = wire_read_bytes(&r, wire_left(&r));
    if (r.bad) {
        n->message_errors++;
        return;
    }
    n->reconcile.bytes_in += bytes.len;
    if (n->reconcile.round.open && n->reconcile.round.peer == peer) {
        n->reconcile.round.bytes_in += bytes.len;
        n->reconcile.round.ended_us = now_us;
    }
    node_clock_heard(n, peer, cluster_ms, age_s, now_us);
    switch (kind) {
    case NODE_MESSAGE_SUMMARY:
    case NODE_MESSAGE_STEP:
        /* A joining node has nothing to compare yet, because the snapshot is still in transit. */
        if (n->ready)
            take_state(n, peer, kind, flags, rest, settled, now_us);
        break;
    case NODE_MESSAGE_EQUAL:
    case NODE_MESSAGE_DIFFERS:
    case NODE_MESSAGE_INCOMPARABLE:
        take_verdict(n, peer, kind);
        break;
    case NODE_MESSAGE_CLOCK_ASK:
        node_message_say(n, peer, NODE_MESSAGE_CLOCK, now_us);
        break;
    case NODE_MESSAGE_CLOCK:
        break;
    default: /* a kind of a later version */
        n->messages_skipped++;
    }
}
