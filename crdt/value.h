/* A router's report about a replica, and the report's encoding. A report is the router's load
 * there, the router's view of the replica, or learned figures.
 *
 * A value has exactly one encoding: the fields in their order, then *later* bytes, without zeros at
 * the end. A missing field is 0. Later bytes are fields of a later version: this build cannot read
 * them, but keeps, forwards and hashes them. So two builds that differ in the last fields still
 * hold the same bytes.
 */
#ifndef CRDT_VALUE_H
#define CRDT_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/wire.h"
#include "crdt/learned.h"
#include "crdt/limits.h"

/* Fields of a router's load at a replica (its requests in flight there), in wire order: X(type,
 * name, most). A value above `most` is cut to `most`. */
#define CRDT_LOAD_FIELDS(X)                                                                        \
    X(uint32_t, requests, CRDT_LOAD_REQUESTS_MAX)                                                  \
    X(uint64_t, prefill_tokens, CRDT_LOAD_TOKENS_MAX) /* prompt tokens still to prefill */         \
    X(uint64_t, context_tokens, CRDT_LOAD_TOKENS_MAX) /* tokens of all requests in flight */       \
    X(uint64_t, decoding_tokens, CRDT_LOAD_TOKENS_MAX)                                             \
    X(uint32_t, adapter, UINT32_MAX) /* keyed hash of the LoRA adapter last used there; */         \
                                     /* 0: none. Meaningless in sums */                            \
    X(uint32_t, adapter_uses, CRDT_LOAD_USES_MAX) /* uses of LoRA adapters; wraps around */

struct crdt_load {
#define CRDT_LOAD_MEMBER(type, name, most) type name;
    CRDT_LOAD_FIELDS(CRDT_LOAD_MEMBER)
#undef CRDT_LOAD_MEMBER
};

struct crdt_sight {
    bool configured; /* the router's configuration names this replica */
    uint8_t health;  /* enum node_health; opaque here */
    uint8_t engine;  /* enum node_engine */
    bool asleep;
    uint8_t breaker;       /* the replica's back-off (node/replica/breaker.h); opaque here */
    uint8_t cured;         /* successful trials by the router, modulo 256; opaque here */
    uint8_t still;         /* evidence of a stall (node/replica/health.h); opaque here */
    uint64_t rejects;      /* kinds of requests rejected by the replica (node/replica/reject.h);
                            * opaque here */
    uint16_t rejects_with; /* the HTTP status of these rejections */
};

enum crdt_report_kind { CRDT_REPORT_LOAD, CRDT_REPORT_SIGHT, CRDT_REPORT_LEARNED, CRDT_REPORTS };

union crdt_report_value {
    struct crdt_load load;
    struct crdt_sight sight;
    struct crdt_learned learned;
};

enum { CRDT_VALUE_BYTES_MAX = CRDT_LEARNED_BYTES_MAX + CRDT_LATER_MAX };

/* Writes the value's encoding. `later` has at most CRDT_LATER_MAX bytes (CHECKed). */
void crdt_value_write(struct wire_writer *w, enum crdt_report_kind kind,
                      const union crdt_report_value *value, struct slice later);
/* Reads a value that fills the rest of `r`. `later` is borrowed, and cut to CRDT_LATER_MAX. Sets
 * r->bad if the value is malformed. */
void crdt_value_read(struct wire_reader *r, enum crdt_report_kind kind,
                     union crdt_report_value *value, struct slice *later);
/* Mixes the value's encoding into `h`. */
uint64_t crdt_value_hash(uint64_t h, enum crdt_report_kind kind,
                         const union crdt_report_value *value, struct slice later);

/* --- later bytes of any row ------------------------------------------------------------------ */

/* The rest of a row, without zeros at the end, cut to CRDT_LATER_MAX. */
struct slice crdt_later_read(struct wire_reader *r);
/* Mixes the bytes into `h`; an empty slice leaves `h` unchanged. */
uint64_t crdt_later_hash(uint64_t h, struct slice later);

#endif
