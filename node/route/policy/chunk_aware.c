/* The rule of cache_aware for engines that reuse cached text at any place of a prompt (CacheBlend,
 * some offload layers): a prompt is chunks of text, and a replica is credited with each cached
 * chunk, wherever it is in the prompt (base/chain.h, http/chunk_cut.h). */
#include "node/route/policy.h"

const struct node_policy node_policy_chunk_aware = {
    .name = "chunk_aware",
    .wants_costs = true,
    .wants_chunks = true,
    .choose = node_policy_least_cost,
};
