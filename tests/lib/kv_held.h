/* The cached part of a prefix by a tree of blocks (node/kv/tree.h): the result that readers compute
 * from reach, here computed independently from the blocks, and for any group. */
#ifndef TESTS_LIB_KV_HELD_H
#define TESTS_LIB_KV_HELD_H

#include "node/kv/tree.h"

/* The reusable part of a prefix, in blocks from the beginning. */
struct kv_held {
    uint32_t surely, perhaps; /* lower and upper bound of the cached blocks */
    enum kv_medium slowest;   /* slowest medium of the sure part's blocks */
};
/* For the prefix of `blocks` blocks with this chain at the end. Every group must have the prefix:
 * full attention all blocks, a sliding window the last blocks, a state the block at the end. */
struct kv_held kv_tree_held(const struct kv_tree *t, uint64_t chain, uint32_t blocks);

#endif
