/* The replication's JSON for operators: members with vectors and lag, digests, counters. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/check.h"
#include "base/err.h"
#include "base/json_write.h"
#include "base/version.h"
#include "node/cluster/replication_internal.h"

/* With more members, `vector` and `hears` are left out: their size grows with the square of the
 * members. */
enum { VECTORS_MAX = 64 };
enum { DUPLICATE_US = 60000000 };

static uint64_t since_us(uint64_t then_us, uint64_t now_us)
{
    return now_us > then_us ? now_us - then_us : 0;
}

static void put_ms(struct json_writer *w, const char *key, uint64_t us)
{
    json_put_double(w, key, (double)us / 1000);
}

static void put_hex(struct json_writer *w, const char *key, uint64_t value)
{
    char text[17];
    (void)snprintf(text, sizeof text, "%016" PRIx64, value);
    json_put_cstr(w, key, text);
}

/* --- members -------------------------------------------------------------------------------- */

/* Writes the numbers up to which the member `m` has applied each author's deltas: as last
 * announced, or, for this node, the current numbers. */
static void put_vector(struct json_writer *w, const struct gossip *g, const struct gossip_member *m,
                       uint64_t now_us)
{
    json_put_object(w, "vector");
    for (unsigned i = 0; i < gossip_member_count(g); i++) {
        struct gossip_member author;
        gossip_member_at(g, i, now_us, &author);
        uint64_t epoch = author.incarnation >> 16, seq = author.seq_applied;
        if (m->self && author.self)
            seq = author.seq_known;
        else if (!m->self && gossip_vector_of(g, m->node, author.node, &epoch, &seq) != ERR_OK)
            continue;
        json_put_array(w, author.name);
        json_u64(w, epoch);
        json_u64(w, seq);
        json_array_end(w);
    }
    json_object_end(w);
}

/* Writes how many of the member's deltas this node has not applied, and how many of this node's
 * deltas the member has not applied. */
static void put_lag(struct json_writer *w, const struct gossip *g, const struct gossip_member *m,
                    const struct gossip_member *self)
{
    json_put_u64(w, "lag_deltas",
                 m->seq_known > m->seq_applied ? m->seq_known - m->seq_applied : 0);
    put_ms(w, "lag_ms", m->lag_us);
    uint64_t epoch, seq;
    json_key(w, "lacks_of_ours");
    if (gossip_vector_of(g, m->node, self->node, &epoch, &seq) != ERR_OK)
        json_nil(w);
    else if (epoch != self->incarnation >> 16)
        json_u64(w, self->seq_known);
    else
        json_u64(w, self->seq_known > seq ? self->seq_known - seq : 0);
}

/* Writes the member's addresses, the likeliest first, each with the source of this knowledge. */
static void put_places(struct json_writer *w, const struct gossip *g, const struct gossip_member *m,
                       uint64_t now_us)
{
    struct gossip_place places[GOSSIP_PLACES_MAX];
    unsigned count = gossip_member_places(g, m->node, places);
    json_put_array(w, "places");
    for (unsigned i = 0; i < count; i++) {
        char address[NODE_ADDRESS_MAX];
        node_address_text(&places[i].at, address);
        json_object_begin(w);
        json_put_cstr(w, "address", address);
        json_put_cstr(w, "kind", gossip_place_text(places[i].kind));
        json_put_bool(w, "own_word", places[i].own);
        bool answered = places[i].answered_us != 0 && !m->self;
        json_put_double(w, "answered_ms_ago",
                        answered ? (double)since_us(places[i].answered_us, now_us) / 1000 : NAN);
        json_object_end(w);
    }
    json_array_end(w);
}

/* Writes `duplicate_name` and `duplicate_at` if within the last minute a second live router seemed
 * to have the member's name. */
static void put_duplicate(struct json_writer *w, const struct gossip *g,
                          const struct gossip_member *m, uint64_t now_us)
{
    struct gossip_stats s;
    gossip_stats(g, &s);
    if (s.name_conflict_us == 0 || s.name_conflict != m->node ||
        now_us > s.name_conflict_us + DUPLICATE_US)
        return;
    char address[NODE_ADDRESS_MAX];
    node_address_text(&s.name_conflict_at, address);
    json_put_bool(w, "duplicate_name", true);
    json_put_cstr(w, "duplicate_at", address);
}

