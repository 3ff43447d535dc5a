/* The cache of one rank of an engine, by its KV events: a tree of blocks.
 *
 * A block is identified by its group and the engine's hash. Its *chain* is a hash of all tokens
 * from the prompt's beginning to the block's end. The chain is the same at every engine with that
 * block size, whatever the engine's release and seed: kv_chain(). Chains are stored for the first
 * group with full attention.
 *
 * Copies are counted between two bounds. An engine stores the same block twice for two simultaneous
 * requests, and removes each copy separately. But a second store is no proof of another copy,
 * because any client can ask an engine to announce its cached blocks again. vLLM's
 * kv_cache_report_mode repeats announcements from the beginning of a prompt on. So a second store
 * from a prompt's beginning raises the upper bound alone, and between the bounds a block is
 * *unsure*. A removed block stays in the tree while there are blocks behind it: they return
 * together.
 *
 * A block's *reach* says if a prompt that ends there is found as a whole: the block and every block
 * in front of it are present. The reach is updated with each event, and changes are reported. If a
 * block in the middle goes or returns, that concerns all blocks behind it.
 *
 * If a model has several groups of layers (sliding windows, states), a prompt is found up to where
 * all groups serve it. Full attention needs all its blocks, a window the last ones, a state the one
 * at its end. Engines drop windows and states in a prompt's middle and keep those at its end. So a
 * block's reach then says: is the block part of a prompt that would be found to its end? For
 * prompts that part from that one earlier this is an upper bound. Groups with another block size
 * make the first group's blocks unsure.
 *
 * Memory is allocated at once and bounded: KV_TREE_BLOCK_BYTES for each of `blocks_max`.
 */
#ifndef NODE_KV_TREE_H
#define NODE_KV_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "node/kv/batch.h"

enum {
    KV_GROUPS_MAX = 16,       /* of a hybrid model; events of further groups are not counted */
    KV_TREE_BLOCK_BYTES = 64, /* tables included */
    KV_AHEAD = 16, /* blocks between prefetch and use: each is 0.4 us of work, and memory takes 0.1
                      us a step */
};

/* The chain of a prompt's first blocks and one more, from the digest of that block's tokens (struct
 * kv_event). Never 0. */
uint64_t kv_chain(const struct hash_secret *secret, uint64_t chain, uint64_t digest);
/* The chain of no blocks. */
uint64_t kv_chain_root(const struct hash_secret *secret, uint32_t block_tokens, uint64_t space);

struct kv_tree;

enum kv_reach { KV_GONE, KV_UNSURE, KV_THERE };

struct kv_tree_user {
    /* Called from within kv_tree_apply(); may read the tree, but not change it. */
    void (*reached)(void *context, uint64_t chain, enum kv_reach now);
    void *context;
};

/* Nothing is known at first: in doubt. `secret` and `user` are borrowed; `user` may be NULL.
 * ERR_NOMEM. */
MUST_USE int kv_tree_create(struct kv_tree **out, const struct kv_tree_user *user,
                            const struct hash_secret *secret, uint32_t blocks_max);
void kv_tree_destroy(struct kv_tree *t);
void kv_tree_check(const struct kv_tree *t);

/* The engine has just started with an empty cache. */
void kv_tree_clear(struct kv_tree *t);
/* Events were missed, or none arrived so far. Until all is cleared, known blocks may be gone, and
 * unknown blocks may be cached. A stored block may be a second copy. */
void kv_tree_doubt(struct kv_tree *t);
/* All requests that were in flight when events were missed have ended. An engine stores a block
 * that it has already only for simultaneous requests, so from now on a new block is the only
 * copy. */
void kv_tree_settle(struct kv_tree *t);

/* While unknown blocks may be cached, a block without any certainty is useless except for blocks
 * behind it: drops such blocks, and returns their number. One walk over all. Does nothing if
 * several groups count: there a block counts for those in front of it. */
uint32_t kv_tree_make_room(struct kv_tree *t);

/* Allows so many further steps from block to block, beyond those of an event's own blocks. A tree
 * that used them all is tired: its feed costs more than an engine's should. Such a tree takes no
 * more steps, even within an event, and may be wrong until cleared. */
void kv_tree_allow(struct kv_tree *t, uint64_t steps);
/* Charges the tree for work of the caller. */
void kv_tree_spend(struct kv_tree *t, uint64_t steps);
bool kv_tree_is_tired(const struct kv_tree *t);

