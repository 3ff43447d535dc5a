/* One message of an engine's KV-event feed: the blocks that its cache stored and removed.
 *
 * The payload is MessagePack (msgpack-c): a batch [time, events, rank], as published by vLLM from
 * 0.9, SGLang from 0.4.6 and TensorRT-LLM from 1.4. Each event is an array (vLLM up to 0.23) or a
 * map, whatever the events beside it are. Unknown tags, unknown fields and trailing elements are
 * skipped. A batch is read twice: the first reading checks all of it and finds the block sizes, so
 * fields may come in any order and a batch that is malformed changes nothing.
 *
 * Token ids are hashed as they pass. Of each block two numbers stay: the engine's hash, which is a
 * handle within one engine, and a digest of its tokens, which is the same at every engine.
 */
#ifndef NODE_KV_BATCH_H
#define NODE_KV_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/slice.h"

enum {
    KV_BATCH_EVENTS_MAX = 1 << 18, /* of one batch: SGLang once sent one event a page */
    KV_EVENT_BLOCKS_MAX = 1 << 18, /* of one event: a prompt of so many tokens, with pages of one */
    KV_GROUP_NONE = UINT16_MAX,    /* the event names no group: the engine has one */
};

enum kv_change {
    KV_STORED,
    KV_REMOVED,
    KV_CLEARED, /* all blocks of this rank */
};

/* Where blocks lie: by the event's `medium`. */
enum kv_medium {
    KV_GPU,  /* "GPU"; not told */
    KV_HOST, /* "CPU", "cpu", "CPU_PINNED" */
    KV_DISK, /* "DISK", "STORAGE", "FS", "OBJ", "EXTERNAL" */
    KV_OTHER,
};

/* What a group of layers must hold for a prefix to be reusable: `kv_cache_spec_kind`. */
enum kv_kind {
    KV_ATTENTION, /* every block: full_attention, mla_attention, sink_full_attention; not told */
    KV_WINDOW,    /* the blocks of the last window: sliding_window*, chunked_local_attention */
    KV_STATE,     /* one state at the end: mamba */
    KV_IGNORED,   /* any other: encoder_only_attention, cross_attention, unknown */
};

/* Slices and arrays are valid during the call. */
struct kv_event {
    enum kv_change change;
    enum kv_medium medium;
    enum kv_kind kind;
    bool remote;            /* `locality` REMOTE: in a pool that replicas share */
    bool has_parent;        /* else the first block begins a prompt */
    uint64_t parent;        /* the engine's hash of the block before the first one */
    uint32_t count;         /* blocks */
    const uint64_t *hashes; /* of the engine; bytes count as their last eight, big-endian */
    /* Digests of the blocks' tokens and `extra_keys`; NULL where tokens are absent or do not fill
     * the blocks evenly: such blocks are known by the engine's hash alone. */
    const uint64_t *digests;
    uint32_t block_tokens; /* `block_size`; 0: not told */
    uint32_t window;       /* tokens of a sliding window; 0: not told */
    uint16_t group;        /* `group_idx`, or KV_GROUP_NONE */
    uint64_t space; /* a digest of `cache_salt`, `extra_key` and the adapter's name; 0: none */
    struct slice session; /* `session_id`; empty: none */
};

struct kv_batch {
    int32_t rank;     /* data_parallel_rank; -1: not told */
    uint32_t events;  /* that were handed over */
    uint32_t skipped; /* of an unknown tag */
};

struct kv_decoder;

/* `secret` is borrowed; routers that compare digests share it. ERR_NOMEM. */
MUST_USE int kv_decoder_create(struct kv_decoder **out, const struct hash_secret *secret);
void kv_decoder_destroy(struct kv_decoder *d);
/* Before `each` is called for any event, `ahead` is called for the hash of every block, with the
 * same context, to bring memory into the processor's caches. The batch may be malformed yet. */
void kv_decoder_ahead(struct kv_decoder *d, void (*ahead)(void *context, uint64_t hash));

/* Calls `each` for every event, in the engine's order. ERR_SYNTAX if the payload is no batch;
 * ERR_LIMIT if it has more events or blocks than the limits above; ERR_NOMEM. After an error `each`
 * was not called. Memory grows with the events and blocks that are there, not with the lengths that
 * the payload announces. */
MUST_USE int kv_batch_decode(struct kv_decoder *d, struct slice payload,
                             void (*each)(void *context, const struct kv_event *event),
                             void *context, struct kv_batch *out);

#endif
