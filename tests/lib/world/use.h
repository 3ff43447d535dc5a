/* Operations of tests on the routers of a world, and on all of them at once. */
#ifndef TESTS_LIB_WORLD_USE_H
#define TESTS_LIB_WORLD_USE_H

#include "base/chain.h"
#include "tests/lib/world/world.h"

/* Configures all routers alike, except for names and random seeds. `shared`: they form a cluster,
 * with node 0 as the gossip seed; if not, each router is alone. */
void world_configure(struct world *w, const struct node_config *config, bool shared);
/* Starts all routers, and runs until they have sessions to each other. */
void world_start_all(struct world *w);
/* Runs until all running routers are ready and see each other; aborts after 20 s. */
void world_settle(struct world *w);
/* True if the digests of all running routers are equal. */
bool world_agrees(struct world *w);
/* From now on nothing goes between the two, either way. */
void world_cut(struct world *w, unsigned a, unsigned b);

/* Configures the replica at the node, with a good health check. Returns the replica's index. */
unsigned world_replica(struct world *w, unsigned number, const char *name);
/* A prompt of this number of tokens; prompts with equal seeds share all of the common length. */
void world_prompt(struct chain *out, uint64_t seed, unsigned tokens);
/* Chooses at the node, and lets the node report the choice. */
struct node_decision world_choose(struct world *w, unsigned number, const struct chain *chain);
/* Usage of an answer without token counts. */
static const struct node_usage no_usage = {-1, -1, -1, {0}};
/* The answer came whole. */
void world_finish(struct world *w, unsigned number, struct node_decision d,
                  const struct node_usage *usage);

#endif
