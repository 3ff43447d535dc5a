/* Becoming ready: a snapshot from a ready peer.
 *
 * The answer of a snapshot call is a head, the state in chunks, and at the end the vector. The head
 * says if the peer is ready, the peer's cluster time, and which routers live. The vector is from
 * the snapshot's *start*: everything applied according to the vector was in the peer's state before
 * the first chunk was made. */
#include <stdio.h>

#include "base/bug.h"
#include "base/check.h"
#include "base/err.h"
#include "node/cluster/replication_internal.h"
#include "node/cluster/snapshot.h"

enum {
    RETRY_US = 200000,
    AGAIN_US = 20000, /* retry wait after a head with unknown routers, which appear soon */
    /* If no call to join succeeded for this time, TCP counts as filtered, and the state must come
     * in datagrams. A router started at the same time listens before then. */
    UNREACHED_US = 10000000,
    WAITS_MAX = 50,
};

static unsigned calls_of(const struct node_replication *n, enum node_call_use use)
{
    unsigned count = 0;
    for (unsigned i = 0; i < NODE_CALLS_MAX; i++)
        count += n->calls[i].use == use;
    return count;
}

/* A random ready member, if possible not the member of the last failed snapshot. 0: none. */
static uint64_t draw_ready(struct node_replication *n, uint64_t now_us)
{
    uint64_t drawn = 0, failed = 0;
    unsigned count = 0;
    for (unsigned i = 0; i < n->peer_count; i++) {
        const struct node_peer *p = &n->peers[i];
        struct gossip_member m;
        if (p->state != GOSSIP_ALIVE || !node_peer_counts(p) || p->refuses || !p->ready ||
            gossip_member_find(n->gossip, p->node, now_us, &m) != ERR_OK || m.address.port == 0)
            continue;
        if (p->node == n->not_from)
            failed = p->node;
        else if (prng_below(&n->prng, ++count) == 0)
            drawn = p->node;
    }
    return drawn != 0 ? drawn : failed;
}

/* True if no other member is ready, and this node has the smallest id: then it becomes ready after
 * a third of `alone_us`. */
static bool is_first(const struct node_replication *n)
{
    unsigned others = 0;
    for (unsigned i = 0; i < n->peer_count; i++) {
        const struct node_peer *p = &n->peers[i];
        if (!node_peer_counts(p))
            continue;
        if (p->ready || p->node < gossip_self(n->gossip))
            return false;
        others++;
    }
    return others > 0;
}

/* Gives the reason why this node could request a snapshot from no live member. */
static void why_alone(const struct node_replication *n, char out[NODE_DETAIL_MAX])
{
    unsigned others = 0, foreign = 0;
    for (unsigned i = 0; i < n->peer_count; i++) {
        const struct node_peer *p = &n->peers[i];
        others += node_peer_lives(p);
        foreign += node_peer_lives(p) && (!p->understood || p->refuses);
    }
    if (foreign > 0)
        (void)snprintf(out, NODE_DETAIL_MAX, "members that are not understood: %u", foreign);
    else if (n->unreached_us != 0)
        (void)snprintf(out, NODE_DETAIL_MAX,
                       "TCP to the gossip port of every member that was asked is filtered: what "
                       "they know comes by datagrams, as far as it fits");
    else if (others > 0)
        (void)snprintf(out, NODE_DETAIL_MAX, "the first of those that know each other");
}

static void become_ready(struct node_replication *n, uint64_t of, uint64_t now_us)
{
    n->ready = true;
    n->ready_us = now_us;
    buf_free(&n->kept);
    n->kept_all = true;
    n->joining_announced = false;
    gossip_joining(n->gossip, false);
    node_replication_meta(n, now_us);
    node_replication_joined(n);
    char why[NODE_DETAIL_MAX] = "";
    if (of == 0)
        why_alone(n, why);
    node_replication_event_detail(n, NODE_REPLICATION_READY, of,
                                  (int64_t)((now_us - n->started_us) / 1000), why);
}

/* Sends the event of a failed snapshot, once a minute for each member. */
static void tell_failed(struct node_replication *n, struct node_peer *p, int err, uint64_t now_us)
{
    char at[NODE_ADDRESS_MAX];
    if (p && now_us < p->told_us)
        return;
    if (p)
        p->told_us = now_us + NODE_AGAIN_US;
    if (p && node_peer_filtered(n, p, now_us, at))
        node_peer_tell_filtered(n, p, now_us);
    else
        node_replication_event(n, NODE_REPLICATION_SNAPSHOT_FAILED, p ? p->node : 0, err);
}

