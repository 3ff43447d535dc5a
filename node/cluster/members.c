/* Shared code of the replication: members and their metadata, events, and the user's callbacks. */
#include "base/number.h"
#include "node/cluster/replication_internal.h"

#include <stdio.h>

#include "base/check.h"
#include "base/err.h"
#include "base/version.h"

enum {
    ALONE_SAID_US = 3000000,
    REFUSED_SAID_US = 60000000, /* a refusal counts for so long: refused routers retry sooner */
    /* TCP to a member counts as filtered if datagrams work, and at least FILTERED_CALLS calls in a
     * row failed over FILTERED_US, longer than a busy or starting router needs. */
    FILTERED_CALLS = 3,
    FILTERED_US = NODE_TRY_AGAIN_US,
    SELF_SAID_US = 10000000, /* wait before reporting that all seeds are this node itself: others
                              * may be starting */
};

const char *node_replication_event_text(enum node_replication_event event)
{
    static const char *const texts[] = {
        [NODE_REPLICATION_MEMBER_ALIVE] = "member_alive",
        [NODE_REPLICATION_MEMBER_DEAD] = "member_dead",
        [NODE_REPLICATION_MEMBER_LEFT] = "member_left",
        [NODE_REPLICATION_READY] = "cluster_ready",
        [NODE_REPLICATION_SNAPSHOT_FAILED] = "snapshot_failed",
        [NODE_REPLICATION_TCP_FILTERED] = "gossip_tcp_filtered",
        [NODE_REPLICATION_LOST] = "deltas_lost",
        [NODE_REPLICATION_CLOCK_FORWARD] = "cluster_clock_forward",
        [NODE_REPLICATION_CLOCK_BACK] = "cluster_clock_back",
        [NODE_REPLICATION_MISMATCH] = "member_mismatch",
        [NODE_REPLICATION_NAME_TAKEN] = "name_taken",
        [NODE_REPLICATION_REFUSED_KEY] = "gossip_refused_key",
        [NODE_REPLICATION_OTHER_CLUSTER] = "gossip_other_cluster",
        [NODE_REPLICATION_REPLICAS_FULL] = "replicas_full",
        [NODE_REPLICATION_ROUTERS_FULL] = "routers_full",
        [NODE_REPLICATION_NOT_UNDERSTOOD] = "member_not_understood",
        [NODE_REPLICATION_DIFFERS] = "member_differs",
        [NODE_REPLICATION_NAME_REFUSED] = "replica_name_refused",
        [NODE_REPLICATION_ALONE] = "cluster_alone",
    };
    CHECK(event < ARRAY_LEN(texts));
    return texts[event];
}

void node_replication_event_detail(struct node_replication *n, enum node_replication_event event,
                                   uint64_t node, int64_t value, const char *detail)
{
    if (!n->io.event)
        return;
    const struct node_peer *p = node_replication_peer(n, node);
    n->io.event(n->io.context, event, slice_of_cstr(p ? p->name : ""), value,
                slice_of_cstr(detail));
}

void node_replication_event(struct node_replication *n, enum node_replication_event event,
                            uint64_t node, int64_t value)
{
    node_replication_event_detail(n, event, node, value, "");
}

/* --- members -------------------------------------------------------------------------------- */

struct node_peer *node_replication_peer(const struct node_replication *n, uint64_t node)
{
    for (unsigned i = 0; i < n->peer_count; i++) {
        if (n->peers[i].node == node)
            return &n->peers[i];
    }
    return NULL;
}

bool node_peer_lives(const struct node_peer *p)
{
    return p->state == GOSSIP_ALIVE || p->state == GOSSIP_SUSPECT;
}

bool node_peer_counts(const struct node_peer *p)
{
    return node_peer_lives(p) && p->understood && !p->quarantined;
}

static void put_versions(char *out, size_t size, struct gossip_versions v)
{
    if (v.greatest == 0)
        (void)snprintf(out, size, "none (a build from before versions)");
    else if (v.least == v.greatest)
        (void)snprintf(out, size, "%u", v.least);
    else
        (void)snprintf(out, size, "%u to %u", v.least, v.greatest);
}

void node_peer_speaks(const struct node_replication *n, const struct node_peer *p,
                      char out[NODE_DETAIL_MAX])
{
    char there[40], here[40];
    put_versions(there, sizeof there, p->speaks);
    put_versions(here, sizeof here, gossip_speaks(n->gossip));
    (void)snprintf(
        out, NODE_DETAIL_MAX,
        "it speaks %s, this router %s: upgrade release by release, all routers each time", there,
        here);
}

