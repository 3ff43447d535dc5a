/* The start and end of the replication, and the callbacks of the gossip. */
#include "node/cluster/replication_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "base/check.h"
#include "base/err.h"

enum {
    ALONE_US = 3000000,
    RECONCILE_US = 1000000,
    REPORTS_US = 100000, /* minimum time between two calls of the user's reports() */
    WATCH_US = 1000000,
    LOGGED_US = 60000000, /* minimum time between two reports of limits and conflicts */
};

/* --- members -------------------------------------------------------------------------------- */

/* Returns a new row, or reuses the row of a member that is not alive. NULL: no row. */
static struct node_peer *peer_make(struct node_replication *n)
{
    if (n->peer_count < GOSSIP_MEMBERS_MAX)
        return &n->peers[n->peer_count++];
    for (unsigned i = 0; i < n->peer_count; i++) {
        if (!node_peer_lives(&n->peers[i]))
            return &n->peers[i];
    }
    return NULL;
}

static void on_member(void *context, const struct gossip_member *m, uint64_t now_us)
{
    struct node_replication *n = context;
    uint64_t epoch = m->incarnation >> 16;
    if (m->self) {
        crdt_state_epoch(node_state_crdt(n->state), epoch);
        return;
    }
    struct node_peer *p = node_replication_peer(n, m->node);
    bool known = p != NULL, lived = known && node_peer_lives(p);
    bool counted = known && node_peer_counts(p);
    if (!p) {
        p = peer_make(n);
        if (!p)
            return; /* more members than the gossip allows */
        *p = (struct node_peer){.node = m->node};
        memcpy(p->name, m->name, sizeof p->name);
    }
    p->refuses = p->refuses && p->epoch == epoch;
    p->forgotten = p->forgotten && (m->state == GOSSIP_DEAD || m->state == GOSSIP_LEFT);
    p->epoch = epoch;
    p->state = m->state;
    p->understood = m->understood;
    p->quarantined = m->quarantined;
    p->speaks = m->speaks;
    if (node_meta_read(p, slice_of((const char *)m->meta, m->meta_len)) != ERR_OK)
        p->agreement = (struct node_agreement){0};
    node_peer_publish(n, p);
    n->reports_due_us = 0;
    char differs[NODE_DETAIL_MAX];
    node_peer_differs(n, p, differs);
    bool mismatch = node_peer_lives(p) && differs[0] != '\0';
    if (node_peer_counts(p) && !counted && known)
        node_reconcile_lost(n, m->node, now_us); /* deltas sent meanwhile may be missing on either
                                                  * side */
    if (node_peer_lives(p) && !lived)
        node_replication_event(n, NODE_REPLICATION_MEMBER_ALIVE, m->node, 0);
    else if (lived && m->state == GOSSIP_DEAD)
        node_replication_event(n, NODE_REPLICATION_MEMBER_DEAD, m->node, 0);
    else if (lived && m->state == GOSSIP_LEFT)
        node_replication_event(n, NODE_REPLICATION_MEMBER_LEFT, m->node, 0);
    if (mismatch && !p->mismatch)
        node_replication_event_detail(n, NODE_REPLICATION_MISMATCH, m->node, 0, differs);
    p->mismatch = mismatch;
    bool foreign = node_peer_lives(p) && !p->understood;
    if (foreign && !p->foreign_said) {
        char speaks[NODE_DETAIL_MAX];
        node_peer_speaks(n, p, speaks);
        node_replication_event_detail(n, NODE_REPLICATION_NOT_UNDERSTOOD, m->node, 0, speaks);
    }
    p->foreign_said = foreign;
    node_peer_hints(n, p, differs);
    bool hinted = node_peer_lives(p) && differs[0] != '\0';
    if (hinted && !p->hinted)
        node_replication_event_detail(n, NODE_REPLICATION_DIFFERS, m->node, 0, differs);
    p->hinted = hinted;
}

/* --- deltas --------------------------------------------------------------------------------- */

/* Writes a delta from the state. The user's news is in the state already: node_replication_run()
 * collects it before running the gossip. */
static size_t on_produce(void *context, uint64_t now_us, uint8_t *out, size_t max)
{
    struct node_replication *n = context;
    struct crdt_state *state = node_state_crdt(n->state);
    if (!crdt_state_has_news(state))
        return 0;
    struct gossip_member self;
    CHECK(gossip_member_find(n->gossip, gossip_self(n->gossip), now_us, &self) == ERR_OK);
    return crdt_state_produce(state, self.seq_known + 1, out, max);
}

