/* How much of a prefix a tree of blocks (node/kv/tree.h) says is held: what readers conclude from
 * reach, computed anew from the blocks, and for any group. */
#ifndef TESTS_LIB_KV_HELD_H
#define TESTS_LIB_KV_HELD_H

#include "node/kv/tree.h"

/* How much of a prefix can be used again, in blocks from its beginning. */
struct kv_held {
    uint32_t surely, perhaps; /* at least, at most */
    enum kv_medium slowest;   /* of what is surely held: where the slowest block lies */
};
/* Of the prefix that ends with this chain and has so many blocks. Every group must serve it: full
 * attention with all its blocks, a sliding window with the last ones, a state with one at its end.
 */
struct kv_held kv_tree_held(const struct kv_tree *t, uint64_t chain, uint32_t blocks);

#endif
