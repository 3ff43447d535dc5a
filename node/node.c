#include "node/node.h"

#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "base/err.h"
#include "crdt/registry.h"
#include "crdt/state.h"
#include "gossip/gossip.h"
#include "node/route/discovered.h"
#include "node/route/kv_events.h"
#include "node/route/policy.h"
#include "node/route/recall.h"
#include "node/route/share.h"

enum { NAMES_FULL_MS = 60000 };

/* Returns the limit of this router's requests at a replica: at most the limit of connections,
 * because a request without a connection could only wait. */
static uint32_t replica_requests_max(const struct node_options *o)
{
    uint64_t max = o->replica_requests_max, connections = o->upstream_connections_max;
    return (uint32_t)(max == 0 || max > connections ? connections : max);
}

/* Returns the policy's name for the other routers, which log if it differs from their own policy.
 * In shadow mode the name is "shadow", because `policy` does not route then. */
static const char *policy_told(const struct node_options *o)
{
    return o->shadow ? "shadow" : node_policy_names[o->policy];
}

void node_config_of(struct node_config *out, const struct node_options *o)
{
    *out = (struct node_config){
        .state =
            {
                .replicas_max = crdt_registry_slots((unsigned)o->replicas_max),
                .names_max = (unsigned)o->replicas_max,
                .is_name = BUG(LIES) ? NULL : node_replica_is_name,
                .index_bytes = o->index_bytes,
                .generation_ms = (uint32_t)o->generation_ms,
                .ttl_ms = (uint32_t)o->ttl_ms,
                .keeps = o->state_dir[0] != '\0',
            },
        .router =
            {
                .policy = node_policy_names[o->policy],
                .plain_policy = node_policy_plain_names[o->plain_policy],
                .shadow = o->shadow,
                .control_share = o->control_share,
                .seed = o->seed,
                .displaced_weight = o->displaced_weight,
                .decode_weight = o->decode_weight,
                .reuse_horizon_ms = (uint32_t)o->reuse_horizon_ms,
                .near_tie = o->near_tie,
                .cache_tokens = o->cache_tokens,
                .load_bound = o->load_bound,
                .replica_requests_max = replica_requests_max(o),
                .prior = {.prefill_tokens_per_s = o->prefill_rate,
                          .decode_step_ms = (double)o->decode_step_ms,
                          .bytes_per_token = o->bytes_per_token,
                          .probe_failures_max = (uint32_t)o->health_failures},
                .all_down_refuse = o->when_all_down == NODE_ALL_DOWN_REFUSE,
                .probes_have_key = o->replica_api_key_file[0] != '\0',
                .apart = node_options_apart(o),
            },
        .replication =
            {
                .gossip = {.flush_us = (uint32_t)(o->gossip_flush_ms * 1000),
                           .relay_above = (uint32_t)o->gossip_relay_above,
                           .ring_bytes = o->gossip_ring_bytes,
                           .rate_bytes_s = o->gossip_bandwidth},
                .has_seeds = o->join.count > 0,
                .policy = policy_told(o),
            },
        .stored_responses = NODE_AFFINITY_MAX,
        .proxy = {.options = o},
        .admin = {.options = o},
    };
}

int node_config_default(struct node_config *out)
{
    struct node_options options;
    int err = node_options_init(&options);
    if (err == ERR_OK)
        node_config_of(out, &options);
    node_options_free(&options);
    out->proxy.options = out->admin.options = NULL; /* the router serves no clients */
    return err;
}

static int state_create(struct node *n, const struct node_config *config,
                        const struct node_replication_io *io, uint64_t now_us)
{
    struct node_state_config c = config->state;
    c.now_ms = now_us / 1000;
    if (config->keyring) {
        /* All routers must compute the same hashes. */
        gossip_keyring_hash_secret(config->keyring, &c.secret);
        c.replicated = true;
        c.self = gossip_node_id(config->replication.gossip.name);
    } else if (config->secret) {
        c.secret = *config->secret;
    } else {
        io->random(io->context, &c.secret, sizeof c.secret);
    }
    return node_state_create(&n->state, &c);
}

