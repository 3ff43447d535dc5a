/* Prometheus text of the seam. Labels are words of this file and of gossip.h. */
#include <inttypes.h>

#include "base/check.h"
#include "base/err.h"
#include "node/cluster/replication_internal.h"

struct figure {
    const char *name, *type, *help;
    double value;
};

static int put_figures(const struct figure *rows, unsigned count, struct buf *out)
{
    int err = ERR_OK;
    for (unsigned i = 0; i < count && err == ERR_OK; i++)
        err = buf_printf(
            out, "# HELP grapevine_%s %s\n# TYPE grapevine_%s %s\ngrapevine_%s %.15g\n",
            rows[i].name, rows[i].help, rows[i].name, rows[i].type, rows[i].name, rows[i].value);
    return err;
}

static int put_frames(const char *name, const char *help, const uint64_t *in, const uint64_t *sent,
                      struct buf *out)
{
    int err = buf_printf(out, "# HELP %s %s\n# TYPE %s counter\n", name, help, name);
    for (unsigned f = 0; f < GOSSIP_FRAMES && err == ERR_OK; f++)
        err = buf_printf(out,
                         "%s{frame=\"%s\",direction=\"in\"} %" PRIu64
                         "\n%s{frame=\"%s\",direction=\"out\"} %" PRIu64 "\n",
                         name, gossip_frame_text((enum gossip_frame)f), in[f], name,
                         gossip_frame_text((enum gossip_frame)f), sent[f]);
    return err;
}

static int put_members(const struct node_replication *n, uint64_t now_us, struct buf *out)
{
    unsigned states[GOSSIP_LEFT + 1] = {0};
    uint64_t lag_us = 0, lag_deltas = 0;
    for (unsigned i = 0; i < gossip_member_count(n->gossip); i++) {
        struct gossip_member m;
        gossip_member_at(n->gossip, i, now_us, &m);
        states[m.state]++;
        if (m.self)
            continue;
        lag_us = m.lag_us > lag_us ? m.lag_us : lag_us;
        lag_deltas += m.seq_known > m.seq_applied ? m.seq_known - m.seq_applied : 0;
    }
    int err = buf_printf(out, "# HELP grapevine_cluster_members Members by state, this one too.\n"
                              "# TYPE grapevine_cluster_members gauge\n");
    for (unsigned s = 0; s <= GOSSIP_LEFT && err == ERR_OK; s++)
        err = buf_printf(out, "grapevine_cluster_members{state=\"%s\"} %u\n",
                         gossip_state_text((enum gossip_state)s), states[s]);
    const struct figure rows[] = {
        {"cluster_lag_seconds", "gauge", "Age of the oldest delta that is known and not applied.",
         (double)lag_us / 1e6},
        {"cluster_lag_deltas", "gauge", "Deltas of all members that are known and not applied.",
         (double)lag_deltas},
    };
    return err == ERR_OK ? put_figures(rows, ARRAY_LEN(rows), out) : err;
}

static int put_reconcile(const struct node_replication *n, struct buf *out)
{
    const struct node_reconcile *a = &n->reconcile;
    const struct {
        const char *result;
        uint64_t count;
    } results[] = {
        {"equal", a->rounds_equal},           {"unsettled", a->rounds_unsettled},
        {"repaired", a->rounds_worked},       {"too_many", a->rounds_too_many},
        {"unanswered", a->rounds_unanswered},
    };
    int err = buf_printf(out, "# HELP grapevine_reconcile_rounds_total Rounds of anti-entropy that "
                              "this node began, by result.\n"
                              "# TYPE grapevine_reconcile_rounds_total counter\n");
    for (unsigned i = 0; i < ARRAY_LEN(results) && err == ERR_OK; i++)
        err = buf_printf(out, "grapevine_reconcile_rounds_total{result=\"%s\"} %" PRIu64 "\n",
                         results[i].result, results[i].count);
    const struct figure rows[] = {
        {"reconcile_differences_total", "counter", "Differences that anti-entropy found.",
         (double)a->differences},
        {"reconcile_bytes_out_total", "counter", "Bytes of its messages sent.",
         (double)a->bytes_out},
        {"reconcile_bytes_in_total", "counter", "Bytes of its messages received.",
         (double)a->bytes_in},
        {"snapshots_total", "counter", "Snapshots taken from peers.", (double)n->snapshots},
        {"snapshots_failed_total", "counter", "Snapshots that failed.",
         (double)n->snapshots_failed},
    };
    return err == ERR_OK ? put_figures(rows, ARRAY_LEN(rows), out) : err;
}

