/* Checkpoints of prompts, and their positions in chains of tokens.
 *
 * Routers identify a prompt by checkpoints (base/chain.h), engines by blocks of tokens. A *tie*
 * connects the two: a prompt ending B bytes of text after a checkpoint has P tokens. The tie also
 * gives the chain of the prompt's whole blocks (node/kv/tree.h). A tie depends on the model and the
 * block size, not on the engine, because all engines have the same chain.
 *
 * The token position of a checkpoint between two ties is interpolated by bytes. The position gives
 * the checkpoint's *anchor*: the chain of the whole blocks before the checkpoint. If two prompts
 * with the same anchor turn out to differ before the anchor, the anchor moves back to where the
 * prompts part. The last checkpoint of a prompt has the whole prompt's anchor. Routers expect that
 * the conversation's next turn reuses the prompt and the answer (node/replica/ruler.h), so the last
 * checkpoint is useless without the text after it.
 *
 * A table serves all engines of a router with the same block size (sizes.h). Memory is bounded:
 * KV_PATH_POINT_BYTES for each of `points_max` checkpoints. The checkpoints unused for longest are
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
    KV_PATH_POINT_BYTES = 72, /* bytes of memory per checkpoint, tables included */
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

/* From now on calls the listener for each checkpoint with a new or changed anchor. `user` is
 * borrowed until kv_paths_unlisten(). */
void kv_paths_listen(struct kv_paths *p, struct kv_anchor_user *user);
void kv_paths_unlisten(struct kv_paths *p, struct kv_anchor_user *user);

/* Adds a tie reported by `by`: a prompt ending `tail_bytes` after the checkpoint `end` has `tokens`
 * tokens, and `place` is the prompt's last whole block. Returns the number of new anchors.
 * ERR_NOT_FOUND: `end` is unknown. ERR_RANGE: the table has another block size. */
MUST_USE int kv_paths_tie(struct kv_paths *p, const struct kv_anchor_user *by, uint64_t end,
                          uint32_t tail_bytes, uint32_t tokens, uint32_t block_tokens,
                          const struct kv_tree *tree, struct kv_tree_place place);
/* Drops the anchors that only this listener reported, because the listener is no longer trusted. */
void kv_paths_disown(struct kv_paths *p, const struct kv_anchor_user *by);

/* Returns the block size of the ties, set by the first tie or by kv_paths_choose(); 0: none yet. */
uint32_t kv_paths_size(const struct kv_paths *p);
/* Accepts only this block size from now on. Anchors of another size are dropped in a walk over all
 * checkpoints: some 20 ms for half a million. */
void kv_paths_choose(struct kv_paths *p, uint32_t block_tokens);
/* Returns true if there is a listener. */
bool kv_paths_is_used(const struct kv_paths *p);

/* Returns true if a prompt up to the checkpoint `end` may contain the block `place`: no certain
 * anchor of the prompt is off the path to `place`. */
bool kv_paths_fits(const struct kv_paths *p, uint64_t end, const struct kv_tree *tree,
                   struct kv_tree_place place);

/* Returns the last checkpoint with an anchor, up to `end`; 0: none. */
uint64_t kv_paths_anchored(const struct kv_paths *p, uint64_t end);

/* How useful it is to ask the engine for a prompt's token ids (asked.h). */
enum kv_want {
    KV_WANT_NONE,  /* useless: the prompt's end has an anchor */
    KV_WANT_MAYBE, /* the prompt's end is new: events alone may give the tie */
    KV_WANT_SURE,  /* events gave no tie after an answer to text beyond the last anchor */
};
/* Returns how useful it is to ask for the token ids of a prompt with these checkpoints (ids as in
 * kv_paths_join()). Some checkpoints may be unknown. */
enum kv_want kv_paths_want(const struct kv_paths *p, const uint64_t *ids, unsigned count);
/* Notes an answer without a tie, to a prompt whose last checkpoint is `end`. */
void kv_paths_untied(struct kv_paths *p, uint64_t end);

/* Returns the last block of the tree which is certainly in a prompt up to the checkpoint `end`;
 * depth 0: none. */
struct kv_tree_place kv_paths_known(const struct kv_paths *p, uint64_t end,
                                    const struct kv_tree *tree);

/* Calls the listener's `anchored` for each checkpoint with this chain as the anchor. */
void kv_paths_at(const struct kv_paths *p, uint64_t chain, const struct kv_anchor_user *user);
/* A queue of calls of kv_paths_at(), so that the processor has prefetched the memory by the time of
 * the call. kv_paths_at_later() adds a call, and makes the first one if KV_AHEAD calls wait.
 * kv_paths_at_last() makes all waiting calls. Starts zeroed. */
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
/* Returns the block size of a piece written by kv_paths_keep(); 0: the piece has no anchors, or is
 * invalid. */
uint32_t kv_paths_kept_size(struct slice kept);
/* Adds a saved piece: checkpoints with known parents, and anchors for checkpoints without any.
 * Returns true if some checkpoints are new, so that others may have known parents now. */
bool kv_paths_recall(struct kv_paths *p, struct slice kept);

struct kv_paths_stats {
    uint32_t points, anchors; /* present numbers of checkpoints and anchors */
    uint32_t places;          /* places for kv_paths_walk() to visit */
    uint64_t joined, orphans, dropped;
    uint64_t moved; /* anchors moved back, because they were too far from the prompt's beginning */
};
struct kv_paths_stats kv_paths_stats(const struct kv_paths *p);

#endif
