/* Where checkpoints stand in chains (paths.h), for engines whose blocks have different sizes.
 *
 * Chains of blocks of different sizes have nothing in common, so each size has paths of its own:
 * engines of several models, or of vLLM and SGLang, or one that restarts with another size. All
 * have the same checkpoints, for what routers tell of prompts comes before anybody knows which
 * engine, and so which size, will answer.
 *
 * Bounded: KV_SIZES_MAX sizes at a time. Another one takes the place of one that no reader uses,
 * whose anchors go; so an engine that changes its size all the time takes nothing from others.
 */
#ifndef NODE_KV_SIZES_H
#define NODE_KV_SIZES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "node/kv/paths.h"

enum {
    KV_SIZES_MAX = 4, /* two models, the old and the new one; each takes KV_POINTS_MAX points */
    KV_SIZE_TAKE_MS =
        1000, /* between two that take another's place: that is a walk of some 20 ms */
};

struct kv_sizes {
    struct kv_paths *of[KV_SIZES_MAX]; /* the first ones; NULL: there is none yet */
    uint64_t take_ms;                  /* not before then does a size take another's place */
};

/* From now on prompts are joined. Nothing if they are already. ERR_NOMEM. */
MUST_USE int kv_sizes_open(struct kv_sizes *s, uint32_t points_max);
void kv_sizes_close(struct kv_sizes *s);
bool kv_sizes_is_open(const struct kv_sizes *s);

/* The paths of blocks of that size. NULL: KV_SIZES_MAX others are in use, or there is no memory, or
 * it is not open. */
struct kv_paths *kv_sizes_find(struct kv_sizes *s, uint32_t block_tokens, uint64_t now_ms);

/* As those of paths.h, of all sizes; what was joined, and orphans, count once. */
void kv_sizes_join(struct kv_sizes *s, uint64_t parent, const uint64_t *ids, const uint8_t *codes,
                   unsigned count);
enum kv_want kv_sizes_want(const struct kv_sizes *s, const uint64_t *ids, unsigned count);
struct kv_paths_stats kv_sizes_stats(const struct kv_sizes *s);
/* The next piece of them, one size behind the other; both cursors begin at 0. */
MUST_USE int kv_sizes_keep(const struct kv_sizes *s, unsigned *size, uint32_t *cursor,
                           struct buf *out);
bool kv_sizes_recall(struct kv_sizes *s, struct slice kept);

#endif