static int router_create(struct node *n, const struct node_config *config,
                         const struct node_replication_io *io)
{
    struct node_router_config c = config->router;
    c.name = config->keyring ? config->replication.gossip.name : NULL;
    if (c.seed == 0)
        io->random(io->context, &c.seed, sizeof c.seed);
    return node_router_create(&n->router, &c, n->state);
}

static int affinity_create(struct node *n, const struct node_config *config)
{
    const struct hash_secret *secret = &node_state_config_of(n->state)->secret;
    int err = node_affinity_create(&n->affinity, secret, config->stored_responses);
    if (err == ERR_OK)
        node_affinity_share(n->affinity, n->router);
    return err;
}

static int replication_create(struct node *n, const struct node_config *config,
                              const struct node_replication_io *io, uint64_t now_us)
{
    struct node_replication_config c = config->replication;
    c.gossip.epoch = config->state.wall_ms;
    struct node_replication_user user = node_router_replication_user(n->router);
    int err =
        node_replication_create(&n->replication, &c, config->keyring, n->state, &user, io, now_us);
    if (err == ERR_OK)
        node_router_names(n->router, n->replication);
    return err;
}

static int on_aside_write(void *context, int64_t ahead_ms, uint64_t now_ms, struct buf *out)
{
    access_clock(context, ahead_ms);
    return access_news_write(context, now_ms, out);
}

static int on_aside_read(void *context, uint64_t router, struct slice bytes, int64_t ahead_ms,
                         uint64_t now_ms)
{
    access_clock(context, ahead_ms);
    return access_news_read(context, router, bytes, now_ms);
}

/* Shares the use of client keys with the other routers: the limits of a key hold for all routers
 * together. */
static void access_share(struct node *n, struct access *access)
{
    const struct node_replication_aside aside = {
        .context = access, .write = on_aside_write, .read = on_aside_read};
    if (n->replication && access)
        node_replication_aside(n->replication, &aside);
}

/* --- KV-cache events ------------------------------------------------------------------------- */

/* Reports a checkpoint that is gone. Returns false if the reader should repeat the report later. If
 * there is no room for a mark, the other routers infer the cache's contents as before. */
static bool on_gone(void *context, unsigned slot, uint64_t id, uint8_t code)
{
    struct node *n = context;
    return node_router_events_gone(n->router, slot, id, code) != ERR_AGAIN;
}

static void on_present(void *context, unsigned slot, uint64_t id, uint8_t code)
{
    struct node *n = context;
    DISCARD(node_router_events_present(n->router, slot, id, code));
}

static void on_cleared(void *context, unsigned slot)
{
    struct node *n = context;
    node_router_cache_reset(n->router, slot, proxy_now_ms(n->proxy));
}

/* The engine's KV-cache events began anew: the engine restarted and its cache is lost. If `rkey` is
 * not the present one, the router knows that already. If metrics report the process's start time,
 * they reveal the restart too, and the reader of metrics logs it. */
static void on_began(void *context, unsigned slot, uint32_t rkey)
{
    struct node *n = context;
    const struct node_replica *k = node_router_replica(n->router, slot);
    if (k->rkey != rkey)
        return;
    if (n->log != NULL && !(node_router_process(n->router, slot)->scrape.start_time_s > 0))
        log_event(n->log, LOG_WARN, "replica_restarted",
                  LOG_STR("replica", node_router_replica_name(n->router, slot)),
                  LOG_CSTR("by", "its KV-cache events began anew"),
                  LOG_CSTR("effect", "its prefixes are forgotten"));
    node_router_cache_reset(n->router, slot, proxy_now_ms(n->proxy));
}

static void on_path(void *context, const struct kv_path *path)
{
    struct node *n = context;
    kv_readers_path(n->kv_readers, path);
}

/* Passes an answer that ended successfully to the readers, with its cluster times converted to this
 * router's time. */
