/* Learned figures about a replica, from this router or others: a table with a row per field, in
 * wire order. The struct, the codec, the digest, equality and the report rule are generated from
 * the table.
 *
 * A figure may come with the number of samples behind it. Sums count since the reporting router's
 * start, so only their differences have a meaning. Routers share them because an engine's counters
 * can only be compared with the predictions of all routers. node/replica/learned.h collects,
 * receives and shows figures.
 *
 * A new row goes to the end of the table. Older routers keep and forward the new field's bytes
 * (crdt/value.h). In a report from an older router the new field is 0.
 */
#ifndef CRDT_LEARNED_H
#define CRDT_LEARNED_H

#include <stdbool.h>

#include "base/future.h"
#include "base/wire.h"

/* X(width, name, when): u64 has 63 bits. A router reports again when a field has
 *   CHANGED at all, MOVED by more than 2 %, or more than DOUBLED (for few samples).
 *   A field with ALONG never causes a report. */
#define CRDT_LEARNED_FIELDS(X)                                                                     \
    X(u64, cache_tokens, MOVED)    /* size of the cache as the engine reports it; 0: unknown */    \
    X(u32, believed_ppm, MOVED)    /* believed cache size, per million of cache_tokens */          \
    X(u32, believed_rkey, CHANGED) /* the cache that believed_ppm and size_ppm describe */         \
    X(u32, rate, MOVED)            /* prefill tokens per second */                                 \
    X(u32, rate_samples, DOUBLED)                                                                  \
    X(u32, step_base_ns, MOVED)    /* decode step = base + context tokens * step_context */        \
    X(u32, step_context_fs, MOVED) /* decode step time per context token, femtoseconds */          \
    X(u32, pace_samples, DOUBLED)                                                                  \
    X(u32, bytes_per_token_milli, MOVED)                                                           \
    X(u32, bytes_samples, DOUBLED)                                                                 \
    X(u64, prompt_tokens, CHANGED)   /* sum: prompt tokens of requests whose answers began */      \
    X(u64, predicted_tokens, ALONG)  /* sum: part of prompt_tokens predicted as cached */          \
    X(u64, told, CHANGED)            /* sum: answers with a report of the cached tokens */         \
    X(u64, grown_ppm, ALONG)         /* no longer used: replaced by size_ppm */                    \
    X(u64, shrunk_ppm, ALONG)        /* no longer used: replaced by size_ppm */                    \
    X(u32, scrapes, CHANGED)         /* times this router read the engine's metrics */             \
    X(u64, engine_started_ms, ALONG) /* here to engine_generated: value + 1; 0: unknown */         \
    X(u32, engine_running, ALONG)                                                                  \
    X(u32, engine_waiting, ALONG)                                                                  \
    X(u32, engine_usage_ppm, ALONG)                                                                \
    X(u64, engine_queries, ALONG) /* sum: tokens looked up in the prefix cache */                  \
    X(u64, engine_hits, ALONG)                                                                     \
    X(u64, engine_prompt, ALONG)    /* sum: prompt tokens */                                       \
    X(u64, engine_generated, ALONG) /* sum: generated tokens */                                    \
    X(u32, size_ppm, MOVED) /* cache size by this router's evidence, in ppm of cache_tokens */     \
    X(u32, size_weight_milli, DOUBLED) /* weight of size_ppm against other routers' size_ppm */    \
    X(u32, adapter_slots, CHANGED) /* number of LoRA adapters the engine can hold; 0: unknown */   \
    X(u64, void_blocks, CHANGED) /* sum: blocks recorded but never computed (refused, given up) */ \
    X(u32, engine_work, CHANGED) /* times the engine was seen at work: node/replica/scraped.h */   \
    X(u32, events_rkey, CHANGED) /* the cache whose KV-cache events are read and live */           \
    X(u32, events_floor, CHANGED) /* oldest generation in recent eviction events; 0: none */       \
    X(u32, events_reads, CHANGED) /* this router's role in reading events: enum node_reads */

#define CRDT_LEARNED_IN_u64_OF_u64(name) uint64_t name;
#define CRDT_LEARNED_IN_u64_OF_u32(name)
#define CRDT_LEARNED_IN_u32_OF_u64(name)
#define CRDT_LEARNED_IN_u32_OF_u32(name)       uint32_t name;
#define CRDT_LEARNED_WIDE(width, name, when)   CRDT_LEARNED_IN_u64_OF_##width(name)
#define CRDT_LEARNED_NARROW(width, name, when) CRDT_LEARNED_IN_u32_OF_##width(name)

/* Wide fields come first, to leave no padding between fields: the digest hashes the struct's
 * words. */
struct crdt_learned {
    CRDT_LEARNED_FIELDS(CRDT_LEARNED_WIDE)
    CRDT_LEARNED_FIELDS(CRDT_LEARNED_NARROW)
    FUTURE_LEARNED_FIELDS(CRDT_LEARNED_NARROW)
};

#define CRDT_LEARNED_BYTES_u64 9
#define CRDT_LEARNED_BYTES_u32 5
/* A term of the sum CRDT_LEARNED_BYTES_MAX. NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define CRDT_LEARNED_BYTES(width, name, when) +CRDT_LEARNED_BYTES_##width
enum { /* on the wire */
       CRDT_LEARNED_BYTES_MAX =
           0 CRDT_LEARNED_FIELDS(CRDT_LEARNED_BYTES) FUTURE_LEARNED_FIELDS(CRDT_LEARNED_BYTES)
};

void crdt_learned_write(struct wire_writer *w, const struct crdt_learned *l);
/* Reads the fields that are present; the others become 0. */
void crdt_learned_read(struct wire_reader *r, struct crdt_learned *out);
/* Copies the fields; the padding of `out` stays as it is. */
void crdt_learned_copy(struct crdt_learned *out, const struct crdt_learned *in);
/* True if `now` differs enough from `reported` for a new report. */
bool crdt_learned_moved(const struct crdt_learned *reported, const struct crdt_learned *now);

#endif
