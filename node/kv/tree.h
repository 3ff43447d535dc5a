/* What one rank of an engine holds, by its KV events: a tree of blocks.
 *
 * A block is known by its group and the engine's hash. Its *chain* is a hash of all tokens from the
 * prompt's beginning to the block's end. It is the same at every engine of that block size,
 * whatever its release and seed: kv_chain(). Chains are kept of the first group with full
 * attention.
 *
 * Copies are counted between two bounds. An engine stores the same block twice for two requests at
 * once, and removes each copy by itself; but a store is no proof of another copy, for anybody can
 * ask an engine to announce again what it holds (vLLM's kv_cache_report_mode: from the beginning of
 * a prompt on). So a second store from a prompt's beginning raises the upper bound alone, and
 * between the bounds a block is *unsure*. A block that was
 * removed stays in the tree while others stand behind it: when it returns, so do they.
 *
 * A block's *reach* says whether a prompt that ends there finds all of it: every block in front of
 * it is there, and so is it. It is kept up to date with each event, and a change is reported: where
 * a block in the middle goes or returns, for all that stands behind it.
 *
 * Where a model has several groups of layers (sliding windows, states), a prompt is found up to
 * where all groups serve it: full attention with all of its blocks, a window with the last ones, a
 * state with the one at its end. Engines give up windows and states of a prompt's middle and keep
 * its end, so a block's reach is then: is it part of a prompt that would be found to its end? For
 * prompts that part from that one earlier it is an upper bound. Groups whose blocks have another
 * size leave unsure what the first group holds.
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
    KV_GROUPS_MAX = 16,       /* of a hybrid model; events of others are not counted */
    KV_TREE_BLOCK_BYTES = 64, /* tables included */
    KV_AHEAD = 16, /* blocks between asking for memory and its use: each is 0.4 us of work, and
                      memory takes 0.1 us a step */
};

/* The chain of a prompt's first blocks and the next one: by the digest of that one's tokens (struct
 * kv_event). Never 0. */
uint64_t kv_chain(const struct hash_secret *secret, uint64_t chain, uint64_t digest);
/* Of no block. */
uint64_t kv_chain_root(const struct hash_secret *secret, uint32_t block_tokens, uint64_t space);

struct kv_tree;

enum kv_reach { KV_GONE, KV_UNSURE, KV_THERE };

struct kv_tree_user {
    /* From within kv_tree_apply(); it may ask, and change nothing. */
    void (*reached)(void *context, uint64_t chain, enum kv_reach now);
    void *context;
};

/* Nothing is known yet: in doubt. `secret` and `user` are borrowed; `user` may be NULL. ERR_NOMEM.
 */
MUST_USE int kv_tree_create(struct kv_tree **out, const struct kv_tree_user *user,
                            const struct hash_secret *secret, uint32_t blocks_max);
void kv_tree_destroy(struct kv_tree *t);
void kv_tree_check(const struct kv_tree *t);

/* The engine has just begun: it holds nothing. */
void kv_tree_clear(struct kv_tree *t);
/* Events were missed, or none was seen yet: what is known may be gone, and what is not known may be
 * held, until all is cleared. A block that is stored may be a second copy. */
void kv_tree_doubt(struct kv_tree *t);
/* All requests have ended that were under way when events were missed. An engine stores a block
 * that it holds only for requests that ran at once, so from now on a new one is the only copy. */
void kv_tree_settle(struct kv_tree *t);

/* Where what is not known may be held, a block of which nothing is certain is worth no room, but
 * for those that stand behind it: such blocks go. Returns how many. One walk over all. Not where
 * several groups have a say: there a block counts for those in front of it. */
uint32_t kv_tree_make_room(struct kv_tree *t);

/* From now on it may take so many steps from block to block beyond those of an event's own blocks.
 * A tree that is tired took them all: its feed asks for more than an engine does. It takes no more
 * then, also within an event, and what it says may be wrong until it is cleared. */
void kv_tree_allow(struct kv_tree *t, uint64_t steps);
/* What the caller did costs as much. */
void kv_tree_spend(struct kv_tree *t, uint64_t steps);
bool kv_tree_is_tired(const struct kv_tree *t);

/* When that happens which is applied next; at first 0. */
void kv_tree_clock(struct kv_tree *t, uint64_t now_ms);
/* An event of the block will be applied soon: brings its memory into the processor's caches, and
 * changes nothing else. */
