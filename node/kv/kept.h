/* The state of readers from an earlier life of this process, until each feed is opened again
 * (readers.h). It is dropped after a while. */
#ifndef NODE_KV_KEPT_H
#define NODE_KV_KEPT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

enum {
    KV_KEPT_MAX = 128,   /* feeds: as many as a router opens */
    KV_KEPT_MS = 120000, /* the state waits so long for its feed */
};

struct kv_kept_feed {
    uint32_t rkey, blocks;
    uint64_t address;
    struct buf reader; /* the reader's state; empty: taken */
};

/* Starts zeroed. */
struct kv_kept {
    struct kv_kept_feed feeds[KV_KEPT_MAX]; /* the first `count` are in use */
    unsigned count;
    uint64_t until_ms; /* 0: no tick yet */
};

/* Adds a feed's state. Without room or memory the state is lost. */
void kv_kept_add(struct kv_kept *k, const struct kv_kept_feed *feed, struct slice reader);
/* NULL: none. The caller takes the state and empties `reader`. */
struct kv_kept_feed *kv_kept_find(struct kv_kept *k, uint32_t rkey, uint64_t address);
void kv_kept_tick(struct kv_kept *k, uint64_t now_ms);
void kv_kept_forget(struct kv_kept *k);

#endif