static int on_apply(void *context, const struct gossip_origin *origin, struct slice delta,
                    uint64_t now_us)
{
    (void)now_us;
    struct node_replication *n = context;
    struct crdt_origin from = {.router = origin->node, .epoch = origin->epoch, .seq = origin->seq};
    int err = crdt_state_apply(node_state_crdt(n->state), &from, delta);
    n->delta_errors += err < 0;
    if (!n->ready && err >= 0)
        node_join_keep(n, &from, delta);
    node_replication_joined(n);
    return err;
}

static void on_lost(void *context, uint64_t node, uint64_t now_us)
{
    struct node_replication *n = context;
    node_replication_event(n, NODE_REPLICATION_LOST, node, 0);
    node_reconcile_lost(n, node, now_us);
}

static void on_message(void *context, uint64_t peer, struct slice bytes, bool settled,
                       uint64_t now_us)
{
    struct node_replication *n = context;
    if (node_aside_message(n, peer, bytes, now_us))
        return;
    node_reconcile_message(n, peer, bytes, settled, now_us);
    node_replication_joined(n);
}

/* --- start and end ---------------------------------------------------------------------------- */

static int open_gossip(struct node_replication *n, const struct gossip_keyring *keyring,
                       uint64_t now_us)
{
    uint8_t meta[GOSSIP_META_MAX];
    struct gossip_config config = n->config.gossip;
    config.meta = node_meta_write(n, meta);
    struct gossip_app app = {
        .context = n,
        .produce = on_produce,
        .apply = on_apply,
        .member = on_member,
        .lost = on_lost,
        .message = on_message,
    };
    struct gossip_io io = {
        .context = n->io.context, .send = n->io.send, .knock = n->io.knock, .random = n->io.random};
    return gossip_create(&n->gossip, &config, keyring, &app, &io, now_us);
}

static void admin_set(struct node_replication *n, const char *admin)
{
    if (!slice_to_cstr(slice_of_cstr(admin), n->admin, sizeof n->admin))
        n->admin[0] = '\0';
}

int node_replication_create(struct node_replication **out,
                            const struct node_replication_config *config,
                            const struct gossip_keyring *keyring, struct node_state *state,
                            const struct node_replication_user *user,
                            const struct node_replication_io *io, uint64_t now_us)
{
    struct node_replication *n = calloc(1, sizeof *n);
    if (!n)
        return ERR_NOMEM;
    n->config = *config;
    n->config.admin = n->admin;
    if (config->admin)
        admin_set(n, config->admin);
    if (n->config.alone_us == 0)
        n->config.alone_us = ALONE_US;
    if (n->config.reconcile_us == 0)
        n->config.reconcile_us = RECONCILE_US;
    n->io = *io;
    n->user = *user;
    n->state = state;
    n->now_us = n->started_us = now_us;
    n->started_ms = node_state_cluster_ms(state, node_replication_ms(now_us));
    n->ready = !config->has_seeds;
    n->born_us = now_us;
    n->kept_all = true;
    n->ready_us = now_us;
    n->watch_due_us = now_us + WATCH_US;
    uint64_t seed;
    io->random(io->context, &seed, sizeof seed);
    prng_seed(&n->prng, seed);
    n->peers = calloc(GOSSIP_MEMBERS_MAX, sizeof *n->peers);
    int err = n->peers ? open_gossip(n, keyring, now_us) : ERR_NOMEM;
    if (err != ERR_OK) {
        free(n->peers);
        free(n);
        return err;
    }
    crdt_state_epoch(node_state_crdt(state), gossip_epoch(n->gossip));
    n->joining_announced = !n->ready;
    gossip_joining(n->gossip, n->joining_announced);
    /* A random phase, so that nodes started at the same time do not reconcile at the same time. */
    n->reconcile.due_us = now_us + prng_below(&n->prng, n->config.reconcile_us) + 1;
    *out = n;
    return ERR_OK;
}

void node_replication_destroy(struct node_replication *n)
{
    if (!n)
        return;
    CHECK(n->serving == 0);
    gossip_destroy(n->gossip);
    for (unsigned i = 0; i < NODE_ASKS_MAX; i++)
        node_ask_free(&n->asks[i]);
    buf_free(&n->message);
    buf_free(&n->kept);
    free(n->peers);
    free(n);
}

void node_replication_check(const struct node_replication *n)
{
    gossip_check(n->gossip);
    CHECK(n->peer_count <= GOSSIP_MEMBERS_MAX);
    CHECK(n->joining_announced == !n->ready);
    for (unsigned i = 0; i < NODE_CALLS_MAX; i++) {
        const struct node_call *c = &n->calls[i];
        if (c->use != NODE_CALL_ASK)
            continue;
        CHECK(c->ask < NODE_ASKS_MAX && n->asks[c->ask].open);
        CHECK(c->asked < n->asks[c->ask].count);
        CHECK(n->asks[c->ask].asked[c->asked].state == ASKED_OPEN);
    }
}