static void on_told(void *context, const struct kv_told *told)
{
    struct node *n = context;
    uint64_t now_ms = proxy_now_ms(n->proxy);
    uint64_t ahead_ms = node_state_cluster_ms(n->state, now_ms) - now_ms;
    struct kv_told here = *told;
    here.sent_ms -= ahead_ms;
    here.ended_ms -= ahead_ms;
    if (here.first_ms > 0)
        here.first_ms -= ahead_ms;
    if (told->well)
        kv_readers_told(n->kv_readers, &here, now_ms);
}

static bool on_row(void *context, unsigned slot, struct kv_reading_row *out)
{
    const struct node *n = context;
    return kv_readers_row(n->kv_readers, slot, out);
}

static int kv_readers_start(struct node *n, const struct kv_readers_shell *shell)
{
    n->kv_user = (struct kv_readers_user){.gone = on_gone,
                                          .present = on_present,
                                          .cleared = on_cleared,
                                          .began = on_began,
                                          .context = n};
    const struct node_events_user user = {
        .path = on_path, .told = on_told, .context = n, .row = on_row};
    int err = kv_readers_create(&n->kv_readers, NODE_REPLICAS_MAX,
                                &node_state_config_of(n->state)->secret, shell, &n->kv_user);
    if (err == ERR_OK)
        node_router_events_watch(n->router, &user);
    return err;
}

static int trace_start(struct node *n, const struct node_config *config, const char *name,
                       const struct node_replication_io *io, uint64_t now_us)
{
    struct trace_config c = {.router = name};
    if (config->proxy.options->trace_endpoint[0] == '\0')
        return ERR_OK;
    io->random(io->context, c.seed, sizeof c.seed);
    int err = trace_create(&n->trace, &c);
    if (err == ERR_OK)
        trace_wall(n->trace, config->state.wall_ms, now_us / 1000);
    return err;
}

/* Creates the parts that serve clients: the proxy, the admin port and what both need. */
static int front_create(struct node *n, const struct node_config *config,
                        const struct node_replication_io *io, uint64_t now_us)
{
    const char *name = config->keyring ? config->replication.gossip.name : NULL;
    struct discover_host host = node_router_discover_host(n->router);
    n->log = config->proxy.log;
    int err = discover_create(&n->discover, &host, n->log);
    if (err != ERR_OK)
        return err;
    node_router_sources(n->router, n->discover);
    err = node_decisions_create(&n->decisions);
    if (err != ERR_OK)
        return err;
    node_router_decisions(n->router, n->decisions);
    struct admin_config a = config->admin;
    a.router = n->router;
    a.decisions = n->decisions;
    a.discover = n->discover;
    a.replication = n->replication;
    a.name = name;
    err = admin_create(&n->admin, &a);
    if (err != ERR_OK)
        return err;
    if (config->kv)
        err = kv_readers_start(n, config->kv);
    if (err != ERR_OK)
        return err;
    err = trace_start(n, config, name, io, now_us);
    if (err != ERR_OK)
        return err;
    struct proxy_config p = config->proxy;
    p.trace = n->trace;
    p.kv_readers = n->kv_readers;
    p.router = n->router;
    p.affinity = n->affinity;
    p.decisions = n->decisions;
    p.replication = n->replication;
    p.secret = node_state_config_of(n->state)->secret;
    p.name = name;
    p.admin_head = admin_head;
    p.admin = admin_handle;
    p.admin_context = n->admin;
    io->random(io->context, p.random, sizeof p.random);
    access_share(n, p.access);
    err = proxy_create(&n->proxy, &p, now_us / 1000);
    if (err == ERR_OK)
        admin_start(n->admin, n->proxy);
    return err;
}