/* Writes the address at which the member accepts no TCP calls, if TCP to the member is filtered. */
static void put_filtered(struct json_writer *w, const struct node_replication *n,
                         const struct node_peer *p, uint64_t now_us)
{
    char at[NODE_ADDRESS_MAX];
    if (p && node_peer_filtered(n, p, now_us, at))
        json_put_cstr(w, "tcp_filtered", at);
}

static void put_member(struct json_writer *w, const struct node_replication *n,
                       const struct gossip_member *m, const struct gossip_member *self,
                       uint64_t now_us)
{
    const struct node_peer *p = node_replication_peer(n, m->node);
    json_object_begin(w);
    json_put_cstr(w, "name", m->name);
    put_hex(w, "id", m->node);
    json_put_bool(w, "self", m->self);
    json_put_cstr(w, "state", gossip_state_text(m->state));
    json_put_bool(w, "ready", m->self ? n->ready : p && p->ready);
    json_put_bool(w, "draining", m->self ? n->draining : p && p->draining);
    json_put_u64(w, "incarnation", m->incarnation);
    json_put_u64(w, "epoch_ms", m->incarnation >> 16);
    char address[NODE_ADDRESS_MAX];
    node_address_text(&m->address, address);
    json_put_cstr(w, "address", address);
    json_put_cstr(w, "admin", m->self ? n->admin : p ? p->admin : "");
    if (p) {
        json_put_cstr(w, "version", p->version);
        json_put_cstr(w, "policy", p->policy);
        json_put_u64(w, "started_ms", p->started_ms);
        char hints[NODE_DETAIL_MAX];
        node_peer_hints(n, p, hints);
        if (hints[0] != '\0')
            json_put_cstr(w, "hints", hints);
    } else if (m->self) {
        json_put_cstr(w, "version", version_text);
        json_put_cstr(w, "policy", n->config.policy);
    }
    put_places(w, n->gossip, m, now_us);
    put_duplicate(w, n->gossip, m, now_us);
    if (p && p->mismatch) {
        char differs[NODE_DETAIL_MAX];
        node_peer_differs(n, p, differs);
        json_put_bool(w, "mismatch", true);
        json_put_cstr(w, "differs", differs);
    }
    json_put_array(w, "speaks");
    json_u64(w, m->speaks.least);
    json_u64(w, m->speaks.greatest);
    json_array_end(w);
    if (p && !m->understood) {
        char speaks[NODE_DETAIL_MAX];
        node_peer_speaks(n, p, speaks);
        json_put_cstr(w, "not_understood", speaks);
    }
    if (m->quarantined)
        json_put_bool(w, "quarantined", true);
    put_filtered(w, n, p, now_us);
    if (!m->self) {
        json_put_bool(w, "session", m->session);
        put_ms(w, "heard_ms_ago", m->heard_us > 0 ? since_us(m->heard_us, now_us) : 0);
        put_ms(w, "rtt_ms", m->rtt_us);
        put_lag(w, n->gossip, m, self);
        json_put_u64(w, "packets_in", m->packets_in);
        json_put_u64(w, "packets_out", m->packets_out);
        json_put_u64(w, "bytes_in", m->bytes_in);
        json_put_u64(w, "bytes_out", m->bytes_out);
    }
    if (gossip_member_count(n->gossip) <= VECTORS_MAX)
        put_vector(w, n->gossip, m, now_us);
    json_object_end(w);
}

int node_replication_members_json(const struct node_replication *n, uint64_t now_us,
                                  struct buf *out)
{
    struct json_writer w = json_writer_of(out);
    struct gossip_member self;
    CHECK(gossip_member_find(n->gossip, gossip_self(n->gossip), now_us, &self) == ERR_OK);
    json_array_begin(&w);
    for (unsigned i = 0; i < gossip_member_count(n->gossip); i++) {
        struct gossip_member m;
        gossip_member_at(n->gossip, i, now_us, &m);
        if (node_member_shown(n, &m, now_us))
            put_member(&w, n, &m, &self, now_us);
    }
    json_array_end(&w);
    return json_writer_finish(&w);
}