void node_replication_admin(struct node_replication *n, const char *admin, uint64_t now_us)
{
    admin_set(n, admin);
    node_replication_meta(n, now_us);
}

const char *node_replication_admin_is(const struct node_replication *n)
{
    return n->admin;
}

void node_replication_draining(struct node_replication *n, uint64_t now_us)
{
    n->draining = true;
    node_replication_meta(n, now_us);
}

void node_replication_policy(struct node_replication *n, const char *policy, uint64_t now_us)
{
    if (n->config.policy != NULL && strcmp(n->config.policy, policy) == 0)
        return;
    n->config.policy = policy;
    node_replication_meta(n, now_us);
}

struct gossip *node_replication_gossip(struct node_replication *n)
{
    return n->gossip;
}

bool node_replication_ready(const struct node_replication *n)
{
    return n->ready;
}

void node_replication_datagram(struct node_replication *n, const struct gossip_address *from,
                               const uint8_t *bytes, size_t len, uint64_t now_us)
{
    n->now_us = now_us;
    /* After a pause, waiting datagrams are read first. If the clock were not set before, their data
     * would seem to be from the future. */
    node_state_clock(n->state, node_replication_ms(now_us));
    gossip_datagram(n->gossip, from, bytes, len, now_us);
}

static void replicas_full_announce(struct node_replication *n, uint64_t now_us)
{
    const struct crdt_registry *registry = crdt_state_registry(node_state_crdt(n->state));
    const struct crdt_registry_stats *stats = crdt_registry_stats(registry);
    if (stats->waiting == 0 || now_us < n->replicas_full.again_us)
        return;
    char name[CRDT_NAME_MAX + 1];
    (void)snprintf(name, sizeof name, "%.*s", SLICE_ARG(crdt_registry_waiting(registry)));
    node_replication_event_detail(n, NODE_REPLICATION_REPLICAS_FULL, 0, stats->names_max, name);
    n->replicas_full.again_us = now_us + LOGGED_US;
}

static void name_refused_announce(struct node_replication *n, uint64_t now_us)
{
    const struct crdt_registry *registry = crdt_state_registry(node_state_crdt(n->state));
    const struct crdt_registry_stats *stats = crdt_registry_stats(registry);
    if (stats->no_names < n->name_refused.count) /* the state was replaced, so the count began
                                                  * again */
        n->name_refused.count = 0;
    if (stats->no_names == n->name_refused.count || now_us < n->name_refused.again_us)
        return;
    uint64_t member;
    char name[CRDT_NAME_MAX + 1];
    (void)snprintf(name, sizeof name, "%.*s", SLICE_ARG(crdt_registry_no_name(registry, &member)));
    node_replication_event_detail(n, NODE_REPLICATION_NAME_REFUSED, member,
                                  (int64_t)(stats->no_names - n->name_refused.count), name);
    n->name_refused.count = stats->no_names;
    n->name_refused.again_us = now_us + LOGGED_US;
}

/* Reports a router of another cluster. Routers on the same machine are reported once, because they
 * knock from different ports. */
static void other_cluster_announce(struct node_replication *n, const struct gossip_stats *g,
                                   uint64_t now_us)
{
    const struct gossip_address *from = &g->other_cluster_from;
    if (g->other_cluster == n->other_cluster.count || now_us < n->other_cluster.again_us)
        return;
    for (unsigned i = 0; i < NODE_STRANGERS_MAX; i++) {
        const struct gossip_address *told = &n->other_cluster_at[i];
        if (told->family == from->family && memcmp(told->ip, from->ip, sizeof told->ip) == 0)
            return;
    }
    char at[NODE_ADDRESS_MAX];
    node_address_text(from, at);
    node_replication_event_detail(n, NODE_REPLICATION_OTHER_CLUSTER, 0,
                                  (int64_t)(g->other_cluster - n->other_cluster.count), at);
    n->other_cluster.count = g->other_cluster;
    n->other_cluster.again_us = now_us + LOGGED_US;
    n->other_cluster_at[n->other_clusters++ % NODE_STRANGERS_MAX] = *from;
}