int node_create(struct node **out, const struct node_config *config,
                const struct node_replication_io *io, uint64_t now_us)
{
    struct node *n = calloc(1, sizeof *n);
    if (!n)
        return ERR_NOMEM;
    int err = state_create(n, config, io, now_us);
    if (err == ERR_OK)
        err = router_create(n, config, io);
    if (err == ERR_OK)
        err = affinity_create(n, config);
    if (err == ERR_OK && config->keyring)
        err = replication_create(n, config, io, now_us);
    if (err == ERR_OK && config->proxy.net)
        err = front_create(n, config, io, now_us);
    if (err != ERR_OK) {
        node_destroy(n);
        return err;
    }
    *out = n;
    return ERR_OK;
}

/* --- over a restart -------------------------------------------------------------------------- */

static bool on_keep_learned(void *context, unsigned slot, struct crdt_learned *out)
{
    const struct node *n = context;
    return node_router_learned(n->router, slot, out);
}

static void on_kept_learned(void *context, unsigned slot, const struct crdt_learned *learned)
{
    struct node *n = context;
    node_router_recall(n->router, slot, learned);
}

static int on_keep_told(void *context, unsigned at[2], struct buf *out)
{
    const struct node *n = context;
    return node_router_told(n->router, at, out);
}

static void on_kept_told(void *context, struct slice piece)
{
    const struct node *n = context;
    node_router_told_recall(n->router, piece);
}

struct node_keep_source node_remembers(struct node *n)
{
    return (struct node_keep_source){.state = n->state,
                                     .readers = n->kv_readers,
                                     .learned = on_keep_learned,
                                     .told = on_keep_told,
                                     .context = n};
}

int node_recall(struct node *n, const struct node_kept *kept, uint64_t now_ms, const char **why)
{
    int err = node_kept_join(kept, n->state, n->kv_readers, now_ms, why);
    if (err != ERR_OK)
        return err;
    const struct node_replication_user user = node_router_replication_user(n->router);
    user.joined(user.context);
    node_kept_learned(kept, n->state, on_kept_learned, n);
    node_kept_told(kept, on_kept_told, n);
    return ERR_OK;
}

/* --- time ------------------------------------------------------------------------------------ */

/* Logs that replica names wait for room, if this router runs alone. With several routers the
 * replication logs the names. */
static void check_names_limit(struct node *n, uint64_t now_ms)
{
    const struct crdt_registry *registry = crdt_state_registry(node_state_crdt(n->state));
    const struct crdt_registry_stats *stats = crdt_registry_stats(registry);
    if (stats->waiting == 0 || n->replication || now_ms < n->names_again_ms)
        return;
    n->names_again_ms = now_ms + NAMES_FULL_MS;
    log_event(n->log, LOG_ERROR, "replicas_full", LOG_UINT("limit", stats->names_max),
              LOG_STR("waits", crdt_registry_waiting(registry)));
}

void node_tick(struct node *n, uint64_t now_ms)
{
    node_router_tick(n->router, now_ms);
    discover_tick(n->discover, now_ms);
    check_names_limit(n, now_ms);
}

void node_renew(struct node *n, const struct node_options *options, uint64_t now_ms)
{
    struct node_config config;
    node_config_of(&config, options);
    node_router_renew(n->router, &config.router);
    if (n->replication)
        node_replication_policy(n->replication, config.replication.policy, now_ms * 1000);
    proxy_renew(n->proxy, now_ms);
}

void node_destroy(struct node *n)
{
    if (!n)
        return;
    admin_destroy(n->admin);
    proxy_destroy(n->proxy);
    trace_destroy(n->trace);
    kv_readers_destroy(n->kv_readers);
    node_replication_destroy(n->replication);
    node_affinity_destroy(n->affinity);
    discover_destroy(n->discover);
    node_router_destroy(n->router);
    node_decisions_destroy(n->decisions);
    node_state_destroy(n->state);
    free(n);
}

void node_check(const struct node *n)
{
    node_router_check(n->router);
    if (n->decisions)
        node_decisions_check(n->decisions);
    if (n->discover)
        discover_check(n->discover);
    if (n->kv_readers)
        kv_readers_check(n->kv_readers);
    if (n->replication)
        node_replication_check(n->replication);
    if (n->trace)
        trace_check(n->trace);
    if (n->proxy)
        proxy_check(n->proxy);
}
