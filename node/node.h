/* One router, all of it that is pure, wired together once: the daemon, the benches, the simulator
 * and the tests make it here and differ only in what they drive it with.
 *
 *   router        chooses (node/route)
 *   affinity      remembers which replica made a stored response (node/route)
 *   replication   shares what the router knows with other routers (node/cluster); NULL: it is alone
 *
 * The parts are used directly; this owns them, and nothing else.
 *
 *   node_config_of(&config, &options);     what the options say
 *   config.keyring = ...                   what only the place where it runs can say
 *   node_create(&node, &config, &io, now_us);
 */
#ifndef NODE_NODE_H
#define NODE_NODE_H

#include "node/cluster/replication.h"
#include "node/route/affinity.h"
#include "node/route/router.h"
#include "node/settings/options.h"

struct node_config {
    struct node_router_config router;
    struct node_replication_config replication; /* of a router that is one of several */
    uint32_t stored_responses;                  /* remembered */
    /* Not from options: */
    const struct gossip_keyring *keyring; /* borrowed; NULL: a router alone. Else the router's name
                                             is replication.gossip.name */
    uint64_t wall_ms;                     /* the wall clock now */
};

/* As the options say, with names of policies that are theirs for ever. The rest is 0. */
void node_config_of(struct node_config *out, const struct node_options *options);
/* As a daemon without any options, for tests and benches: they change only what they are about.
 * ERR_NOMEM. */
int node_config_default(struct node_config *out);

struct node {
    struct hash_secret secret; /* keys the hashes of prompts and sessions */
    struct node_router *router;
    struct node_affinity *affinity;
    struct node_replication *replication;
};

/* The configuration is borrowed for the call. Of `io` a router alone needs only random(), for what
 * the configuration leaves open: the seed (0) and the secret that keys its hashes. Of several
 * routers the secret is the keyring's. Errors of node_router_create() and
 * node_replication_create(). */
int node_create(struct node **out, const struct node_config *config,
                const struct node_replication_io *io, uint64_t now_us);
void node_destroy(struct node *n);
/* All invariants of the parts. */
void node_check(const struct node *n);

#endif
