/* The cache of an engine's rank, as the KV events show it: a tree of blocks.
 *
 * A group of layers and the engine's hash identify a block. The block's *chain* is a hash of all
 * tokens from the prompt's beginning to the block's end (kv_chain()). The chain is the same at
 * every engine with this block size, whatever the engine's release and seed. Chains are stored for
 * the first group with full attention, the main group.
 *
 * The number of a block's copies is known between two bounds. An engine stores the same block twice
 * for two simultaneous requests, and removes each copy separately. But a second store event is no
 * proof of another copy, because any client can make an engine announce cached blocks again.
 * (vLLM's kv_cache_report_mode repeats announcements from the beginning of a prompt on.) So a
 * second store from a prompt's beginning raises only the upper bound. A block is *unsure* if the
 * bounds allow both no copy and a copy. A removed block stays in the tree while blocks come after
 * it. If the removed block returns, the blocks after it count as cached again.
 *
 * A block's *reach* says if a prompt up to the block is cached as a whole: the block and every
 * block before it are present. Each event updates the reach, and changes are reported. If a block
 * in the middle is removed or returns, the reach of all blocks after it changes.
 *
 * If a model has several groups of layers (sliding windows, states), an engine reuses a prompt up
 * to the point where all groups allow it. Full attention needs all blocks up to this point, a
 * window the last blocks, and a state only the last block. Engines drop windows and states in a
 * prompt's middle and keep them at the end. So for such models a block's reach says if the block is
 * part of a prompt cached to the end. For a prompt which parts from the cached prompt earlier, this
 * is an upper bound. Groups with another block size make the main group's blocks unsure.
 *
 * All memory is allocated at once: KV_TREE_BLOCK_BYTES for each of `blocks_max`.
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
    KV_GROUPS_MAX = 16,       /* groups of a hybrid model; events of further groups are ignored */
    KV_TREE_BLOCK_BYTES = 64, /* bytes of memory per block, tables included */
    KV_AHEAD = 16, /* blocks between a prefetch and the use: a block takes 0.4 us, memory 0.1 us a
                      step */
};

/* Returns the chain of a prompt up to a block's end. `chain`: the chain of the blocks before this
 * block. `digest`: the digest of the block's tokens (struct kv_event). Never 0. */
uint64_t kv_chain(const struct hash_secret *secret, uint64_t chain, uint64_t digest);
/* Returns the chain of a prompt without blocks. */
uint64_t kv_chain_root(const struct hash_secret *secret, uint32_t block_tokens, uint64_t space);

struct kv_tree;

enum kv_reach { KV_GONE, KV_UNSURE, KV_THERE };

struct kv_tree_user {
    /* Called from within kv_tree_apply(); may read the tree, but not change it. */
    void (*reached)(void *context, uint64_t chain, enum kv_reach now);
    void *context;
};

/* At first the tree is in doubt, as nothing is known. `secret` and `user` are borrowed; `user` may
 * be NULL. ERR_NOMEM. */
MUST_USE int kv_tree_create(struct kv_tree **out, const struct kv_tree_user *user,
                            const struct hash_secret *secret, uint32_t blocks_max);
void kv_tree_destroy(struct kv_tree *t);
void kv_tree_check(const struct kv_tree *t);

/* Called when the engine has just started with an empty cache. */
void kv_tree_clear(struct kv_tree *t);
/* Called when events were missed. Until the engine clears the cache, known blocks may be gone, and
 * unknown blocks may be cached. A stored block may be a second copy. */
void kv_tree_doubt(struct kv_tree *t);
/* Called when all requests in flight at the time of missed events have ended. An engine stores a
 * second copy of a block only for simultaneous requests, so from now on a newly stored block is the
 * only copy. */
void kv_tree_settle(struct kv_tree *t);

/* Drops uncertain blocks without blocks after them, if unknown blocks may be cached anyway. Returns
 * their number. Takes a walk over all blocks. No effect if several groups count, because then a
 * block also counts for the blocks before it. */
uint32_t kv_tree_make_room(struct kv_tree *t);

/* Allows this number of further steps from block to block; the events' own blocks cost none. After
 * the last step the tree is tired, because the feed costs more than an engine's should. A tired
 * tree takes no more steps, even within an event, and may be wrong until cleared. */
void kv_tree_allow(struct kv_tree *t, uint64_t steps);
/* Takes this number of the allowed steps, for the caller's work. */
void kv_tree_spend(struct kv_tree *t, uint64_t steps);
bool kv_tree_is_tired(const struct kv_tree *t);

/* Sets the time of the next events; at first 0. */
void kv_tree_clock(struct kv_tree *t, uint64_t now_ms);
/* Prefetches the memory of a block for which an event will be applied soon. Changes nothing. */
void kv_tree_ahead(struct kv_tree *t, uint64_t hash);
/* Applies an event. Must be called in the order of the feed. */
void kv_tree_apply(struct kv_tree *t, const struct kv_event *event);