static void put_difference(char out[NODE_DETAIL_MAX], const char *what, uint32_t there_ms,
                           uint32_t here_ms)
{
    size_t len = strlen(out);
    if (there_ms != here_ms)
        (void)snprintf(out + len, NODE_DETAIL_MAX - len, "%s%s %.15gs, here %.15gs",
                       len > 0 ? "; " : "", what, there_ms / 1000.0, here_ms / 1000.0);
}

void node_peer_differs(const struct node_replication *n, const struct node_peer *p,
                       char out[NODE_DETAIL_MAX])
{
    struct node_agreement here = node_state_agreement(n->state);
    out[0] = '\0';
    put_difference(out, "generation", p->agreement.generation_ms, here.generation_ms);
    put_difference(out, "ttl", p->agreement.ttl_ms, here.ttl_ms);
    size_t len = strlen(out);
    if (p->agreement.hash != here.hash)
        (void)snprintf(out + len, NODE_DETAIL_MAX - len, "%sthe hash line of the key file",
                       len > 0 ? "; " : "");
    len = strlen(out);
    if (p->agreement.id_ranges != here.id_ranges)
        (void)snprintf(out + len, NODE_DETAIL_MAX - len,
                       "%sindex of %u buckets, here %u (below 65536 ids differ: more index-bytes)",
                       len > 0 ? "; " : "", p->agreement.id_ranges, here.id_ranges);
}

void node_peer_hints(const struct node_replication *n, const struct node_peer *p,
                     char out[NODE_DETAIL_MAX])
{
    const char *here = n->config.policy ? n->config.policy : "";
    out[0] = '\0';
    if (p->policy[0] != '\0' && here[0] != '\0' && strcmp(p->policy, here) != 0)
        (void)snprintf(out, NODE_DETAIL_MAX, "policy %s, here %s", p->policy, here);
    size_t len = strlen(out);
    unsigned names = node_state_config_of(n->state)->names_max;
    if (p->names_max != 0 && p->names_max != names)
        (void)snprintf(out + len, NODE_DETAIL_MAX - len, "%sreplicas-max %u, here %u",
                       len > 0 ? "; " : "", p->names_max, names);
}

bool node_peer_filtered(const struct node_replication *n, const struct node_peer *p,
                        uint64_t now_us, char out[NODE_ADDRESS_MAX])
{
    struct gossip_place places[GOSSIP_PLACES_MAX];
    if (p->state != GOSSIP_ALIVE || p->calls_failed < FILTERED_CALLS || p->calls_failed_us == 0 ||
        now_us - p->calls_failed_us < FILTERED_US ||
        gossip_member_places(n->gossip, p->node, places) == 0)
        return false;
    node_address_text(&places[0].at, out);
    return true;
}

void node_peer_tell_filtered(struct node_replication *n, struct node_peer *p, uint64_t now_us)
{
    char at[NODE_ADDRESS_MAX];
    if (!node_peer_filtered(n, p, now_us, at))
        return;
    p->told_us = now_us + NODE_AGAIN_US;
    node_replication_event_detail(n, NODE_REPLICATION_TCP_FILTERED, p->node, 0, at);
}

bool node_peer_doubted(const struct node_peer *p)
{
    return p->calls_failed > 0 && p->calls_failed < FILTERED_CALLS;
}

unsigned node_replication_filtered(const struct node_replication *n, uint64_t now_us)
{
    unsigned filtered = 0;
    char at[NODE_ADDRESS_MAX];
    for (unsigned i = 0; i < n->peer_count; i++)
        filtered += node_peer_filtered(n, &n->peers[i], now_us, at);
    return filtered;
}

void node_peer_called(struct node_replication *n, uint64_t node, bool through, uint64_t began_us)
{
    struct node_peer *p = node_replication_peer(n, node);
    if (!p)
        return;
    p->calls_failed = through ? 0 : p->calls_failed + 1;
    if (through)
        p->calls_failed_us = 0;
    else if (p->calls_failed_us == 0)
        p->calls_failed_us = began_us > 0 ? began_us : 1;
}

