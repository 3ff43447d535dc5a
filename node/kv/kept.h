/* What an earlier life of this process knew of engines by their feeds, until each is opened again
 * (readers.h). It is forgotten after a while.
 */
#ifndef NODE_KV_KEPT_H
#define NODE_KV_KEPT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

enum {
    KV_KEPT_MAX = 128,   /* feeds: as many as a router has open */
    KV_KEPT_MS = 120000, /* that what an earlier life knew waits for its feed */
};

struct kv_kept_feed {
    uint32_t rkey, blocks;
    uint64_t address;
    struct buf reader; /* empty: it is taken */
};

/* Starts zeroed. */
struct kv_kept {
    struct kv_kept_feed feeds[KV_KEPT_MAX]; /* the first `count` */
    unsigned count;
    uint64_t until_ms; /* 0: no tick came yet */
};

/* Without room or memory for it, it is as if it had not been kept. */
void kv_kept_add(struct kv_kept *k, const struct kv_kept_feed *feed, struct slice reader);
/* NULL: there is none. Who takes it empties `reader`. */
struct kv_kept_feed *kv_kept_find(struct kv_kept *k, uint32_t rkey, uint64_t address);
void kv_kept_tick(struct kv_kept *k, uint64_t now_ms);
void kv_kept_forget(struct kv_kept *k);

#endif
