/* Readers' states, saved before a restart of the router. Each state waits until the feed is opened
 * again (readers.h), and is dropped after KV_KEPT_MS. */
#ifndef NODE_KV_KEPT_H
#define NODE_KV_KEPT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

enum {
    KV_KEPT_MAX = 128,   /* most open feeds of a router */
    KV_KEPT_MS = 120000, /* longest time that a state waits for the feed */
};

struct kv_kept_feed {
    uint32_t rkey, blocks;
    uint64_t address;
    struct buf reader; /* the reader's saved state; empty: a feed has taken it */
};

/* Starts zeroed. */
struct kv_kept {
    struct kv_kept_feed feeds[KV_KEPT_MAX]; /* the first `count` are in use */
    unsigned count;
    uint64_t until_ms; /* time at which waiting states are dropped; 0: no tick yet */
};

/* Adds a feed's state. If there are KV_KEPT_MAX or there is no memory, the state is lost. */
void kv_kept_add(struct kv_kept *k, const struct kv_kept_feed *feed, struct slice reader);
/* Returns the feed's state; NULL: none. The caller takes `reader` and empties it. */
struct kv_kept_feed *kv_kept_find(struct kv_kept *k, uint32_t rkey, uint64_t address);
void kv_kept_tick(struct kv_kept *k, uint64_t now_ms);
void kv_kept_forget(struct kv_kept *k);

#endif