static void ask(struct node_replication *n, uint64_t peer, uint64_t now_us)
{
    struct wire_writer w;
    uint8_t request[4];
    w = wire_writer_of(request, sizeof request);
    struct crdt_index *index = node_state_index(n->state);
    /* A joining node's clock may be wrong, so it requests all generations. */
    wire_write_u32(&w, n->ready ? crdt_index_floor(index) : 0);
    CHECK(!w.bad);
    if (node_call_open(n, NODE_CALL_JOIN, peer, NODE_CALL_SNAPSHOT,
                       slice_of((const char *)request, sizeof request), now_us))
        return;
    n->not_from = peer;
    if (n->unreached_us == 0)
        n->unreached_us = now_us > 0 ? now_us : 1;
    tell_failed(n, node_replication_peer(n, peer), ERR_UNREACHABLE, now_us);
}

/* --- deltas received meanwhile ---------------------------------------------------------------- */

/* While joining, the state skips entries about replicas unknown to this node, although they may be
 * newer than the snapshot. So these deltas are joined again when the snapshot is complete. */
void node_join_keep(struct node_replication *n, const struct crdt_origin *origin,
                    struct slice delta)
{
    size_t len = n->kept.len;
    uint64_t size = delta.len;
    if (len + sizeof *origin + sizeof size + delta.len > NODE_JOIN_KEPT_BYTES_MAX ||
        buf_append(&n->kept, origin, sizeof *origin) != ERR_OK ||
        buf_append(&n->kept, &size, sizeof size) != ERR_OK ||
        buf_append_slice(&n->kept, delta) != ERR_OK) {
        n->kept.len = len;
        n->kept_all = false;
    }
}

static void apply_kept(struct node_replication *n)
{
    struct slice rest = buf_slice(&n->kept);
    while (rest.len > 0) {
        struct crdt_origin origin;
        uint64_t size;
        memcpy(&origin, rest.at, sizeof origin);
        memcpy(&size, rest.at + sizeof origin, sizeof size);
        rest = slice_skip(rest, sizeof origin + sizeof size);
        DISCARD(crdt_state_apply(node_state_crdt(n->state), &origin, slice_of(rest.at, size)));
        rest = slice_skip(rest, size);
    }
    buf_free(&n->kept);
}

/* --- asking --------------------------------------------------------------------------------- */

static bool wants(const struct node_replication *n)
{
    return !n->ready || n->snapshot_of != 0 || n->lacks_snapshot;
}

/* Becomes ready with only the data from datagrams, because no call works. Reports each member. */
static void become_ready_unreached(struct node_replication *n, uint64_t now_us)
{
    uint64_t unreached_us = n->unreached_us;
    for (unsigned i = 0; i < n->peer_count; i++)
        node_peer_tell_filtered(n, &n->peers[i], now_us);
    apply_kept(n);
    become_ready(n, 0, now_us);
    n->unreached_us = unreached_us;
    n->lacks_snapshot = true;
    n->join_due_us = now_us + NODE_AGAIN_US;
}

void node_join_run(struct node_replication *n, uint64_t now_us)
{
    if (!wants(n) || calls_of(n, NODE_CALL_JOIN) > 0 || now_us < n->join_due_us)
        return;
    n->join_due_us = now_us + RETRY_US;
    if (n->ready) {
        uint64_t peer = n->snapshot_of != 0 ? n->snapshot_of : draw_ready(n, now_us);
        n->snapshot_of = 0;
        if (n->lacks_snapshot)
            n->join_due_us = now_us + NODE_AGAIN_US;
        if (node_replication_peer(n, peer))
            ask(n, peer, now_us);
        return;
    }
    uint64_t peer = draw_ready(n, now_us);
    if (n->unreached_us != 0 && now_us - n->unreached_us >= UNREACHED_US && !BUG(JOIN_ENDLESS)) {
        become_ready_unreached(n, now_us);
        return;
    }
    uint64_t wait_us = is_first(n) ? n->config.alone_us / 3 : n->config.alone_us;
    if (peer != 0)
        ask(n, peer, now_us);
    else if (now_us - n->started_us >= wait_us)
        become_ready(n, 0, now_us);
}

uint64_t node_join_due(const struct node_replication *n)
{
    return wants(n) && calls_of(n, NODE_CALL_JOIN) == 0 ? n->join_due_us : UINT64_MAX;
}

void node_join_again(struct node_replication *n, uint64_t now_us)
{
    /* Drops snapshots in transit, because they are for a state that was replaced. */
    for (unsigned i = 0; i < NODE_CALLS_MAX; i++) {
        if (n->calls[i].use == NODE_CALL_JOIN)
            n->calls[i].use = NODE_CALL_FREE;
    }
    n->snapshot_of = 0;
    n->ready = false;
    n->started_us = now_us;
    n->join_due_us = now_us;
    n->join_waits = 0;
    n->unreached_us = 0;
    n->lacks_snapshot = false;
    n->joining_announced = true;
    gossip_joining(n->gossip, true);
    node_replication_meta(n, now_us);
}