int node_replication_metrics(const struct node_replication *n, uint64_t now_us, struct buf *out)
{
    struct gossip_stats g;
    struct crdt_state_stats s;
    gossip_stats(n->gossip, &g);
    crdt_state_stats(node_state_crdt(n->state), &s);
    const struct figure rows[] = {
        {"cluster_ready", "gauge", "1 if this node has joined.", n->ready},
        {"cluster_clock_ahead_seconds", "gauge", "Cluster time minus the wall clock.",
         (double)node_state_clock_off_ms(n->state) / 1000},
        {"cluster_clock_jumps_total", "counter",
         "Times that cluster time was corrected by more than a time slice.",
         (double)(n->clock_forward + n->clock_back)},
        {"gossip_packets_in_total", "counter", "Packets received.", (double)g.packets_in},
        {"gossip_packets_out_total", "counter", "Packets sent.", (double)g.packets_out},
        {"gossip_bytes_in_total", "counter", "UDP payload received.", (double)g.bytes_in},
        {"gossip_bytes_out_total", "counter", "UDP payload sent.", (double)g.bytes_out},
        {"gossip_refused_key_total", "counter", "Packets that did not prove the cluster key.",
         (double)g.refused_key},
        {"gossip_refused_replay_total", "counter", "Packets seen before or too old.",
         (double)g.refused_replay},
        {"gossip_refused_malformed_total", "counter", "Packets of a member that made no sense.",
         (double)g.refused_malformed},
        {"gossip_gaps_total", "counter", "Gaps in an author's deltas.", (double)g.gaps},
        {"gossip_gaps_lost_total", "counter", "Deltas left to anti-entropy.", (double)g.gaps_lost},
        {"gossip_deaths_total", "counter", "Members found dead.", (double)g.died},
        {"gossip_name_conflicts_total", "counter",
         "Signs of another live router with this one's name.", (double)g.name_conflicts},
        {"gossip_quarantines_total", "counter",
         "Members passed over for a while, whose frames made no sense.", (double)g.quarantines},
        {"gossip_routers_refused_total", "counter",
         "Times that a router was beyond the limit of routers.", (double)g.routers_refused},
        {"gossip_no_room_total", "counter", "Members or messages beyond a limit.",
         (double)g.no_room},
        {"gossip_ring_bytes", "gauge", "Own news kept for those that missed it.",
         (double)g.ring_bytes},
        {"gossip_rate_held_total", "counter", "Packets held back by the bandwidth budget.",
         (double)g.rate_held},
        {"state_observations_in_total", "counter", "Observations of other routers received.",
         (double)s.observations_in},
        {"state_observations_new_total", "counter", "Of them, news.", (double)s.observations_new},
        {"state_observations_out_total", "counter", "Observations told to other routers.",
         (double)s.observations_out},
        {"state_outbox_dropped_total", "counter",
         "Observations that were too many to tell at once: anti-entropy brings them.",
         (double)s.outbox_dropped},
        {"state_refused_future_total", "counter", "Observations of a time that is the future here.",
         (double)s.future},
        {"state_refused_stale_total", "counter", "Observations that came too late.",
         (double)s.stale},
        {"state_refused_full_total", "counter",
         "Replicas, reports or observations of others without room.", (double)s.full},
        {"state_malformed_total", "counter", "Deltas and messages that made no sense.",
         (double)s.malformed},
    };
    size_t start = out->len;
    int err = put_figures(rows, ARRAY_LEN(rows), out);
    if (err == ERR_OK)
        err = put_members(n, now_us, out);
    if (err == ERR_OK)
        err = put_reconcile(n, out);
    if (err == ERR_OK)
        err = put_frames("grapevine_gossip_frames_total", "Frames by type.", g.frames_in,
                         g.frames_out, out);
    if (err == ERR_OK)
        err = put_frames("grapevine_gossip_frame_bytes_total", "Bytes of frames by type.",
                         g.frame_bytes_in, g.frame_bytes_out, out);
    if (err != ERR_OK)
        out->len = start;
    return err;
}