/* Returns the reach of the block at the end of this chain. */
enum kv_reach kv_tree_reach(const struct kv_tree *t, uint64_t chain);
/* A place in the tree, for walks towards the root. Valid until an event is applied. */
struct kv_tree_place {
    uint32_t at;
    uint32_t depth; /* number of blocks up to this block; 0: not in the tree, or unknown */
    uint64_t chain;
};
struct kv_tree_place kv_tree_find(const struct kv_tree *t, uint64_t chain);
/* Returns the block of the main group with this engine's hash. */
struct kv_tree_place kv_tree_find_hash(const struct kv_tree *t, uint64_t hash);
/* Returns the block at this depth on the path to `from`; depth 0: none. */
struct kv_tree_place kv_tree_up(const struct kv_tree *t, struct kv_tree_place from, uint32_t depth);
/* Returns true if any block was stored elsewhere than on the GPU since the tree was cleared. */
bool kv_tree_has_tiers(const struct kv_tree *t);
/* Returns true if the engine reported a pool shared by several engines (`locality` REMOTE). The
 * pool's content is unknown, because any of these engines may store and remove blocks. */
bool kv_tree_has_pool(const struct kv_tree *t);
/* Returns the tokens per block in the main group; 0: there is no such group yet. */
uint32_t kv_tree_block_tokens(const struct kv_tree *t);
/* Returns true if no block outside the tree is cached. */
bool kv_tree_is_whole(const struct kv_tree *t);
/* Returns true if the event is for the main group. */
bool kv_tree_is_main(const struct kv_tree *t, const struct kv_event *event);
/* Returns the length in blocks, up to `place`, of the prefix surely on the GPU all the time since
 * `since_ms`. Returns 0 if several groups count. */
uint32_t kv_tree_stood(const struct kv_tree *t, struct kv_tree_place place, uint64_t since_ms);
/* Notes that at some time since `since_ms` the engine found the first `blocks` blocks of the prefix
 * up to `place`. So the found blocks without an event since then are present. Returns false if,
 * according to the events, any found block was gone. */
bool kv_tree_found(struct kv_tree *t, struct kv_tree_place place, uint32_t blocks,
                   uint64_t since_ms);

/* Notes that a request computed the blocks after `depth` up to `place`. The request was sent at
 * `since_ms`, after the last missed event. So there was no copy of these blocks, and a block stored
 * once since then is the only copy. */
void kv_tree_computed(struct kv_tree *t, struct kv_tree_place place, uint32_t depth,
                      uint64_t since_ms);

/* A point between two blocks of a prompt with known tokens: the number and the chain of the blocks
 * before the point, and the digest of the next block's tokens. */
struct kv_front {
    uint32_t blocks; /* below KV_FRONT_BLOCKS_MAX */
    uint64_t chain, digest;
};
enum { KV_FRONT_BLOCKS_MAX = 8192, KV_FRONTS_MAX = 4 };
/* An answer's fronts. The first is the end of the prompt's cached part. At the others, the prompt
 * parted from earlier prompts. */
struct kv_fronts {
    unsigned count;
    struct kv_front at[KV_FRONTS_MAX];
};
/* Places blocks by an answer's fronts. For a reader which joined late, blocks after an unknown
 * block have no place. `fronts->at[0]` identifies the block after the prompt's cached part, which
 * may have been stored since `since_ms` without a place. If the unknown block is at a front, the
 * blocks from there on get their places. The blocks before them were found by the answer, and count
 * as present as long as the first placed block. Models with several groups of layers get no places.
 * Returns false if the tree lacks the block after the cached part. */
bool kv_tree_fronts(struct kv_tree *t, const struct kv_fronts *fronts, uint64_t since_ms);

/* Saves the tree for a later tree of the same engine, in this machine's byte order. ERR_NOMEM. */
MUST_USE int kv_tree_keep(const struct kv_tree *t, struct buf *out);
/* Loads a saved tree, without reports. Returns false if the bytes are no tree or have too many
 * blocks; then the tree is empty and in doubt. */
bool kv_tree_recall(struct kv_tree *t, struct slice kept);

struct kv_tree_stats {
    uint32_t blocks;   /* blocks in the tree, even removed blocks with others after them */
    uint32_t held;     /* blocks of all groups surely on the GPU */
    uint64_t unplaced; /* blocks stored after an unknown block */
    uint64_t unknown;  /* removals of unknown blocks, and all blocks of ignored groups */
    uint64_t full;     /* blocks that did not fit */
    bool whole;        /* no block outside the tree is cached */
};
struct kv_tree_stats kv_tree_stats(const struct kv_tree *t);

#endif
