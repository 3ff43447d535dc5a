/* Metrics of the replication. Label values come from this file and gossip.h only. */
#include "base/check.h"
#include "node/cluster/replication_internal.h"

static void put_frames(struct prometheus *p, const char *name, const char *help, const uint64_t *in,
                       const uint64_t *sent)
{
    prometheus_family(p, name, help);
    for (unsigned f = 0; f < GOSSIP_FRAMES; f++) {
        struct slice frame = slice_of_cstr(gossip_frame_text((enum gossip_frame)f));
        prometheus_label(p, "frame", frame);
        prometheus_label(p, "direction", SLICE("in"));
        prometheus_value(p, (double)in[f]);
        prometheus_label(p, "frame", frame);
        prometheus_label(p, "direction", SLICE("out"));
        prometheus_value(p, (double)sent[f]);
    }
}

static void put_members(const struct node_replication *n, uint64_t now_us, struct prometheus *p)
{
    unsigned states[GOSSIP_LEFT + 1] = {0};
    uint64_t lag_us = 0, lag_deltas = 0;
    unsigned foreign = 0;
    for (unsigned i = 0; i < gossip_member_count(n->gossip); i++) {
        struct gossip_member m;
        gossip_member_at(n->gossip, i, now_us, &m);
        states[m.state]++;
        if (m.self)
            continue;
        foreign += !m.understood && m.state <= GOSSIP_SUSPECT;
        lag_us = m.lag_us > lag_us ? m.lag_us : lag_us;
        lag_deltas += m.seq_known > m.seq_applied ? m.seq_known - m.seq_applied : 0;
    }
    prometheus_family(p, "cluster_members", "Members by state, this one included.");
    for (unsigned i = 0; i < ARRAY_LEN(states); i++) {
        prometheus_label(p, "state", slice_of_cstr(gossip_state_text((enum gossip_state)i)));
        prometheus_value(p, states[i]);
    }
    const struct prometheus_figure rows[] = {
        {"cluster_members_not_understood", "Living members without a common protocol version.",
         foreign},
        {"cluster_members_tcp_filtered", "Members heard over UDP and unreachable over TCP.",
         node_replication_filtered(n, now_us)},
        {"cluster_other_asks", "1 if another cluster-name asked to join in the last minute.",
         node_replication_knocked(n, now_us)},
        {"cluster_lag_seconds", "Age of the oldest delta not applied.", (double)lag_us / 1e6},
        {"cluster_lag_deltas", "Known deltas not applied.", (double)lag_deltas},
    };
    prometheus_figures(p, rows, ARRAY_LEN(rows));
}

static void put_reconcile(const struct node_replication *n, struct prometheus *p)
{
    const struct node_reconcile *a = &n->reconcile;
    const struct {
        const char *result;
        uint64_t count;
    } results[] = {
        {"equal", a->rounds_equal},
        {"unsettled", a->rounds_unsettled},
        {"incomparable", a->rounds_incomparable},
        {"repaired", a->rounds_worked},
        {"too_many", a->rounds_too_many},
        {"unanswered", a->rounds_unanswered},
    };
    prometheus_family(p, "reconcile_rounds_total", "Anti-entropy rounds begun, by result.");
    for (unsigned i = 0; i < ARRAY_LEN(results); i++) {
        prometheus_label(p, "result", slice_of_cstr(results[i].result));
        prometheus_value(p, (double)results[i].count);
    }
    const struct prometheus_figure rows[] = {
        {"reconcile_differences_total", "Differences that anti-entropy found.",
         (double)a->differences},
        {"reconcile_bytes_out_total", "Bytes that anti-entropy sent.", (double)a->bytes_out},
        {"reconcile_bytes_in_total", "Bytes that anti-entropy received.", (double)a->bytes_in},
        {"snapshots_total", "Snapshots taken from peers.", (double)n->snapshots},
        {"snapshots_failed_total", "Snapshots that failed.", (double)n->snapshots_failed},
    };
    prometheus_figures(p, rows, ARRAY_LEN(rows));
}

