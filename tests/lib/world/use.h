/* Operations of tests on the routers of a world, and on all of them at once. */
#ifndef TESTS_LIB_WORLD_USE_H
#define TESTS_LIB_WORLD_USE_H

#include "base/chain.h"
#include "tests/lib/world/world.h"

/* All routers as one is configured, each with its own seed and name, by node 0 as everybody's seed.
 * Not `shared`: each is alone. */
void world_configure(struct world *w, const struct node_config *config, bool shared);
/* All of them; until they know each other. */
void world_start_all(struct world *w);
/* Until all that are up are ready and see each other; aborts after 20 s. */
void world_settle(struct world *w);
/* True if the digests of all running routers are equal. */
bool world_agrees(struct world *w);
/* From now on nothing goes from one to the other, either way. */
void world_cut(struct world *w, unsigned a, unsigned b);

/* Configures the replica at the node, with a good health check. Returns its index. */
unsigned world_replica(struct world *w, unsigned number, const char *name);
/* A prompt of so many tokens; equal seeds share all of their common length. */
void world_prompt(struct chain *out, uint64_t seed, unsigned tokens);
/* Chooses at the node, and lets the node report the choice. */
struct node_decision world_choose(struct world *w, unsigned number, const struct chain *chain);
/* Usage of an answer that reports no tokens. */
static const struct node_usage no_usage = {-1, -1, -1, {0}};
/* The answer came whole. */
void world_finish(struct world *w, unsigned number, struct node_decision d,
                  const struct node_usage *usage);

#endif
