/* The codec of deltas, anti-entropy messages and snapshot chunks. All consist of a sequence of
 * records.
 *
 * A record is a kind (1 byte), a length (a varint) and that number of bytes. An unknown or
 * misplaced kind is skipped and counted. Of a record longer than expected, the known part is read.
 * If a record is shorter, the missing last fields are 0. Unknown flag bits are ignored. So a later
 * version adds kinds, or fields at the end; gossip/README.md says which changes need a new protocol
 * version. Only closed records take no new fields: RUN, whose length gives the number of
 * observations, and POISON.
 *
 * In a *delta* all records belong to the delta's author and have the delta's number. In a *dump*
 * reports follow an ORIGIN, which names their router, and carry their numbers.
 *
 *   REPLICA               a row of the registry                           crdt/registry.h
 *   LOAD, SIGHT, LEARNED  a report                                        crdt/reports.h
 *   RUN                   observations of a single cache and generation   crdt/run.h
 *   ORIGIN                a router's id and epoch                         dumps only
 *   POISON                a request after which an engine died            crdt/poison.h; closed
 *   TIDING                news that no router stores                      deltas; crdt/tidings.h
 *   BATCH                 observations of any cache and generation        dumps only; crdt/batch.h
 *
 * A decoded record borrows from the input, and all its values are in bounds.
 */
#ifndef CRDT_RECORD_H
#define CRDT_RECORD_H

#include "base/wire.h"
#include "crdt/batch.h"
#include "crdt/poison.h"
#include "crdt/registry.h"
#include "crdt/reports.h"
#include "crdt/run.h"

enum crdt_record_kind {
    CRDT_RECORD_REPLICA = 1,
    CRDT_RECORD_LOAD,
    CRDT_RECORD_SIGHT,
    CRDT_RECORD_LEARNED,
    CRDT_RECORD_RUN,
    CRDT_RECORD_ORIGIN,
    CRDT_RECORD_BATCH = 8, /* kind 7 stays unused: in older routers it means engines' events */
    CRDT_RECORD_POISON,
    CRDT_RECORD_TIDING,
    CRDT_RECORD_KINDS,
};

struct crdt_record {
    enum crdt_record_kind kind;
    union {
        struct crdt_registry_row replica;
        struct {
            uint64_t key;
            struct crdt_report row; /* without the slot; in a delta also without origin and
                                     * number */
        } report;
        struct crdt_run run;
        struct crdt_batch block;
        struct crdt_poison_row poison;
        struct {
            uint8_t kind;
            struct slice body;
        } tiding;
    };
};

struct crdt_records {
    struct wire_reader in;
    bool dump;
    bool has_origin;
    uint64_t router;
    uint64_t epoch;
    uint64_t skipped; /* records of unexpected kinds so far */
};

enum { CRDT_RECORD_HEAD_MAX = 1 + 3 }; /* bytes of kind and length; a length has at most 3 */
_Static_assert(CRDT_CHUNK_MAX < 1 << 21 && CRDT_MESSAGE_MAX < 1 << 21, "a length has three bytes");

struct crdt_records crdt_records_of(struct slice bytes, bool dump);
/* The next record; false at the end or at a malformed record (then in.bad is set). An ORIGIN is not
 * returned, but fills in the router and epoch of the reports after it. */
bool crdt_records_next(struct crdt_records *records, struct crdt_record *out);
/* True if all records are well-formed. */
bool crdt_records_valid(struct slice bytes, bool dump);

/* Each call below writes a record. False: there is no room, and `w` is unchanged. */
bool crdt_record_write_replica(struct wire_writer *w, const struct crdt_registry_row *row);
bool crdt_record_write_report(struct wire_writer *w, uint64_t key, const struct crdt_report *row,
                              bool dump);
bool crdt_record_write_origin(struct wire_writer *w, uint64_t router, uint64_t epoch);
bool crdt_record_write_poison(struct wire_writer *w, const struct crdt_poison_row *row);
/* Write and read only the row of a poison record, as the section POISON has it (crdt/classes.h). */
void crdt_poison_row_write(struct wire_writer *w, const struct crdt_poison_row *row);
void crdt_poison_row_read(struct wire_reader *r, struct crdt_poison_row *out);
/* `kind` and `body` are opaque here. */
bool crdt_record_write_tiding(struct wire_writer *w, uint8_t kind, struct slice body);
/* As crdt_run_write(). */
unsigned crdt_record_write_run(struct wire_writer *w, uint32_t rkey, uint32_t generation,
                               const uint64_t *points, unsigned count);
/* Writes a record of an unknown kind, for tests (base/future.h). */
void crdt_record_write_future(struct wire_writer *w);
/* As crdt_batch_append(). */
MUST_USE int crdt_record_append_batch(struct buf *out, const struct crdt_batch_entry *entries,
                                      unsigned count, const uint32_t *rkey_of_slot);

#endif