/* Reports problems for operators to repair. */
static void watch(struct node_replication *n, uint64_t now_us)
{
    if (now_us < n->watch_due_us)
        return;
    n->watch_due_us = now_us + WATCH_US;
    struct gossip_stats g;
    char at[NODE_ADDRESS_MAX];
    gossip_stats(n->gossip, &g);
    if (g.name_conflicts > n->name_taken.count && now_us >= n->name_taken.again_us) {
        node_address_text(&g.name_conflict_at, at);
        node_replication_event_detail(n, NODE_REPLICATION_NAME_TAKEN, g.name_conflict,
                                      (int64_t)(g.name_conflicts - n->name_taken.count), at);
        n->name_taken.count = g.name_conflicts;
        n->name_taken.again_us = now_us + LOGGED_US;
    }
    if (g.refused_hellos > n->refused_key.count && now_us >= n->refused_key.again_us) {
        node_address_text(&g.refused_hello_from, at);
        node_replication_event_detail(n, NODE_REPLICATION_REFUSED_KEY, 0,
                                      (int64_t)(g.refused_hellos - n->refused_key.count), at);
        n->refused_key.count = g.refused_hellos;
        n->refused_key.again_us = now_us + LOGGED_US;
    }
    if (g.routers_refused > n->routers_full.count && now_us >= n->routers_full.again_us) {
        node_replication_event_detail(n, NODE_REPLICATION_ROUTERS_FULL, 0, g.routers_limit,
                                      g.router_refused);
        n->routers_full.count = g.routers_refused;
        n->routers_full.again_us = now_us + LOGGED_US;
    }
    const char *alone = node_replication_alone(n, now_us);
    if (alone != NULL && alone != n->alone)
        node_replication_event_detail(n, NODE_REPLICATION_ALONE, 0, 0, alone);
    n->alone = alone;
    replicas_full_announce(n, now_us);
    name_refused_announce(n, now_us);
    other_cluster_announce(n, &g, now_us);
}

static void calls_time_out(struct node_replication *n, uint64_t now_us)
{
    for (unsigned i = 0; i < NODE_CALLS_MAX; i++) {
        if (n->calls[i].use != NODE_CALL_FREE && now_us >= n->calls[i].until_us)
            node_replication_answered(n, n->calls[i].id, ERR_TIMEOUT, now_us);
    }
}

void node_replication_run(struct node_replication *n, uint64_t now_us)
{
    n->now_us = now_us;
    if (n->user.collect)
        n->user.collect(n->user.context, node_replication_ms(now_us));
    if (BUG(LIES) && n->ready)
        node_lie(n, now_us);
    if (n->ready) /* while it is not ready, this node's clock may be wrong */
        crdt_state_observe_again(node_state_crdt(n->state));
    if (crdt_state_has_news(node_state_crdt(n->state)))
        gossip_wake(n->gossip, now_us);
    if (now_us >= gossip_due_us(n->gossip))
        gossip_run(n->gossip, now_us);
    if (now_us >= n->reports_due_us) {
        n->reports_due_us = now_us + REPORTS_US;
        node_replication_reports(n, now_us);
    }
    calls_time_out(n, now_us);
    node_call_run(n, now_us);
    node_join_run(n, now_us);
    node_aside_run(n, now_us);
    if (node_reconcile_run(n, now_us))
        node_join_again(n, now_us);
    watch(n, now_us);
}

uint64_t node_replication_due_us(const struct node_replication *n)
{
    uint64_t due = gossip_due_us(n->gossip);
    const uint64_t others[] = {n->reconcile.due_us, node_join_due(n), node_call_due(n),
                               node_aside_due(n)};
    for (unsigned i = 0; i < ARRAY_LEN(others); i++)
        due = others[i] < due ? others[i] : due;
    return due;
}

uint64_t node_replication_now_us(const struct node_replication *n)
{
    return n->now_us;
}

/* --- calls ---------------------------------------------------------------------------------- */

void node_replication_call_keys(struct node_replication *n, uint32_t id, struct gossip_keyring *out)
{
    const struct node_call *c = node_call_find(n, id);
    gossip_member_keyring(n->gossip, c != NULL ? c->peer : 0, out);
}

int node_replication_answer(struct node_replication *n, uint32_t id, struct slice chunk,
                            uint64_t now_us)
{
    struct node_call *c = node_call_find(n, id);
    if (!c)
        return ERR_CLOSED;
    c->until_us = now_us + NODE_CALL_PROGRESS_US;
    c->answered = true;
    if (c->use == NODE_CALL_JOIN) {
        node_join_answer(n, c, chunk, now_us);
    } else {
        int err = node_call_answer(n, c, chunk);
        if (err != ERR_OK)
            node_call_answered(n, c, err, now_us);
    }
    return node_call_find(n, id) ? ERR_OK : ERR_CLOSED;
}

void node_replication_answered(struct node_replication *n, uint32_t id, int err, uint64_t now_us)
{
    struct node_call *c = node_call_find(n, id);
    if (!c)
        return;
    node_peer_called(n, c->peer, err == ERR_OK || c->answered, c->began_us);
    if (c->use == NODE_CALL_JOIN)
        node_join_answered(n, c, err, now_us);
    else
        node_call_answered(n, c, err, now_us);
}