/* The time of the events that are applied next; at first 0. */
void kv_tree_clock(struct kv_tree *t, uint64_t now_ms);
/* An event of the block will be applied soon: prefetches its memory, and changes nothing else. */
void kv_tree_ahead(struct kv_tree *t, uint64_t hash);
/* Must be called in the order of the feed. */
void kv_tree_apply(struct kv_tree *t, const struct kv_event *event);

/* The reach of the block that ends that chain. */
enum kv_reach kv_tree_reach(const struct kv_tree *t, uint64_t chain);
/* A place in the tree, for walks towards the root. Valid until an event is applied. */
struct kv_tree_place {
    uint32_t at;
    uint32_t depth; /* blocks up to this one; 0: not in the tree, or at an unknown position */
    uint64_t chain;
};
struct kv_tree_place kv_tree_find(const struct kv_tree *t, uint64_t chain);
/* The block with that hash of the engine's, in the group that has chains. */
struct kv_tree_place kv_tree_find_hash(const struct kv_tree *t, uint64_t hash);
/* The block at that depth in front of it; depth 0: none. */
struct kv_tree_place kv_tree_up(const struct kv_tree *t, struct kv_tree_place from, uint32_t depth);
/* True if some block was ever stored elsewhere than on the GPU. */
bool kv_tree_has_tiers(const struct kv_tree *t);
/* True if the engine reported a pool that engines share (`locality` REMOTE). Any of them may store
 * and remove there, so its content is unknown. */
bool kv_tree_has_pool(const struct kv_tree *t);
/* Tokens per block in the group that has chains; 0: no such group yet. */
uint32_t kv_tree_block_tokens(const struct kv_tree *t);
/* True if unknown blocks are not cached. */
bool kv_tree_is_whole(const struct kv_tree *t);
/* True if the event is for the group that has chains. */
bool kv_tree_is_main(const struct kv_tree *t, const struct kv_event *event);
/* The number of blocks of the prefix up to `place` that were surely on the GPU, all the time since
 * then. 0 if several groups count. */
uint32_t kv_tree_stood(const struct kv_tree *t, struct kv_tree_place place, uint64_t since_ms);
/* The engine found so many blocks of that prefix, at some time since then: those without an event
 * meanwhile are present. False: the events had said that they are not. */
bool kv_tree_found(struct kv_tree *t, struct kv_tree_place place, uint32_t blocks,
                   uint64_t since_ms);

/* A request that was sent at `since_ms`, when nothing was missed any more, computed the blocks
 * behind that depth up to `place`. So no copy of them was there, and a block that was stored once
 * since is the only copy. */
void kv_tree_computed(struct kv_tree *t, struct kv_tree_place place, uint32_t depth,
                      uint64_t since_ms);

/* A point in a prompt with known tokens: `blocks` blocks in front, which end that chain, and the
 * digest of the next block's tokens. */
struct kv_front {
    uint32_t blocks; /* below KV_FRONT_BLOCKS_MAX */
    uint64_t chain, digest;
};
enum { KV_FRONT_BLOCKS_MAX = 8192, KV_FRONTS_MAX = 4 };
/* The first front is where the cached part ends; at the others prompts parted before. */
struct kv_fronts {
    unsigned count;
    struct kv_front at[KV_FRONTS_MAX];
};
/* An answer's fronts. For a reader that joined late, blocks behind an unknown block have no
 * place. `fronts->at[0]` names the block where the prompt went on. That block may have arrived
 * after `since_ms` without a place. If one of the fronts is where the unknown block stands, that
 * block and all behind it get their places. The answer found the blocks in front, so these count
 * as present while that block is. Models with several groups of layers get no places. Returns
 * false if the tree does not have the block where the prompt went on. */
bool kv_tree_fronts(struct kv_tree *t, const struct kv_fronts *fronts, uint64_t since_ms);

/* Saves the tree for the same engine's next one: bytes of this machine. ERR_NOMEM. */
MUST_USE int kv_tree_keep(const struct kv_tree *t, struct buf *out);
/* Loads such a tree without reports. False: not a tree, or too many blocks; then nothing is known,
 * and all is in doubt. */
bool kv_tree_recall(struct kv_tree *t, struct slice kept);

struct kv_tree_stats {
    uint32_t blocks;   /* current, including those that are there only for others behind them */
    uint32_t held;     /* blocks of all groups that are surely on the GPU */
    uint64_t unplaced; /* stored behind an unknown block */
    uint64_t unknown;  /* removed while unknown; or of a group beyond KV_GROUPS_MAX */
    uint64_t full;     /* without room */
    bool whole;        /* unknown blocks are not cached */
};
struct kv_tree_stats kv_tree_stats(const struct kv_tree *t);

#endif