int node_replication_members_brief_json(const struct node_replication *n, uint64_t now_us,
                                        struct buf *out)
{
    struct json_writer w = json_writer_of(out);
    struct gossip_member self, m;
    CHECK(gossip_member_find(n->gossip, gossip_self(n->gossip), now_us, &self) == ERR_OK);
    json_array_begin(&w);
    for (unsigned i = 0; i < gossip_member_count(n->gossip); i++) {
        gossip_member_at(n->gossip, i, now_us, &m);
        if (!node_member_shown(n, &m, now_us))
            continue;
        const struct node_peer *p = node_replication_peer(n, m.node);
        json_object_begin(&w);
        json_put_cstr(&w, "name", m.name);
        json_put_bool(&w, "self", m.self);
        json_put_cstr(&w, "state", gossip_state_text(m.state));
        json_put_bool(&w, "ready", m.self ? n->ready : p && p->ready);
        json_put_bool(&w, "draining", m.self ? n->draining : p && p->draining);
        json_put_cstr(&w, "admin", m.self ? n->admin : p ? p->admin : "");
        json_put_cstr(&w, "version", m.self ? version_text : p ? p->version : "");
        json_put_u64(&w, "started_ms", m.incarnation >> 16);
        if (!m.self) {
            json_put_bool(&w, "session", m.session);
            json_put_known(&w, "heard_ms", m.heard_us > 0, since_us(m.heard_us, now_us) / 1000);
            put_ms(&w, "rtt_ms", m.rtt_us);
            put_filtered(&w, n, p, now_us);
            put_lag(&w, n->gossip, &m, &self);
        }
        json_object_end(&w);
    }
    json_array_end(&w);
    return json_writer_finish(&w);
}

int node_replication_not_asked_json(const struct node_replication *n, uint64_t now_us,
                                    struct buf *out)
{
    struct json_writer w = json_writer_of(out);
    json_object_begin(&w);
    for (unsigned i = 0; i < gossip_member_count(n->gossip); i++) {
        struct gossip_member m;
        gossip_member_at(n->gossip, i, now_us, &m);
        if (!node_member_shown(n, &m, now_us))
            continue;
        if (!m.self && m.state != GOSSIP_ALIVE && m.state != GOSSIP_SUSPECT)
            json_put_cstr(&w, m.name, gossip_state_text(m.state));
        else if (!m.self && !m.understood)
            json_put_cstr(&w, m.name, "not understood");
    }
    json_object_end(&w);
    return json_writer_finish(&w);
}

/* --- digests: the format is in node/cluster/digests.h -------------------------------------------
 */

/* Writes how long ago this node heard each other member, in milliseconds; null: never, or the
 * member is not alive. */
static void put_hears(struct json_writer *w, const struct node_replication *n, uint64_t now_us)
{
    unsigned count = gossip_member_count(n->gossip);
    json_put_object(w, "hears");
    for (unsigned i = 0; i < count && count <= VECTORS_MAX; i++) {
        struct gossip_member m;
        gossip_member_at(n->gossip, i, now_us, &m);
        if (m.self)
            continue;
        json_put_known(w, m.name, m.state <= GOSSIP_SUSPECT && m.heard_us > 0,
                       since_us(m.heard_us, now_us) / 1000);
    }
    json_object_end(w);
}

int node_replication_digests_json(const struct node_replication *n, uint64_t now_us,
                                  struct buf *out)
{
    const struct crdt_state *state = node_state_crdt(n->state);
    const struct crdt_index *index = node_state_index(n->state);
    uint32_t floor = crdt_index_floor(index), now = crdt_index_now(index);
    struct crdt_digest digest;
    crdt_state_digest(state, floor, &digest);
    struct json_writer w = json_writer_of(out);
    json_object_begin(&w);
    json_put_bool(&w, "ready", n->ready);
    json_put_u64(&w, "floor", floor);
    json_put_u64(&w, "now", now);
    put_hex(&w, "registry", digest.registry);
    put_hex(&w, "log", 0); /* for routers from before ADR 0067, which send 0 and count a missing
                            * digest as a difference */
    put_hex(&w, "poison", digest.poison);
    put_hex(&w, "reports", digest.reports);
    put_hex(&w, "whole_index", digest.index);
    put_hears(&w, n, now_us);
    json_put_array(&w, "index");
    for (uint32_t g = floor; g <= now + 1; g++) {
        uint64_t entries = crdt_index_entries_at(index, g);
        if (entries == 0)
            continue;
        json_object_begin(&w);
        json_put_u64(&w, "generation", g);
        json_put_u64(&w, "entries", entries);
        put_hex(&w, "digest", crdt_index_digest_at(index, g));
        json_object_end(&w);
    }
    json_array_end(&w);
    json_object_end(&w);
    return json_writer_finish(&w);
}

