/* A router's report about a replica, and its bytes: the load there, the view of the replica,
 * learned figures.
 *
 * The bytes of a value have one form: the fields in their order, then *later* bytes, without the
 * zeros at their end. A missing field is 0. Later bytes are fields of a later version: this build
 * cannot read them, but keeps, forwards and hashes them. So two builds that differ in the last
 * fields still hold the same bytes.
 */
#ifndef CRDT_VALUE_H
#define CRDT_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/wire.h"
#include "crdt/learned.h"
#include "crdt/limits.h"

/* In flight from one router at one replica, in the order of the wire: X(type, name, most). More is
 * cut. */
#define CRDT_LOAD_FIELDS(X)                                                                        \
    X(uint32_t, requests, CRDT_LOAD_REQUESTS_MAX)                                                  \
    X(uint64_t, prefill_tokens, CRDT_LOAD_TOKENS_MAX) /* of prompts, uncached, not computed yet */ \
    X(uint64_t, context_tokens, CRDT_LOAD_TOKENS_MAX) /* of all requests in flight */              \
    X(uint64_t, decoding_tokens, CRDT_LOAD_TOKENS_MAX)                                             \
    X(uint32_t, adapter, UINT32_MAX) /* the LoRA adapter that it used there last, by a keyed */    \
                                     /* hash; 0: none. Of sums it says nothing */                  \
    X(uint32_t, adapter_uses, CRDT_LOAD_USES_MAX) /* how often it used one there; begins anew */

struct crdt_load {
#define CRDT_LOAD_MEMBER(type, name, most) type name;
    CRDT_LOAD_FIELDS(CRDT_LOAD_MEMBER)
#undef CRDT_LOAD_MEMBER
};

struct crdt_sight {
    bool configured; /* its own configuration names this replica */
    uint8_t health;  /* enum node_health; opaque here */
    uint8_t engine;  /* enum node_engine */
    bool asleep;
    uint8_t breaker; /* its back-off (node/replica/breaker.h); opaque here */
    uint8_t cured;
    uint8_t still;         /* what waits there in vain (node/replica/health.h); opaque here */
    uint64_t rejects;      /* kinds of requests that it holds against the replica
                         (node/replica/reject.h); opaque here */
    uint16_t rejects_with; /* the status that the replica answered them with */
};

enum crdt_report_kind { CRDT_REPORT_LOAD, CRDT_REPORT_SIGHT, CRDT_REPORT_LEARNED, CRDT_REPORTS };

union crdt_report_value {
    struct crdt_load load;
    struct crdt_sight sight;
    struct crdt_learned learned;
};

enum { CRDT_VALUE_BYTES_MAX = CRDT_LEARNED_BYTES_MAX + CRDT_LATER_MAX };

/* Writes it in its one form. At most CRDT_LATER_MAX bytes of `later` (CHECKed). */
void crdt_value_write(struct wire_writer *w, enum crdt_report_kind kind,
                      const union crdt_report_value *value, struct slice later);
/* Reads all that is left; `later` is borrowed, cut to CRDT_LATER_MAX. Malformed makes `r` bad. */
void crdt_value_read(struct wire_reader *r, enum crdt_report_kind kind,
                     union crdt_report_value *value, struct slice *later);
/* Mixes the bytes into `h`. */
uint64_t crdt_value_hash(uint64_t h, enum crdt_report_kind kind,
                         const union crdt_report_value *value, struct slice later);

/* --- later bytes of any row ------------------------------------------------------------------ */

/* All that is left of a row: without the zeros at its end, cut to CRDT_LATER_MAX. */
struct slice crdt_later_read(struct wire_reader *r);
/* Mixes the bytes into `h`; an empty slice leaves `h` unchanged. */
uint64_t crdt_later_hash(uint64_t h, struct slice later);

#endif