void kv_tree_ahead(struct kv_tree *t, uint64_t hash);
/* In the order of the feed. */
void kv_tree_apply(struct kv_tree *t, const struct kv_event *event);

/* Of the block that ends that chain. */
enum kv_reach kv_tree_reach(const struct kv_tree *t, uint64_t chain);
/* A place in the tree, for walks towards the root. Valid until something is applied. */
struct kv_tree_place {
    uint32_t at;
    uint32_t depth; /* blocks up to this one; 0: it is not in the tree, or unknown where */
    uint64_t chain;
};
struct kv_tree_place kv_tree_find(const struct kv_tree *t, uint64_t chain);
/* Of the engine's hash, in the group that has chains. */
struct kv_tree_place kv_tree_find_hash(const struct kv_tree *t, uint64_t hash);
/* The block in front of it at that depth; depth 0: there is none. */
struct kv_tree_place kv_tree_up(const struct kv_tree *t, struct kv_tree_place from, uint32_t depth);
/* Whether some block was ever stored elsewhere than on the GPU. */
bool kv_tree_has_tiers(const struct kv_tree *t);
/* Whether the engine told of a pool that engines share (`locality` REMOTE). Any of them may store
 * and remove there, so what is in it is not known here. */
bool kv_tree_has_pool(const struct kv_tree *t);
/* Tokens of a block in the group that has chains; 0: there is none yet. */
uint32_t kv_tree_block_tokens(const struct kv_tree *t);
/* Whether what is not known is not held. */
bool kv_tree_is_whole(const struct kv_tree *t);
/* Whether the event is of that group. */
bool kv_tree_is_main(const struct kv_tree *t, const struct kv_event *event);
/* How many blocks of the prefix that ends there were on the GPU for sure, all the time since then.
 * 0 where several groups have a say. */
uint32_t kv_tree_stood(const struct kv_tree *t, struct kv_tree_place place, uint64_t since_ms);
/* The engine found so many blocks of that prefix, at some time since then: those of which no event
 * was heard meanwhile are there. False: the events had said that they are not. */
bool kv_tree_found(struct kv_tree *t, struct kv_tree_place place, uint32_t blocks,
                   uint64_t since_ms);

/* A request that was sent then, when nothing was missed any more, computed the blocks behind that
 * depth up to `place`: so no copy of them was there, and one that was stored once since is the only
 * one. */
void kv_tree_computed(struct kv_tree *t, struct kv_tree_place place, uint32_t depth,
                      uint64_t since_ms);

/* A place in a prompt whose tokens are known: so many blocks stand in front, which end that chain,
 * and the next one's tokens have that digest. */
struct kv_front {
    uint32_t blocks; /* below KV_FRONT_BLOCKS_MAX */
    uint64_t chain, digest;
};
enum { KV_FRONT_BLOCKS_MAX = 8192, KV_FRONTS_MAX = 4 };
/* The first one is where what it found in the cache ends, the others are where prompts were seen to
 * part before. */
struct kv_fronts {
    unsigned count;
    struct kv_front at[KV_FRONTS_MAX];
};
/* An answer's fronts. For a reader that joined late, blocks behind an unknown block have no place.
 * `fronts->at[0]` names the block where the prompt went on. If that block arrived after `since_ms`
 * without a place, and one of the fronts is where the unknown block stands, that block and all
 * behind it get their places. The answer found the blocks in front of it, so they count as there
 * while it is. Models with several groups of layers get no places. Returns false if the tree does
 * not have the block where the prompt went on. */
bool kv_tree_fronts(struct kv_tree *t, const struct kv_fronts *fronts, uint64_t since_ms);

/* All that it knows, for the same engine's next tree: bytes of this machine. ERR_NOMEM. */
MUST_USE int kv_tree_keep(const struct kv_tree *t, struct buf *out);
/* A tree takes it, and reports nothing. False: that is no tree, or needs more blocks; then nothing
 * is known, and all is in doubt. */
bool kv_tree_recall(struct kv_tree *t, struct slice kept);

struct kv_tree_stats {
    uint32_t blocks;   /* now, with those that only others keep here */
    uint32_t held;     /* blocks of all groups that are surely on the GPU */
    uint64_t unplaced; /* stored behind a block that is not known */
    uint64_t unknown;  /* removed, and not known; or of a group beyond KV_GROUPS_MAX */
    uint64_t full;     /* found no room */
    bool whole;        /* what is not known is not held */
};
struct kv_tree_stats kv_tree_stats(const struct kv_tree *t);

#endif
