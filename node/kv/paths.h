/* Checkpoints of prompts, and their positions in chains of tokens.
 *
 * Routers identify a prompt by its checkpoints (base/chain.h), engines by its blocks of tokens. A
 * *tie* connects the two. A tie says that a prompt that ends B bytes of text after a checkpoint has
 * P tokens. It also gives the chain of the prompt's whole blocks (node/kv/tree.h). A tie depends on
 * the model and the block size, not on the engine, because all engines have the same chain.
 *
 * The token position of a checkpoint between two ties follows from its share of the bytes. With its
 * position each checkpoint gets an *anchor*: the chain of the whole blocks before it. If two
 * prompts with the same anchor turn out to differ before it, the anchor moves back to the point
 * where they part. The last checkpoint of a prompt has the whole prompt's anchor. Routers expect
 * that the conversation's next turn reuses the prompt and its answer (node/replica/ruler.h), so the
 * last checkpoint is useless without the text after it.
 *
 * One table serves all engines of a router with the same block size (sizes.h). Its memory is
 * bounded: KV_PATH_POINT_BYTES for each of `points_max` checkpoints. Those unused for longest are
 * dropped first, beginning at the ends of prompts.
 */
#ifndef NODE_KV_PATHS_H
#define NODE_KV_PATHS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "node/kv/tree.h"

enum {
    KV_PATH_POINT_BYTES = 72, /* bytes per checkpoint, tables included */
    KV_PATH_LENGTH_MAX = 640, /* most checkpoints of a prompt: CHAIN_POINTS_MAX */
};

struct kv_paths;

struct kv_anchor_user {
    void (*anchored)(void *context, uint64_t id, uint8_t code, uint64_t chain);
    void *context;
    struct kv_anchor_user *next; /* in the list of listeners */
    uint32_t number;             /* this listener's number, from 1 on */
};

/* ERR_NOMEM. */
MUST_USE int kv_paths_create(struct kv_paths **out, uint32_t points_max);
/* Creates a copy with the same checkpoints, all without anchors. Copies all points: some 10 ms for
 * half a million. ERR_NOMEM. */
MUST_USE int kv_paths_copy(struct kv_paths **out, const struct kv_paths *from);
void kv_paths_destroy(struct kv_paths *p);
void kv_paths_check(const struct kv_paths *p);

/* Adds checkpoints of a prompt in order: the low 48 bits of their ids, and their weight codes. They
 * follow the checkpoint `parent`; 0: they begin the prompt. Returns false if `parent` is unknown;
 * then nothing was added. */
bool kv_paths_join(struct kv_paths *p, uint64_t parent, const uint64_t *ids, const uint8_t *codes,
                   unsigned count);

/* Calls the listener from now on for each checkpoint that gets its first or another anchor. `user`
 * is borrowed until kv_paths_unlisten(). */
void kv_paths_listen(struct kv_paths *p, struct kv_anchor_user *user);
void kv_paths_unlisten(struct kv_paths *p, struct kv_anchor_user *user);

/* Adds a tie that `by` reports: a prompt that ends `tail_bytes` after the checkpoint `end` has
 * `tokens` tokens, and `place` is its last whole block. Returns the number of new anchors.
 * ERR_NOT_FOUND: `end` is unknown. ERR_RANGE: the block size is another one. */
MUST_USE int kv_paths_tie(struct kv_paths *p, const struct kv_anchor_user *by, uint64_t end,
                          uint32_t tail_bytes, uint32_t tokens, uint32_t block_tokens,
                          const struct kv_tree *tree, struct kv_tree_place place);
/* Drops the anchors that only this listener reported, because it is no longer trusted. */
void kv_paths_disown(struct kv_paths *p, const struct kv_anchor_user *by);

/* Returns the block size of the ties: the first tie's, or that of kv_paths_choose(); 0: none
 * yet. */
