/* One router without its shell, wired together once: the daemon, the benches, the simulator and the
 * tests make it here. They differ only in what drives the router.
 *
 *   state         what routers agree on, and cluster time (node/cluster)
 *   router        chooses by it (node/route)
 *   decisions     the last ones, for `gvctl explain` (node/route); NULL: it serves no clients
 *   affinity      remembers which replica made a stored response (node/route)
 *   discover      which replicas this router names (node/discover); NULL: it serves no clients
 *   replication   carries the state to other routers and back (node/cluster); NULL: it is alone
 *   kv_readers    reads engines' KV events (node/kv); NULL: none are read
 *   proxy         requests on their way (node/proxy), and
 *   admin         what operators ask (node/admin); NULL: it serves no clients
 *
 * These are used directly; struct node owns them.
 *
 *   node_config_of(&config, &options);     what the options say
 *   config.keyring = ...                   what only the place where it runs can say
 *   node_create(&node, &config, &io, now_us);
 */
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
    struct node_replication_config replication; /* of a router that is one of several */
    uint32_t stored_responses;                  /* remembered */
    const struct gossip_keyring *keyring;       /* borrowed; NULL: a router alone */
    const struct hash_secret *secret;           /* of a router alone; borrowed; NULL: a new one */
    struct proxy_config proxy;                  /* with `net` it serves clients */
    const struct kv_readers_shell *kv;          /* borrowed; NULL: no KV events are read */
    struct admin_config admin;
};

/* Configuration from the options, borrowed as long as the node. The caller sets the wall
 * clock (state.wall_ms); of a router that is one of several, keyring, name and address
 * (replication.gossip); of one that serves clients, what proxy_config and admin_config have of the
 * place where it runs. node_create() fills in what else the parts must know of time, chance and
 * each other. */
void node_config_of(struct node_config *out, const struct node_options *options);
/* The configuration of a daemon without any options, for tests and benches: they change only what
 * they are about. ERR_NOMEM. */
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
    struct kv_readers_user kv_user; /* of these */
    struct proxy *proxy;
    struct admin *admin;
    struct log *log;         /* borrowed; NULL: it serves no clients */
    uint64_t names_again_ms; /* not before then is it logged again that names wait */
};

/* The configuration is borrowed for the call. Of `io` a router alone needs only random(): for the
 * seed, where the configuration has 0, and for the secret that keys its hashes. One of several
 * routers derives the secret from the keyring. Errors are those of what it creates. */
MUST_USE int node_create(struct node **out, const struct node_config *config,
                         const struct node_replication_io *io, uint64_t now_us);
/* The learned state, for node_keep_begin(). */
struct node_keep_source node_remembers(struct node *n);
/* A new node takes in what an earlier life knew; errors as node_kept_join(). */
MUST_USE int node_recall(struct node *n, const struct node_kept *kept, uint64_t now_ms,
                         const char **why);
/* Every second, of a node that serves clients. */
void node_tick(struct node *n, uint64_t now_ms);
/* The options that it borrows have changed, of a node that serves clients: what was made of them at
 * the start is made anew, as far as they are live (node/settings/change.h). */
void node_renew(struct node *n, const struct node_options *options, uint64_t now_ms);
/* The proxy is stopped, and its streams are closed. */
void node_destroy(struct node *n);
/* The invariants of all. */
void node_check(const struct node *n);

#endif