const char *node_replication_alone(const struct node_replication *n, uint64_t now_us)
{
    struct gossip_stats g;
    for (unsigned i = 0; i < n->peer_count; i++)
        if (node_peer_lives(&n->peers[i]))
            return NULL;
    if (!n->config.has_seeds || now_us - n->born_us < ALONE_SAID_US)
        return NULL;
    gossip_stats(n->gossip, &g);
    if (g.name_conflict == gossip_self(n->gossip) && g.name_conflict_us > 0 &&
        now_us - g.name_conflict_us < REFUSED_SAID_US)
        return "another router has this one's name: give each its own node-name";
    if (g.self_refused_us > 0 && now_us - g.self_refused_us < REFUSED_SAID_US)
        return "the cluster is full and refuses this router";
    if (g.seeds_answered > 0)
        return "the routers that it has met are gone";
    if (g.other_cluster > 0)
        return "no seed has answered, and others ask with another cluster-name: set it alike, or "
               "give each cluster its own seeds";
    if (g.refused_hellos > 0)
        return "no seed has answered, and others ask with another key: compare the key files";
    if (g.seeds_unknown > 0 || g.seeds_self == 0)
        return "no seed has answered: check its address, UDP and TCP of its gossip port, and that "
               "both have the same key file and cluster-name";
    return now_us - n->born_us < SELF_SAID_US
               ? NULL
               : "every seed is this router itself: fine if it is the only one, else name others";
}

bool node_replication_knocked(const struct node_replication *n, uint64_t now_us)
{
    struct gossip_stats g;
    gossip_stats(n->gossip, &g);
    return g.other_cluster_us > 0 && now_us - g.other_cluster_us < REFUSED_SAID_US;
}

const char *node_replication_name(const struct node_replication *n, uint64_t member)
{
    const struct node_peer *p = node_replication_peer(n, member);
    return p ? p->name : NULL;
}

static bool is_loopback(const struct gossip_address *a)
{
    static const uint8_t one[sizeof a->ip] = {[sizeof a->ip - 1] = 1};
    return a->family == 4 ? a->ip[0] == 127 : memcmp(a->ip, one, sizeof one) == 0;
}

bool node_replication_apart(const struct node_replication *n)
{
    for (unsigned i = 0; i < gossip_member_count(n->gossip); i++) {
        struct gossip_member m;
        struct gossip_place places[GOSSIP_PLACES_MAX];
        gossip_member_at(n->gossip, i, n->now_us, &m);
        unsigned count = m.self ? 0 : gossip_member_places(n->gossip, m.node, places);
        bool here = false, elsewhere = false;
        for (unsigned k = 0; k < count; k++) {
            bool answered = places[k].answered_us > 0;
            here = here || (answered && is_loopback(&places[k].at));
            elsewhere = elsewhere || (answered && !is_loopback(&places[k].at));
        }
        if (elsewhere && !here)
            return true;
    }
    return false;
}

static const double rtt_max_us = 2e6;

double node_replication_travel_ms(const struct node_replication *n)
{
    double sum_us = 0;
    unsigned count = 0;
    for (unsigned i = 0; i < gossip_member_count(n->gossip); i++) {
        struct gossip_member m;
        gossip_member_at(n->gossip, i, n->now_us, &m);
        if (m.self || m.state != GOSSIP_ALIVE || m.rtt_us == 0)
            continue;
        sum_us += number_min((double)m.rtt_us, rtt_max_us);
        count++;
    }
    return count > 0 ? sum_us / count / 2 / 1000 : 0;
}

void node_address_text(const struct gossip_address *a, char out[NODE_ADDRESS_MAX])
{
    out[0] = '\0';
    if (a->port == 0)
        return;
    if (a->family == 6) {
        int at = snprintf(out, NODE_ADDRESS_MAX, "[");
        for (unsigned i = 0; i < 16; i += 2)
            at += snprintf(out + at, NODE_ADDRESS_MAX - (size_t)at, "%s%x", i > 0 ? ":" : "",
                           (unsigned)(a->ip[i] << 8 | a->ip[i + 1]));
        (void)snprintf(out + at, NODE_ADDRESS_MAX - (size_t)at, "]:%u", a->port);
    } else {
        (void)snprintf(out, NODE_ADDRESS_MAX, "%u.%u.%u.%u:%u", a->ip[0], a->ip[1], a->ip[2],
                       a->ip[3], a->port);
    }
}

/* --- metadata ------------------------------------------------------------------------------- */

/* Tags of metadata fields. A field is tag, length and bytes. Readers skip unknown tags. */
enum {
    META_ADMIN = 1,
    META_VERSION,
    META_STARTED,
    META_HASH,
    META_READY,
    META_GENERATION,
    META_TTL,
    META_ID_RANGES,
    META_POLICY,
    META_NAMES_MAX,
    META_DRAINING, /* present only while draining */
};

static void put_field(struct wire_writer *w, uint8_t tag, const void *bytes, size_t len)
{
    wire_write_u8(w, tag);
    wire_write_u8(w, (uint8_t)len);
    wire_write_bytes(w, bytes, len);
}

static void put_number(struct wire_writer *w, uint8_t tag, uint64_t value)
{
    wire_write_u8(w, tag);
    wire_write_u8(w, 8);
    wire_write_u64(w, value);
}

