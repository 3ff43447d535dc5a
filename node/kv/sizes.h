/* The tables of checkpoints (paths.h) for engines with different block sizes.
 *
 * Chains of different block sizes have nothing in common, so each size has a separate table. Sizes
 * differ between models, between vLLM and SGLang, or after a restart with another size. All tables
 * have the same checkpoints, because routers report a prompt before they know which engine, and so
 * which block size, will answer.
 *
 * There are at most KV_SIZES_MAX tables. A further size takes over a table without readers, and the
 * table's anchors are lost. So an engine with an ever-changing block size takes nothing from
 * others.
 */
#ifndef NODE_KV_SIZES_H
#define NODE_KV_SIZES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "node/kv/paths.h"

enum {
    KV_SIZES_MAX = 4,       /* two models, each with an old and a new size */
    KV_SIZE_TAKE_MS = 1000, /* shortest time between two replacements, which take some 20 ms each */
};

struct kv_sizes {
    struct kv_paths *of[KV_SIZES_MAX]; /* filled from the front; NULL: none yet */
    uint64_t take_ms;                  /* earliest time at which a size may replace another */
};

/* Makes the first table, so that checkpoints are stored from now on. No effect if already open.
 * ERR_NOMEM. */
MUST_USE int kv_sizes_open(struct kv_sizes *s, uint32_t points_max);
void kv_sizes_close(struct kv_sizes *s);
bool kv_sizes_is_open(const struct kv_sizes *s);

/* Returns the table for this block size. NULL: KV_SIZES_MAX others are in use, there is no memory,
 * or kv_sizes_open() was not called. */
struct kv_paths *kv_sizes_find(struct kv_sizes *s, uint32_t block_tokens, uint64_t now_ms);

/* These do as the functions of the same name in paths.h, for all tables. Statistics are sums; only
 * `joined` and `orphans` count each checkpoint once. */
void kv_sizes_join(struct kv_sizes *s, uint64_t parent, const uint64_t *ids, const uint8_t *codes,
                   unsigned count);
enum kv_want kv_sizes_want(const struct kv_sizes *s, const uint64_t *ids, unsigned count);
struct kv_paths_stats kv_sizes_stats(const struct kv_sizes *s);
/* Appends the next piece to save, table by table. `*size` and `*cursor` begin at 0. */
MUST_USE int kv_sizes_keep(const struct kv_sizes *s, unsigned *size, uint32_t *cursor,
                           struct buf *out);
bool kv_sizes_recall(struct kv_sizes *s, struct slice kept);

#endif
