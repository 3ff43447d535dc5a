/* Positions of checkpoints in chains (paths.h), for engines with different block sizes.
 *
 * Chains of different block sizes have nothing in common, so each size has paths of its own. Sizes
 * differ between several models, between vLLM and SGLang, or after a restart with another size. All
 * paths have the same checkpoints, because routers report prompts before it is known which engine,
 * and so which size, will answer.
 *
 * Bounded: KV_SIZES_MAX sizes at a time. A further size replaces one that no reader uses, which
 * loses its anchors. So an engine that changes its size all the time takes nothing from others.
 */
#ifndef NODE_KV_SIZES_H
#define NODE_KV_SIZES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "node/kv/paths.h"

enum {
    KV_SIZES_MAX = 4, /* two models, an old and a new one each; each takes KV_POINTS_MAX points */
    KV_SIZE_TAKE_MS = 1000, /* between two replacements: each is a walk of some 20 ms */
};

struct kv_sizes {
    struct kv_paths *of[KV_SIZES_MAX]; /* filled from the front; NULL: none yet */
    uint64_t take_ms;                  /* earliest time at which a size may replace another */
};

/* Starts joining prompts. Does nothing if already open. ERR_NOMEM. */
MUST_USE int kv_sizes_open(struct kv_sizes *s, uint32_t points_max);
void kv_sizes_close(struct kv_sizes *s);
bool kv_sizes_is_open(const struct kv_sizes *s);

/* The paths for that block size. NULL: KV_SIZES_MAX others are in use, or there is no memory, or
 * the table is not open. */
struct kv_paths *kv_sizes_find(struct kv_sizes *s, uint32_t block_tokens, uint64_t now_ms);

/* As in paths.h, for all sizes; joined points, and orphans, count once. */
void kv_sizes_join(struct kv_sizes *s, uint64_t parent, const uint64_t *ids, const uint8_t *codes,
                   unsigned count);
enum kv_want kv_sizes_want(const struct kv_sizes *s, const uint64_t *ids, unsigned count);
struct kv_paths_stats kv_sizes_stats(const struct kv_sizes *s);
/* Appends the next piece, one size after the other; both cursors begin at 0. */
MUST_USE int kv_sizes_keep(const struct kv_sizes *s, unsigned *size, uint32_t *cursor,
                           struct buf *out);
bool kv_sizes_recall(struct kv_sizes *s, struct slice kept);

#endif
