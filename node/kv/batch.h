/* A message of an engine's KV-event feed: the blocks stored in the cache and removed from there.
 *
 * The payload is MessagePack (msgpack-c): a batch [time, events, rank], as published by vLLM from
 * 0.9, SGLang from 0.4.6 and TensorRT-LLM from 1.4. Each event is an array (vLLM up to 0.23) or a
 * map, independently of the other events. Unknown tags, unknown fields and trailing elements are
 * skipped. A batch is read twice. The first reading checks everything and finds the block sizes, so
 * fields may come in any order, and a malformed batch changes nothing.
 *
 * Token ids are hashed as they pass. Two numbers remain of each block: the engine's hash, a handle
 * valid only within this engine, and a digest of the block's tokens, equal at every engine.
 */
#ifndef NODE_KV_BATCH_H
#define NODE_KV_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/slice.h"

enum {
    KV_BATCH_EVENTS_MAX = 1 << 18, /* events in a batch: older SGLang sent an event per page */
    KV_EVENT_BLOCKS_MAX = 1 << 18, /* blocks in an event: 1-token pages of a long prompt */
    KV_GROUP_NONE = UINT16_MAX,    /* the event names no group: the engine has a single group */
};

enum kv_change {
    KV_STORED,
    KV_REMOVED,
    KV_CLEARED, /* all blocks of this rank were removed */
};

/* The tier of a block, from the event's `medium`. */
enum kv_medium {
    KV_GPU,  /* "GPU", or missing */
    KV_HOST, /* "CPU", "cpu", "CPU_PINNED" */
    KV_DISK, /* "DISK", "STORAGE", "FS", "OBJ", "EXTERNAL" */
    KV_OTHER,
};

/* The blocks that a group of layers needs to reuse a prefix, from `kv_cache_spec_kind`. */
enum kv_kind {
    KV_ATTENTION, /* every block: full_attention, mla_attention, sink_full_attention, or missing */
    KV_WINDOW,    /* the blocks of the last window: sliding_window*, chunked_local_attention */
    KV_STATE,     /* only the state at the prefix's end: mamba */
    KV_IGNORED,   /* not counted: encoder_only_attention, cross_attention, unknown kinds */
};

/* An event. The slices and arrays are valid only during the call of `each`. */
struct kv_event {
    enum kv_change change;
    enum kv_medium medium;
    enum kv_kind kind;
    bool remote;            /* the blocks are in a pool shared by engines (`locality` REMOTE) */
    bool has_parent;        /* false: the first block begins a prompt */
    uint64_t parent;        /* the engine's hash of the block before the event's first block */
    uint32_t count;         /* number of blocks */
    const uint64_t *hashes; /* the engine's hashes: of byte strings, the last 8 bytes, big-endian */
    /* Digests of the blocks' tokens and `extra_keys`. NULL if tokens are missing or do not fill the
     * blocks evenly: such blocks have only the engine's hash. */
    const uint64_t *digests;
    uint32_t block_tokens; /* `block_size`; 0: missing */
    uint32_t window;       /* length of a sliding window in tokens; 0: missing */
    uint16_t group;        /* `group_idx`, or KV_GROUP_NONE */
    uint64_t space; /* a digest of `cache_salt`, `extra_key` and the adapter's name; 0: none */
    struct slice session; /* `session_id`; empty: none */
};

struct kv_batch {
    int32_t rank;     /* data_parallel_rank; -1: missing */
    uint32_t events;  /* events passed to the caller */
    uint32_t skipped; /* events skipped, because their tag is unknown */
};

struct kv_decoder;

/* `secret` is borrowed. Digests are comparable only between routers with the same secret.
 * ERR_NOMEM. */
MUST_USE int kv_decoder_create(struct kv_decoder **out, const struct hash_secret *secret);
void kv_decoder_destroy(struct kv_decoder *d);
/* Sets a function for prefetching memory. Before any call of `each`, `ahead` is called with every
 * block's hash, and with the context of `each`. The batch may still turn out to be malformed. */
void kv_decoder_ahead(struct kv_decoder *d, void (*ahead)(void *context, uint64_t hash));

/* Calls `each` for every event, in the engine's order. ERR_SYNTAX if the payload is no batch;
 * ERR_LIMIT if the batch has more events or blocks than the limits above; ERR_NOMEM. If there is an
 * error, `each` is not called. The memory used grows with the events and blocks present, not with
 * the payload's announced lengths. */
MUST_USE int kv_batch_decode(struct kv_decoder *d, struct slice payload,
                             void (*each)(void *context, const struct kv_event *event),
                             void *context, struct kv_batch *out);

#endif
