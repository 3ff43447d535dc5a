/* A router without the shell, wired together once: the daemon, the benches, the simulator and the
 * tests make routers here. Only the driver of a router differs: sockets and a clock, or a
 * simulation.
 *
 *   state         what routers agree on, and cluster time (node/cluster)
 *   router        chooses replicas by the state (node/route)
 *   decisions     the last choices, for `gvctl decisions` (node/route); NULL: the router serves
 *                 no clients
 *   affinity      remembers the replica behind each stored response (node/route)
 *   discover      which replicas this router names (node/discover); NULL: the router serves no
 *                 clients
 *   replication   carries the state to other routers and back (node/cluster); NULL: the router
 *                 runs alone
 *   kv_readers    reads engines' KV-cache events (node/kv); NULL: none are read
 *   proxy         requests on their way (node/proxy); NULL: the router serves no clients
 *   admin         operators' requests (node/admin); NULL: the router serves no clients
 *
 * Callers use these parts directly; struct node owns them.
 *
 *   node_config_of(&config, &options);     from the options
 *   config.keyring = ...                   from the place where the router runs
 *   node_create(&node, &config, &io, now_us); */
#ifndef NODE_NODE_H
#define NODE_NODE_H

#include "base/err.h"
#include "node/admin/admin.h"
#include "node/cluster/keep.h"
#include "node/cluster/replication.h"
#include "node/discover/discover.h"
#include "node/kv/readers.h"
#include "node/proxy/proxy.h"
#include "node/route/affinity.h"
#include "node/route/router.h"
#include "node/settings/options.h"
#include "node/trace/trace.h"

struct node_config {
    struct node_state_config state;
    struct node_router_config router;
    struct node_replication_config replication; /* used if `keyring` is set */
    uint32_t stored_responses;                  /* number of stored responses to remember */
    const struct gossip_keyring *keyring;       /* borrowed; NULL: a router alone */
    const struct hash_secret *secret;           /* hash secret of a router alone; borrowed; NULL: a
                                                 * new secret */
    struct proxy_config proxy;                  /* if `net` is set, the router serves clients */
    const struct kv_readers_shell *kv;          /* borrowed; NULL: no KV events are read */
    struct admin_config admin;
};

/* Makes the configuration from the options, which are borrowed as long as the node lives. The
 * caller adds the wall clock (state.wall_ms). With several routers, the caller adds keyring, name
 * and address (replication.gossip). If the router serves clients, the caller adds the parts of
 * proxy_config and admin_config that depend on where the router runs. node_create() fills in time,
 * randomness and the links between the parts. */
void node_config_of(struct node_config *out, const struct node_options *options);
/* Makes the configuration of a daemon without any options, for tests and benches: they change only
 * the settings under test. ERR_NOMEM. */
MUST_USE int node_config_default(struct node_config *out);

struct node {
    struct node_state *state;
    struct node_router *router;
    struct discover *discover;
    struct node_affinity *affinity;
    struct node_decisions *decisions;
    struct node_replication *replication;
    struct trace *trace; /* NULL: no request is recorded */
    struct kv_readers *kv_readers;
    struct kv_readers_user kv_user; /* callbacks of kv_readers */
    struct proxy *proxy;
    struct admin *admin;
    struct log *log;         /* borrowed; NULL: the router serves no clients */
    uint64_t names_again_ms; /* replicas_full is not logged again before then */
};

/* Creates a router and its parts. The configuration is borrowed for the call. A router alone needs
 * only random() of `io`: for the seed, if the configuration has 0, and for the secret key of
 * hashes. Routers of a cluster derive the secret from the keyring. Errors are those of the parts
 * created here. */
MUST_USE int node_create(struct node **out, const struct node_config *config,
                         const struct node_replication_io *io, uint64_t now_us);
/* Returns the parts of the router that a state file holds, for node_keep_begin(). */
struct node_keep_source node_remembers(struct node *n);
/* Merges the state saved by an earlier process into a new node. Errors and `why` as in
 * node_kept_join(). */
MUST_USE int node_recall(struct node *n, const struct node_kept *kept, uint64_t now_ms,
                         const char **why);
/* Called every second for a node that serves clients. */
void node_tick(struct node *n, uint64_t now_ms);
/* The borrowed options of a node that serves clients have changed. Applies the live options
 * (node/settings/change.h), as at the start. */
void node_renew(struct node *n, const struct node_options *options, uint64_t now_ms);
/* Frees the router. Call after the proxy is stopped and all streams are closed. */
void node_destroy(struct node *n);
/* Checks the invariants of all parts. */
void node_check(const struct node *n);

#endif