/* --- the answer ----------------------------------------------------------------------------- */

/* True if membership has announced all routers in the head. Otherwise their reports would be
 * skipped, but the vector would count them as applied. Membership announces them within a few
 * milliseconds. */
static bool knows_routers(const struct node_replication *n, struct wire_reader *r)
{
    bool known = true;
    uint64_t count = wire_read_varint_max(r, GOSSIP_ROUTERS_MAX);
    for (uint64_t i = 0; i < count && !r->bad; i++) {
        uint64_t router = wire_read_u64(r);
        uint64_t epoch = wire_read_u48(r);
        const struct node_peer *p = node_replication_peer(n, router);
        known = known && (router == gossip_self(n->gossip) || (p && p->epoch >= epoch));
    }
    return known;
}

static int take_head(struct node_replication *n, struct node_call *call, struct wire_reader *r,
                     uint64_t now_us)
{
    bool ready = wire_read_u8(r) != 0;
    uint64_t cluster_ms = wire_read_u48(r);
    if (r->bad)
        return ERR_SYNTAX;
    if (!ready && !n->ready)
        return ERR_AGAIN; /* the peer is not ready either */
    bool known = knows_routers(n, r);
    if (r->bad)
        return ERR_SYNTAX;
    if (!known && n->join_waits++ < WAITS_MAX)
        return ERR_AGAIN;
    if (!n->ready)
        node_clock_adopt(n, call->peer, cluster_ms, call->began_us, now_us);
    call->has_head = true;
    return ERR_OK;
}

static int take_chunk(struct node_replication *n, struct node_call *call, struct slice chunk,
                      uint64_t now_us)
{
    struct wire_reader r = wire_reader_of(chunk.at, chunk.len);
    uint8_t part = wire_read_u8(&r);
    struct slice rest = wire_read_bytes(&r, wire_left(&r));
    struct wire_reader head = wire_reader_of(rest.at, rest.len);
    if (part == NODE_SNAPSHOT_HEAD && !call->has_head)
        return take_head(n, call, &head, now_us);
    if (!call->has_head || call->has_vector)
        return ERR_SYNTAX;
    if (part == NODE_SNAPSHOT_STATE)
        return crdt_snapshot_apply(node_state_crdt(n->state), rest);
    if (part != NODE_SNAPSHOT_VECTOR) {
        n->parts_skipped++;
        return ERR_OK;
    }
    call->has_vector = true;
    return gossip_vector_adopt(n->gossip, rest, now_us);
}

void node_join_answer(struct node_replication *n, struct node_call *call, struct slice chunk,
                      uint64_t now_us)
{
    n->unreached_us = 0;
    call->bytes += chunk.len;
    call->chunks++;
    int err = take_chunk(n, call, chunk, now_us);
    node_replication_joined(n);
    if (err < 0)
        node_join_answered(n, call, err, now_us);
}

void node_join_answered(struct node_replication *n, struct node_call *call, int err,
                        uint64_t now_us)
{
    uint64_t peer = call->peer;
    bool whole = err == ERR_OK && call->has_vector;
    uint64_t took_us = now_us - call->began_us;
    n->snapshot_bytes += call->bytes;
    call->use = NODE_CALL_FREE;
    n->join_due_us = now_us + (err == ERR_AGAIN ? AGAIN_US : RETRY_US);
    if (!whole) {
        n->not_from = peer;
        struct node_peer *p = node_replication_peer(n, peer);
        if (p && (err == ERR_VERSION || err == ERR_UNSUPPORTED))
            p->refuses = true;
        if (err == ERR_AGAIN) {
            n->snapshot_of = n->ready ? peer : 0;
            return;
        }
        n->snapshots_failed++;
        if (!call->answered && n->unreached_us == 0)
            n->unreached_us = call->began_us > 0 ? call->began_us : 1;
        tell_failed(n, p, err != ERR_OK ? err : ERR_CLOSED, now_us);
        return;
    }
    n->snapshots++;
    n->lacks_snapshot = false;
    n->snapshot_us = took_us;
    n->join_waits = 0;
    apply_kept(n);
    if (!n->kept_all)
        node_reconcile_lost(n, peer, now_us);
    n->kept_all = true;
    node_replication_joined(n);
    node_replication_reports(n, now_us);
    if (!n->ready)
        become_ready(n, peer, now_us);
}
