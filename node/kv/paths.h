/* Checkpoints of prompts, and where they stand in chains of tokens.
 *
 * Routers know a prompt by its checkpoints (base/chain.h), engines by blocks of tokens. A *tie*
 * joins the two: the prompt whose text ends so many bytes behind this checkpoint is P tokens long,
 * and its whole blocks end with that chain (node/kv/tree.h). It is a fact about a model and a block
 * size, not about an engine: the chain is the same everywhere.
 *
 * Checkpoints between two ties stand where their share of the bytes puts them, and each gets an
 * *anchor*: the chain of its whole blocks. Where prompts turn out to part before an anchor that
 * both have, the anchor moves back to where they part. The anchor of a prompt's last checkpoint is
 * that of the whole prompt: what routers expect of the next turn there is the prompt and its answer
 * (node/replica/ruler.h), so the checkpoint is of no use to it without the text behind.
 *
 * One for all engines of a router whose blocks have the same size (sizes.h). Bounded:
 * KV_PATH_POINT_BYTES for each of `points_max`; the ones that were not used for longest go first,
 * from the ends of prompts on.
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
    KV_PATH_LENGTH_MAX = 640, /* checkpoints of a prompt: CHAIN_POINTS_MAX */
};

struct kv_paths;

struct kv_anchor_user {
    void (*anchored)(void *context, uint64_t id, uint8_t code, uint64_t chain);
    void *context;
    struct kv_anchor_user *next; /* of those that listen, */
    uint32_t number;             /* this one's; from 1 on */
};

/* ERR_NOMEM. */
MUST_USE int kv_paths_create(struct kv_paths **out, uint32_t points_max);
/* With the same checkpoints, none of which has an anchor: one copy of all points, some 10 ms for
 * half a million. ERR_NOMEM. */
MUST_USE int kv_paths_copy(struct kv_paths **out, const struct kv_paths *from);
void kv_paths_destroy(struct kv_paths *p);
void kv_paths_check(const struct kv_paths *p);

/* Checkpoints of a prompt in their order: low 48 bits of ids, and weight codes. They stand behind
 * `parent`; 0: the first one is the prompt's. False: `parent` is not known, so nothing was taken.
 */
bool kv_paths_join(struct kv_paths *p, uint64_t parent, const uint64_t *ids, const uint8_t *codes,
                   unsigned count);

/* Is called for each checkpoint that has an anchor from now on, or another one. Borrowed; sets its
 * `next` and `number`. */
void kv_paths_listen(struct kv_paths *p, struct kv_anchor_user *user);
void kv_paths_unlisten(struct kv_paths *p, struct kv_anchor_user *user);

/* `by` says so: a prompt that ends `tail_bytes` behind the checkpoint `end` has so many tokens, and
 * `place` is its last whole block. Returns how many anchors are new, or ERR_NOT_FOUND: `end` is not
 * known; ERR_RANGE: it is of blocks of another size. */
MUST_USE int kv_paths_tie(struct kv_paths *p, const struct kv_anchor_user *by, uint64_t end,
                          uint32_t tail_bytes, uint32_t tokens, uint32_t block_tokens,
                          const struct kv_tree *tree, struct kv_tree_place place);
/* It is not believed: the anchors that it alone said are gone. */
void kv_paths_disown(struct kv_paths *p, const struct kv_anchor_user *by);

/* The size of the blocks of its ties: the first one's, or the one that was chosen; 0: none yet. */
uint32_t kv_paths_size(const struct kv_paths *p);
/* From now on it takes those of that size alone. Anchors of another size are gone: that is one walk
 * over all points, some 20 ms for half a million. */
void kv_paths_choose(struct kv_paths *p, uint32_t block_tokens);
/* Whether anybody listens. */
bool kv_paths_is_used(const struct kv_paths *p);

/* Whether a prompt of that text may pass through that block: false if an anchor of its text, where
 * it is certain, is another block. */
bool kv_paths_fits(const struct kv_paths *p, uint64_t end, const struct kv_tree *tree,
                   struct kv_tree_place place);

/* The last checkpoint up to this one that has an anchor; 0: there is none. */
uint64_t kv_paths_anchored(const struct kv_paths *p, uint64_t end);

/* How much a prompt wants to be asked for its tokens (asked.h). */
enum kv_want {
    KV_WANT_NONE,  /* its end has an anchor */
    KV_WANT_MAYBE, /* nothing is known of its end: structure may do */
    KV_WANT_SURE,  /* an answer of its text behind the last anchor found no tie */
};
/* Ids as of kv_paths_join(), of which some may not be known. */
enum kv_want kv_paths_want(const struct kv_paths *p, const uint64_t *ids, unsigned count);
/* An answer to a prompt that ends behind that checkpoint found no tie. */
void kv_paths_untied(struct kv_paths *p, uint64_t end);

/* The last block of that tree of which it is certain that a prompt of that text passes through it;
 * depth 0: none is. */
struct kv_tree_place kv_paths_known(const struct kv_paths *p, uint64_t end,
                                    const struct kv_tree *tree);

/* Calls `anchored` for each checkpoint whose anchor is that chain. */
void kv_paths_at(const struct kv_paths *p, uint64_t chain, const struct kv_anchor_user *user);
/* The same KV_AHEAD chains later, when the processor's caches have the memory; and for all that are
 * left. Starts zeroed. */
struct kv_paths_later {
    unsigned first, count;
    uint64_t chains[KV_AHEAD];
};
void kv_paths_at_later(const struct kv_paths *p, struct kv_paths_later *l, uint64_t chain,
                       const struct kv_anchor_user *user);
void kv_paths_at_last(const struct kv_paths *p, struct kv_paths_later *l,
                      const struct kv_anchor_user *user);
/* The same for all that have an anchor, of the next `count` places from *cursor on, which moves. */
void kv_paths_walk(const struct kv_paths *p, uint32_t *cursor, uint32_t count,
                   const struct kv_anchor_user *user);

/* Appends the next points of the places from *cursor on: 1, or 0: there is none left. Points may
 * come and go between two pieces. ERR_NOMEM. */
MUST_USE int kv_paths_keep(const struct kv_paths *p, uint32_t *cursor, struct buf *out);
/* The size of the blocks of such a piece; 0: it has no anchors, or is none. */
uint32_t kv_paths_kept_size(struct slice kept);
/* Takes the points of such a piece whose parents are known, and its anchors where there are none.
 * True: some points are new, so that others may have parents now. */
bool kv_paths_recall(struct kv_paths *p, struct slice kept);

struct kv_paths_stats {
    uint32_t points, anchors; /* now */
    uint32_t places;          /* that kv_paths_walk() goes over */
    uint64_t joined, orphans, dropped;
    uint64_t moved; /* anchors that turned out to be too far on */
};
struct kv_paths_stats kv_paths_stats(const struct kv_paths *p);

#endif