/* --- counters ------------------------------------------------------------------------------- */

static void put_round(struct json_writer *w, const struct node_replication *n, const char *key,
                      const struct node_round *r, uint64_t now_us)
{
    json_key(w, key);
    if (r->peer == 0) {
        json_nil(w);
        return;
    }
    const struct node_peer *p = node_replication_peer(n, r->peer);
    json_object_begin(w);
    json_put_cstr(w, "with", p ? p->name : "");
    put_ms(w, "ago_ms", since_us(r->began_us, now_us));
    put_ms(w, "took_ms", r->ended_us - r->began_us);
    json_put_cstr(w, "result",
                  r->open           ? "under way"
                  : r->too_many     ? "too many differences: a snapshot is taken"
                  : r->worked       ? "repaired"
                  : r->equal        ? "equal"
                  : r->differs      ? "differs, perhaps on its way"
                  : r->incomparable ? "not comparable"
                                    : "no answer");
    json_put_bool(w, "forced", r->force);
    json_put_u64(w, "differences", r->differences);
    json_put_u64(w, "joined", r->joined);
    json_put_u64(w, "bytes_out", r->bytes_out);
    json_put_u64(w, "bytes_in", r->bytes_in);
    json_object_end(w);
}

static void put_reconcile(struct json_writer *w, const struct node_replication *n, uint64_t now_us)
{
    const struct node_reconcile *a = &n->reconcile;
    json_put_object(w, "reconcile");
    put_round(w, n, "last_round", &a->round, now_us);
    put_round(w, n, "last_repair", &a->repair, now_us);
    json_put_u64(w, "rounds", a->rounds);
    json_put_u64(w, "rounds_equal", a->rounds_equal);
    json_put_u64(w, "rounds_unsettled", a->rounds_unsettled);
    json_put_u64(w, "rounds_incomparable", a->rounds_incomparable);
    json_put_u64(w, "rounds_repaired", a->rounds_worked);
    json_put_u64(w, "rounds_unanswered", a->rounds_unanswered);
    json_put_u64(w, "rounds_too_many", a->rounds_too_many);
    json_put_u64(w, "differences", a->differences);
    json_put_u64(w, "joined", a->joined);
    json_put_u64(w, "bytes_out", a->bytes_out);
    json_put_u64(w, "bytes_in", a->bytes_in);
    json_object_end(w);
}

static void put_frames(struct json_writer *w, const char *key, const uint64_t *count,
                       const uint64_t *bytes)
{
    json_put_object(w, key);
    for (unsigned f = 0; f < GOSSIP_FRAMES; f++) {
        if (count[f] == 0)
            continue;
        json_key(w, gossip_frame_text((enum gossip_frame)f));
        json_object_begin(w);
        json_put_u64(w, "frames", count[f]);
        json_put_u64(w, "bytes", bytes[f]);
        json_object_end(w);
    }
    json_object_end(w);
}

static void put_gossip(struct json_writer *w, const struct gossip_stats *s)
{
    json_put_object(w, "gossip");
    json_put_u64(w, "packets_in", s->packets_in);
    json_put_u64(w, "packets_out", s->packets_out);
    json_put_u64(w, "bytes_in", s->bytes_in);
    json_put_u64(w, "bytes_out", s->bytes_out);
    put_frames(w, "frames_in", s->frames_in, s->frame_bytes_in);
    put_frames(w, "frames_out", s->frames_out, s->frame_bytes_out);
    json_put_u64(w, "refused_key", s->refused_key);
    json_put_u64(w, "other_cluster", s->other_cluster);
    json_put_u64(w, "hellos_held", s->hellos_held);
    json_put_u64(w, "refused_replay", s->refused_replay);
    json_put_u64(w, "refused_malformed", s->refused_malformed);
    json_put_u64(w, "frames_skipped", s->frames_skipped);
    json_put_u64(w, "sessions", s->sessions);
    json_put_u64(w, "handshakes", s->handshakes);
    json_put_u64(w, "rekeys", s->rekeys);
    json_put_u64(w, "deltas_produced", s->deltas_produced);
    json_put_u64(w, "deltas_applied", s->deltas_applied);
    json_put_u64(w, "deltas_again", s->deltas_again);
    json_put_u64(w, "gaps", s->gaps);
    json_put_u64(w, "gaps_repaired", s->gaps_repaired);
    json_put_u64(w, "gaps_lost", s->gaps_lost);
    json_put_u64(w, "messages_failed", s->messages_failed);
    json_put_u64(w, "relayed", s->relayed);
    json_put_u64(w, "name_conflicts", s->name_conflicts);
    json_put_u64(w, "quarantines", s->quarantines);
    json_put_u64(w, "no_room", s->no_room);
    json_put_u64(w, "routers_refused", s->routers_refused);
    json_put_u64(w, "refusals_doubted", s->refusals_doubted);
    json_put_u64(w, "suspected", s->suspected);
    json_put_u64(w, "refuted", s->refuted);
    json_put_u64(w, "died", s->died);
    json_put_u64(w, "rate_held", s->rate_held);
    json_put_u64(w, "ring_bytes", s->ring_bytes);
    json_object_end(w);
}

