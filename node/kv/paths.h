/* Checkpoints of prompts, and their positions in chains of tokens.
 *
 * Routers identify a prompt by its checkpoints (base/chain.h), engines by blocks of tokens. A *tie*
 * connects the two. A tie says: a prompt that ends so many bytes of text behind this checkpoint has
 * P tokens, and its whole blocks end with that chain (node/kv/tree.h). A tie is a fact about a
 * model and a block size, not about an engine: the chain is the same everywhere.
 *
 * The position of a checkpoint between two ties follows from its share of the bytes. Each gets an
 * *anchor*: the chain of its whole blocks. If prompts part before an anchor that both have, the
 * anchor moves back to that point. The anchor of a prompt's last checkpoint is that of the whole
 * prompt. Routers expect the next turn there to have the prompt and its answer
 * (node/replica/ruler.h), so the checkpoint is useless without the text behind it.
 *
 * One table serves all engines of a router with the same block size (sizes.h). Bounded:
 * KV_PATH_POINT_BYTES for each of `points_max`. The points unused for longest are dropped first,
 * beginning at the ends of prompts.
 */
#ifndef NODE_KV_PATHS_H
#define NODE_KV_PATHS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "node/kv/tree.h"

enum {
    KV_PATH_POINT_BYTES = 72, /* tables included */
    KV_PATH_LENGTH_MAX = 640, /* checkpoints of one prompt: CHAIN_POINTS_MAX */
};

struct kv_paths;

struct kv_anchor_user {
    void (*anchored)(void *context, uint64_t id, uint8_t code, uint64_t chain);
    void *context;
    struct kv_anchor_user *next; /* of the listeners, */
    uint32_t number;             /* of this listener; from 1 on */
};

/* ERR_NOMEM. */
MUST_USE int kv_paths_create(struct kv_paths **out, uint32_t points_max);
/* Creates a copy with the same checkpoints, all without anchors. Copies all points: some 10 ms for
 * half a million. ERR_NOMEM. */
MUST_USE int kv_paths_copy(struct kv_paths **out, const struct kv_paths *from);
void kv_paths_destroy(struct kv_paths *p);
void kv_paths_check(const struct kv_paths *p);

/* Adds checkpoints of a prompt in order: low 48 bits of ids, and weight codes. They follow
 * `parent`; 0: the first one is the prompt's. False: `parent` is unknown, so nothing was added. */
bool kv_paths_join(struct kv_paths *p, uint64_t parent, const uint64_t *ids, const uint8_t *codes,
                   unsigned count);

/* Calls the listener for each checkpoint that gets an anchor from now on, or another one. Borrowed;
 * sets its `next` and `number`. */
void kv_paths_listen(struct kv_paths *p, struct kv_anchor_user *user);
void kv_paths_unlisten(struct kv_paths *p, struct kv_anchor_user *user);

/* `by` reports a tie: a prompt that ends `tail_bytes` behind the checkpoint `end` has so many
 * tokens, and `place` is its last whole block. Returns the number of new anchors; ERR_NOT_FOUND:
 * `end` is unknown; ERR_RANGE: another block size. */
MUST_USE int kv_paths_tie(struct kv_paths *p, const struct kv_anchor_user *by, uint64_t end,
                          uint32_t tail_bytes, uint32_t tokens, uint32_t block_tokens,
                          const struct kv_tree *tree, struct kv_tree_place place);
/* The listener is not trusted: drops the anchors that it alone reported. */
void kv_paths_disown(struct kv_paths *p, const struct kv_anchor_user *by);

/* The block size of the ties: the first tie's, or the one chosen; 0: none yet. */
uint32_t kv_paths_size(const struct kv_paths *p);
/* Accepts only that block size from now on. Anchors of another size are dropped in one walk over
 * all points, some 20 ms for half a million. */
void kv_paths_choose(struct kv_paths *p, uint32_t block_tokens);
/* True if there is a listener. */
bool kv_paths_is_used(const struct kv_paths *p);

/* True if a prompt of that text may pass through that block: no certain anchor of the text is
 * another block. */
bool kv_paths_fits(const struct kv_paths *p, uint64_t end, const struct kv_tree *tree,
                   struct kv_tree_place place);

/* The last checkpoint up to this one with an anchor; 0: none. */
uint64_t kv_paths_anchored(const struct kv_paths *p, uint64_t end);

/* How useful it is to ask the engine for a prompt's tokens (asked.h). */
enum kv_want {
    KV_WANT_NONE,  /* its end has an anchor */
    KV_WANT_MAYBE, /* nothing is known of its end: structure may suffice */
    KV_WANT_SURE,  /* an answer to its text behind the last anchor found no tie */
};
/* Ids as in kv_paths_join(); some may be unknown. */
enum kv_want kv_paths_want(const struct kv_paths *p, const uint64_t *ids, unsigned count);
/* An answer to a prompt that ends behind that checkpoint found no tie. */
void kv_paths_untied(struct kv_paths *p, uint64_t end);

/* The last block of that tree that a prompt of that text certainly passes through; depth 0:
 * none. */
struct kv_tree_place kv_paths_known(const struct kv_paths *p, uint64_t end,
                                    const struct kv_tree *tree);

/* Calls `anchored` for each checkpoint with that chain as its anchor. */
void kv_paths_at(const struct kv_paths *p, uint64_t chain, const struct kv_anchor_user *user);
/* The same, but KV_AHEAD chains later, when the processor's caches have the memory; and for all
 * that are left. Starts zeroed. */
struct kv_paths_later {
    unsigned first, count;
    uint64_t chains[KV_AHEAD];
};
void kv_paths_at_later(const struct kv_paths *p, struct kv_paths_later *l, uint64_t chain,
                       const struct kv_anchor_user *user);
void kv_paths_at_last(const struct kv_paths *p, struct kv_paths_later *l,
                      const struct kv_anchor_user *user);
/* The same for all checkpoints with an anchor among the next `count` places from *cursor on, which
 * moves. */
void kv_paths_walk(const struct kv_paths *p, uint32_t *cursor, uint32_t count,
                   const struct kv_anchor_user *user);

/* Appends the next points of the places from *cursor on: 1, or 0: none is left. Points may come and
 * go between two pieces. ERR_NOMEM. */
MUST_USE int kv_paths_keep(const struct kv_paths *p, uint32_t *cursor, struct buf *out);
/* The block size of such a piece; 0: no anchors, or no such piece. */
uint32_t kv_paths_kept_size(struct slice kept);
/* Adds the points of such a piece with known parents, and its anchors for points without one. True:
 * some points are new, so that others may have parents now. */
bool kv_paths_recall(struct kv_paths *p, struct slice kept);

struct kv_paths_stats {
    uint32_t points, anchors; /* now */
    uint32_t places;          /* that kv_paths_walk() visits */
    uint64_t joined, orphans, dropped;
    uint64_t moved; /* anchors that were too far on */
};
struct kv_paths_stats kv_paths_stats(const struct kv_paths *p);

#endif
