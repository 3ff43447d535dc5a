/* Learned figures about a replica, from this router or others: one row per field, in wire order.
 * The struct, the codec, the digest, equality and the report rule follow from the row.
 *
 * A figure comes with its number of samples, taken by any router. Sums count since the router's
 * start, and only their differences have a meaning: an engine's counters can only be compared with
 * all routers' predictions. node/replica/learned.h collects, takes in and shows figures.
 *
 * A new row goes to the end. Older routers keep and forward its bytes (crdt/value.h). In a report
 * from an older router the field is 0.
 */
#ifndef CRDT_LEARNED_H
#define CRDT_LEARNED_H

#include <stdbool.h>

#include "base/future.h"
#include "base/wire.h"

/* X(width, name, when): u64 has 63 bits. A report is made again when a field has
 *   CHANGED at all, MOVED by more than 2 %, or DOUBLED (more samples matter while there are few).
 *   ALONG: it is never the cause. */
#define CRDT_LEARNED_FIELDS(X)                                                                     \
    X(u64, cache_tokens, MOVED)    /* size of the cache as the engine reports it; 0: unknown */    \
    X(u32, believed_ppm, MOVED)    /* size by feedback, per million of that */                     \
    X(u32, believed_rkey, CHANGED) /* the cache that this is of: another life, another size */     \
    X(u32, rate, MOVED)            /* prefill tokens per second */                                 \
    X(u32, rate_samples, DOUBLED)                                                                  \
    X(u32, step_base_ns, MOVED)    /* decode pace: base + context * per token */                   \
    X(u32, step_context_fs, MOVED) /* femtoseconds a context token */                              \
    X(u32, pace_samples, DOUBLED)                                                                  \
    X(u32, bytes_per_token_milli, MOVED)                                                           \
    X(u32, bytes_samples, DOUBLED)                                                                 \
    X(u64, prompt_tokens, CHANGED)  /* sum, of requests with begun answers */                      \
    X(u64, predicted_tokens, ALONG) /* sum, cached tokens of them */                               \
    X(u64, told, CHANGED)           /* sum, answers that reported their cached tokens */           \
    X(u64, grown_ppm, ALONG)        /* no longer used: what they did to the logarithm of the */    \
    X(u64, shrunk_ppm, ALONG)       /* believed size, until size_ppm took its place */             \
    X(u32, scrapes, CHANGED) /* times that this router read the engine's metrics; 0: others do */  \
    X(u64, engine_started_ms, ALONG) /* what it read, each one more; 0: unknown */                 \
    X(u32, engine_running, ALONG)                                                                  \
    X(u32, engine_waiting, ALONG)                                                                  \
    X(u32, engine_usage_ppm, ALONG)                                                                \
    X(u64, engine_queries, ALONG) /* of tokens in the prefix cache, sum */                         \
    X(u64, engine_hits, ALONG)                                                                     \
    X(u64, engine_prompt, ALONG)       /* tokens, sum */                                           \
    X(u64, engine_generated, ALONG)    /* tokens, sum */                                           \
    X(u32, size_ppm, MOVED)            /* of the cache, by this router's own evidence, */          \
    X(u32, size_weight_milli, DOUBLED) /* which is by so many prompts better */                    \
    X(u32, adapter_slots, CHANGED) /* LoRA adapters that the engine holds at a time; 0: unknown */ \
    X(u64, void_blocks, CHANGED)   /* sum, recorded and never computed: refused, given up */       \
    X(u32, engine_work, CHANGED)   /* how often this router saw it work: node/replica/scraped.h */ \
    X(u32, events_rkey, CHANGED)   /* its KV-cache events are read and live for this cache; */     \
    X(u32, events_floor, CHANGED)  /* generation of the oldest that gave way there; 0: none */     \
    X(u32, events_reads, CHANGED)  /* whether it reads them (enum node_reads) */

#define CRDT_LEARNED_IN_u64_OF_u64(name) uint64_t name;
#define CRDT_LEARNED_IN_u64_OF_u32(name)
#define CRDT_LEARNED_IN_u32_OF_u64(name)
#define CRDT_LEARNED_IN_u32_OF_u32(name)       uint32_t name;
#define CRDT_LEARNED_WIDE(width, name, when)   CRDT_LEARNED_IN_u64_OF_##width(name)
#define CRDT_LEARNED_NARROW(width, name, when) CRDT_LEARNED_IN_u32_OF_##width(name)

/* The wide ones first: no padding between fields, and the digest is of the struct's words. */
struct crdt_learned {
    CRDT_LEARNED_FIELDS(CRDT_LEARNED_WIDE)
    CRDT_LEARNED_FIELDS(CRDT_LEARNED_NARROW)
    FUTURE_LEARNED_FIELDS(CRDT_LEARNED_NARROW)
};

#define CRDT_LEARNED_BYTES_u64 9
#define CRDT_LEARNED_BYTES_u32 5
/* A term of a sum. NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define CRDT_LEARNED_BYTES(width, name, when) +CRDT_LEARNED_BYTES_##width
enum { /* on the wire */
       CRDT_LEARNED_BYTES_MAX =
           0 CRDT_LEARNED_FIELDS(CRDT_LEARNED_BYTES) FUTURE_LEARNED_FIELDS(CRDT_LEARNED_BYTES)
};

void crdt_learned_write(struct wire_writer *w, const struct crdt_learned *l);
/* The rows that are there; the others are 0. */
void crdt_learned_read(struct wire_reader *r, struct crdt_learned *out);
/* Copies the fields; the padding of `out` stays as it is. */
void crdt_learned_copy(struct crdt_learned *out, const struct crdt_learned *in);
/* True if `now` differs enough from `reported` for a new report. */
bool crdt_learned_moved(const struct crdt_learned *reported, const struct crdt_learned *now);

#endif