static void put_skipped(const struct node_replication *n, const struct gossip_stats *g,
                        const struct crdt_state_stats *s, struct prometheus *p)
{
    const struct {
        const char *what;
        uint64_t count;
    } rows[] = {{"frame", g->frames_skipped},
                {"record", s->records_skipped},
                {"section", s->sections_skipped},
                {"message", n->messages_skipped},
                {"part", n->parts_skipped}};
    prometheus_family(p, "cluster_skipped_total",
                      "Data of newer routers that this version does not know, by kind.");
    for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
        prometheus_label(p, "what", slice_of_cstr(rows[i].what));
        prometheus_value(p, (double)rows[i].count);
    }
}

void node_replication_metrics(const struct node_replication *n, uint64_t now_us,
                              struct prometheus *p)
{
    struct gossip_stats g;
    struct crdt_state_stats s;
    gossip_stats(n->gossip, &g);
    crdt_state_stats(node_state_crdt(n->state), &s);
    const struct prometheus_figure rows[] = {
        {"cluster_ready", "1 if this router has joined.", n->ready},
        {"cluster_clock_ahead_seconds", "Cluster time minus the wall clock.",
         (double)node_state_clock_off_ms(n->state) / 1000},
        {"cluster_clock_jumps_total", "Large corrections of the cluster time.",
         (double)(n->clock_forward + n->clock_back)},
        {"gossip_packets_in_total", "Gossip packets received.", (double)g.packets_in},
        {"gossip_packets_out_total", "Gossip packets sent.", (double)g.packets_out},
        {"gossip_bytes_in_total", "UDP payload of gossip received.", (double)g.bytes_in},
        {"gossip_bytes_out_total", "UDP payload of gossip sent.", (double)g.bytes_out},
        {"gossip_refused_key_total", "Packets without proof of the cluster key.",
         (double)g.refused_key},
        {"gossip_other_cluster_total", "Hellos with this cluster's key and another cluster-name.",
         (double)g.other_cluster},
        {"gossip_hellos_held_total", "Hellos not opened because too many came.",
         (double)g.hellos_held},
        {"gossip_refused_replay_total", "Packets seen before or too old.",
         (double)g.refused_replay},
        {"gossip_refused_malformed_total", "Invalid packets of a member.",
         (double)g.refused_malformed},
        {"gossip_gaps_total", "Gaps in an author's deltas.", (double)g.gaps},
        {"gossip_gaps_lost_total", "Missed deltas left to anti-entropy.", (double)g.gaps_lost},
        {"gossip_deaths_total", "Members found dead.", (double)g.died},
        {"gossip_name_conflicts_total", "Packets that show another router with this name.",
         (double)g.name_conflicts},
        {"gossip_quarantines_total", "Members ignored for invalid frames.", (double)g.quarantines},
        {"gossip_routers_refused_total", "Routers over the limit of routers.",
         (double)g.routers_refused},
        {"gossip_refusals_doubted_total",
         "Refusals of this router by others, ignored because too few members refuse it.",
         (double)g.refusals_doubted},
        {"gossip_no_room_total", "Members or messages refused over a limit.", (double)g.no_room},
        {"gossip_ring_bytes", "Own updates kept for repair.", (double)g.ring_bytes},
        {"gossip_rate_held_total", "Packets delayed by the bandwidth limit.", (double)g.rate_held},
        {"state_observations_in_total", "Observations received from other routers.",
         (double)s.observations_in},
        {"state_observations_new_total", "Received observations that were new.",
         (double)s.observations_new},
        {"state_observations_out_total", "Observations sent to other routers.",
         (double)s.observations_out},
        {"state_outbox_dropped_total", "Observations over the send limit.",
         (double)s.outbox_dropped},
        {"state_tidings_dropped_total", "Reports for KV-cache events over the send limit.",
         (double)s.tidings_dropped},
        {"state_refused_future_total", "Observations from the future.", (double)s.future},
        {"state_refused_stale_total", "Observations that came too late.", (double)s.stale},
        {"state_refused_full_total",
         "Data of other routers refused because this router has no room.", (double)s.full},
        {"state_malformed_total", "Invalid deltas and messages.", (double)s.malformed},
    };
    prometheus_figures(p, rows, ARRAY_LEN(rows));
    put_members(n, now_us, p);
    put_skipped(n, &g, &s, p);
    put_reconcile(n, p);
    put_frames(p, "gossip_frames_total", "Gossip frames by type.", g.frames_in, g.frames_out);
    put_frames(p, "gossip_frame_bytes_total", "Bytes of gossip frames by type.", g.frame_bytes_in,
               g.frame_bytes_out);
}
