/* The cached part of a prefix by a tree of blocks (node/kv/tree.h): the conclusion that readers
 * draw from reach, computed independently from the blocks, and for any group. */
#ifndef TESTS_LIB_KV_HELD_H
#define TESTS_LIB_KV_HELD_H

#include "node/kv/tree.h"

/* The reusable part of a prefix, in blocks from its beginning. */
struct kv_held {
    uint32_t surely, perhaps; /* at least, at most */
    enum kv_medium slowest;   /* slowest medium of the sure part's blocks */
};
/* For the prefix of so many blocks that ends with this chain. Every group must serve it: full
 * attention with all its blocks, a sliding window with the last ones, a state with one at its
 * end. */
struct kv_held kv_tree_held(const struct kv_tree *t, uint64_t chain, uint32_t blocks);

#endif