uint32_t kv_paths_size(const struct kv_paths *p);
/* Accepts only this block size from now on. Anchors of another size are dropped in one walk over
 * all checkpoints, of some 20 ms for half a million. */
void kv_paths_choose(struct kv_paths *p, uint32_t block_tokens);
/* Returns true if there is a listener. */
bool kv_paths_is_used(const struct kv_paths *p);

/* Returns true if a prompt up to the checkpoint `end` may contain the block `place`: no certain
 * anchor of the text is another block at that depth. */
bool kv_paths_fits(const struct kv_paths *p, uint64_t end, const struct kv_tree *tree,
                   struct kv_tree_place place);

/* Returns the last checkpoint up to `end` that has an anchor; 0: none. */
uint64_t kv_paths_anchored(const struct kv_paths *p, uint64_t end);

/* How useful it is to ask the engine for a prompt's token ids (asked.h). */
enum kv_want {
    KV_WANT_NONE,  /* useless: the prompt's end has an anchor */
    KV_WANT_MAYBE, /* the prompt's end is new: events alone may give the tie */
    KV_WANT_SURE,  /* events gave no tie after an answer to text beyond the last anchor */
};
/* Returns how useful that is for a prompt with these checkpoints (ids as in kv_paths_join()), of
 * which some may be unknown. */
enum kv_want kv_paths_want(const struct kv_paths *p, const uint64_t *ids, unsigned count);
/* Notes that there is no tie for an answer to a prompt that ends after the checkpoint `end`. */
void kv_paths_untied(struct kv_paths *p, uint64_t end);

/* Returns the last block of the tree that a prompt up to the checkpoint `end` certainly contains;
 * depth 0: none. */
struct kv_tree_place kv_paths_known(const struct kv_paths *p, uint64_t end,
                                    const struct kv_tree *tree);

/* Calls the listener's `anchored` for each checkpoint that has this chain as its anchor. */
void kv_paths_at(const struct kv_paths *p, uint64_t chain, const struct kv_anchor_user *user);
/* A queue that does what kv_paths_at() does, but KV_AHEAD chains later, when the memory has been
 * prefetched into the processor's caches. Starts zeroed. */
struct kv_paths_later {
    unsigned first, count;
    uint64_t chains[KV_AHEAD];
};
void kv_paths_at_later(const struct kv_paths *p, struct kv_paths_later *l, uint64_t chain,
                       const struct kv_anchor_user *user);
void kv_paths_at_last(const struct kv_paths *p, struct kv_paths_later *l,
                      const struct kv_anchor_user *user);
/* Calls the listener's `anchored` for each checkpoint with an anchor among the `count` places from
 * *cursor on. Moves *cursor. */
void kv_paths_walk(const struct kv_paths *p, uint32_t *cursor, uint32_t count,
                   const struct kv_anchor_user *user);

/* Saves: appends a piece with the next checkpoints from place *cursor on. Returns 1, or 0 if none
 * is left. Checkpoints may come and go between two calls. ERR_NOMEM. */
MUST_USE int kv_paths_keep(const struct kv_paths *p, uint32_t *cursor, struct buf *out);
/* Returns the block size of a piece that kv_paths_keep() wrote; 0: it has no anchors, or is
 * invalid. */
uint32_t kv_paths_kept_size(struct slice kept);
/* Adds the checkpoints of a saved piece if their parents are known, and its anchors for checkpoints
 * that have none. Returns true if some are new, so that others may have known parents now. */
bool kv_paths_recall(struct kv_paths *p, struct slice kept);

struct kv_paths_stats {
    uint32_t points, anchors; /* present numbers of checkpoints and anchors */
    uint32_t places;          /* places for kv_paths_walk() to visit */
    uint64_t joined, orphans, dropped;
    uint64_t moved; /* anchors that were too far from the prompt's beginning, and moved back */
};
struct kv_paths_stats kv_paths_stats(const struct kv_paths *p);

#endif