static void put_state(struct json_writer *w, const struct node_replication *n)
{
    struct crdt_state *state = node_state_crdt(n->state);
    struct crdt_state_stats s;
    struct crdt_index_stats x;
    crdt_state_stats(state, &s);
    crdt_index_stats(crdt_state_index(state), &x);
    json_put_object(w, "state");
    json_put_u64(w, "observations_in", s.observations_in);
    json_put_u64(w, "observations_new", s.observations_new);
    json_put_u64(w, "observations_out", s.observations_out);
    json_put_u64(w, "unknown_replica", s.unknown_replica);
    json_put_u64(w, "unknown_router", s.unknown_router);
    json_put_u64(w, "stale", s.stale);
    json_put_u64(w, "future", s.future);
    json_put_u64(w, "full", s.full);
    json_put_u64(w, "malformed", s.malformed);
    json_put_u64(w, "records_skipped", s.records_skipped);
    json_put_u64(w, "sections_skipped", s.sections_skipped);
    json_put_u64(w, "outbox_bytes", s.outbox_bytes);
    json_put_u64(w, "outbox_dropped", s.outbox_dropped);
    json_put_u64(w, "tidings_in", s.tidings_in);
    json_put_u64(w, "tidings_out", s.tidings_out);
    json_put_u64(w, "tidings_dropped", s.tidings_dropped);
    json_put_u64(w, "index_entries", x.entries);
    json_put_u64(w, "index_bytes", x.bytes);
    json_put_u64(w, "index_bytes_used", x.bytes_used);
    json_put_u64(w, "index_bytes_max", x.bytes_max);
    json_put_u64(w, "index_evicted", x.evicted);
    json_object_end(w);
}

int node_replication_stats_json(const struct node_replication *n, uint64_t now_us, struct buf *out)
{
    struct gossip_stats g;
    gossip_stats(n->gossip, &g);
    struct json_writer w = json_writer_of(out);
    json_object_begin(&w);
    json_put_bool(&w, "ready", n->ready);
    put_ms(&w, "ready_after_ms", n->ready ? n->ready_us - n->started_us : 0);
    json_put_object(&w, "snapshots");
    json_put_u64(&w, "taken", n->snapshots);
    json_put_u64(&w, "failed", n->snapshots_failed);
    json_put_u64(&w, "bytes", n->snapshot_bytes);
    put_ms(&w, "last_took_ms", n->snapshot_us);
    json_object_end(&w);
    json_put_object(&w, "clock");
    json_put_u64(&w, "cluster_ms", node_state_cluster_ms(n->state, node_replication_ms(now_us)));
    json_put_i64(&w, "ahead_of_wall_ms", node_state_clock_off_ms(n->state));
    json_put_u64(&w, "slewed_ms", n->clock_slewed_ms);
    json_put_u64(&w, "forward", n->clock_forward);
    json_put_u64(&w, "back", n->clock_back);
    json_object_end(&w);
    json_put_u64(&w, "delta_errors", n->delta_errors);
    json_put_u64(&w, "message_errors", n->message_errors);
    json_put_u64(&w, "messages_skipped", n->messages_skipped);
    json_put_u64(&w, "parts_skipped", n->parts_skipped);
    json_put_u64(&w, "calls_served", n->served);
    put_reconcile(&w, n, now_us);
    put_state(&w, n);
    put_gossip(&w, &g);
    json_object_end(&w);
    return json_writer_finish(&w);
}