struct slice node_meta_write(const struct node_replication *n, uint8_t out[GOSSIP_META_MAX])
{
    struct wire_writer w = wire_writer_of(out, GOSSIP_META_MAX);
    put_field(&w, META_ADMIN, n->admin, strlen(n->admin));
    put_field(&w, META_VERSION, version_text, strlen(version_text));
    put_number(&w, META_STARTED, n->started_ms);
    struct node_agreement agreement = node_state_agreement(n->state);
    put_number(&w, META_HASH, agreement.hash);
    put_number(&w, META_READY, n->ready);
    put_number(&w, META_GENERATION, agreement.generation_ms);
    put_number(&w, META_TTL, agreement.ttl_ms);
    put_number(&w, META_ID_RANGES, agreement.id_ranges);
    put_number(&w, META_NAMES_MAX, node_state_config_of(n->state)->names_max);
    if (n->draining)
        put_number(&w, META_DRAINING, 1);
    size_t policy = n->config.policy ? strlen(n->config.policy) : 0;
    if (policy > 0 && policy <= NODE_POLICY_MAX)
        put_field(&w, META_POLICY, n->config.policy, policy);
    CHECK(!w.bad);
    return slice_of((const char *)out, wire_written(&w));
}

static void text_read(char *out, size_t size, struct slice bytes)
{
    if (!slice_to_cstr(bytes, out, size))
        out[0] = '\0';
}

int node_meta_read(struct node_peer *p, struct slice meta)
{
    struct wire_reader r = wire_reader_of(meta.at, meta.len);
    p->draining = false;
    while (wire_left(&r) > 0) {
        uint8_t tag = wire_read_u8(&r);
        struct slice bytes = wire_read_bytes(&r, wire_read_u8(&r));
        struct wire_reader number = wire_reader_of(bytes.at, bytes.len);
        if (r.bad)
            return ERR_SYNTAX;
        if (tag == META_ADMIN)
            text_read(p->admin, sizeof p->admin, bytes);
        else if (tag == META_VERSION)
            text_read(p->version, sizeof p->version, bytes);
        else if (tag == META_POLICY)
            text_read(p->policy, sizeof p->policy, bytes);
        else if (tag == META_STARTED)
            p->started_ms = wire_read_u64(&number);
        else if (tag == META_HASH)
            p->agreement.hash = wire_read_u64(&number);
        else if (tag == META_READY)
            p->ready = wire_read_u64(&number) != 0;
        else if (tag == META_DRAINING)
            p->draining = wire_read_u64(&number) != 0;
        else if (tag == META_GENERATION)
            p->agreement.generation_ms = (uint32_t)wire_read_u64(&number);
        else if (tag == META_TTL)
            p->agreement.ttl_ms = (uint32_t)wire_read_u64(&number);
        else if (tag == META_NAMES_MAX)
            p->names_max = (uint32_t)wire_read_u64(&number);
        else if (tag == META_ID_RANGES)
            p->agreement.id_ranges = (uint32_t)wire_read_u64(&number);
    }
    return ERR_OK;
}

void node_replication_meta(struct node_replication *n, uint64_t now_us)
{
    uint8_t meta[GOSSIP_META_MAX];
    gossip_meta_set(n->gossip, node_meta_write(n, meta), now_us);
}

/* --- the user and the state ------------------------------------------------------------------ */

/* The state only counts reports of live members with which messages are exchanged, because the
 * gauges of other members would never change. */
void node_peer_publish(struct node_replication *n, const struct node_peer *p)
{
    struct crdt_state *state = node_state_crdt(n->state);
    if (node_peer_counts(p))
        crdt_state_router(state, p->node, p->epoch);
    else
        crdt_state_router_gone(state, p->node);
}

void node_replication_rewound(struct node_replication *n)
{
    crdt_state_epoch(node_state_crdt(n->state), gossip_epoch(n->gossip));
    for (unsigned i = 0; i < n->peer_count; i++)
        node_peer_publish(n, &n->peers[i]);
    if (n->user.rewound)
        n->user.rewound(n->user.context);
}

void node_replication_joined(struct node_replication *n)
{
    if (n->user.joined)
        n->user.joined(n->user.context);
}

void node_replication_reports(struct node_replication *n, uint64_t now_us)
{
    if (n->user.reports)
        n->user.reports(n->user.context, node_replication_ms(now_us));
}

uint16_t node_clock_age_s(const struct node_replication *n, uint64_t now_us)
{
    return n->ready ? node_clock_age_cut((now_us - n->ready_us) / 1000000) : 0;
}
