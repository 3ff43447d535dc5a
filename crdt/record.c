#include "crdt/record.h"

#include <string.h>

#include "base/check.h"
#include "base/future.h"
#include "crdt/limits.h"

enum {
    WISH_MASK = 3,
    WISH_DRAINING = 4,
    ID_BYTES = 6,
};

/* Longest bodies, with varints at their longest: 9 bytes for 63 bits, 5 for 32. */
enum {
    REPLICA_BODY_MAX = 2 + CRDT_NAME_MAX + 9 + 5 + 5 + 1 + 5 + 5 + 5 + CRDT_LATER_MAX,
    REPORT_BODY_MAX = ID_BYTES + 9 + CRDT_VALUE_BYTES_MAX,
    ORIGIN_BODY_MAX = 8 + 9,
    SMALL_BODY_MAX = 384,
    REPLICA_BYTES_MAX = CRDT_RECORD_HEAD_MAX + REPLICA_BODY_MAX,
    REPORT_BYTES_MAX = CRDT_RECORD_HEAD_MAX + REPORT_BODY_MAX,
    TIDING_BYTES_MAX = CRDT_RECORD_HEAD_MAX + 1 + CRDT_TIDING_MAX,
};
_Static_assert((int)REPLICA_BODY_MAX <= (int)SMALL_BODY_MAX, "a row is made on the stack");
_Static_assert((int)REPORT_BODY_MAX <= (int)SMALL_BODY_MAX, "so is a report");
_Static_assert((int)ORIGIN_BODY_MAX <= (int)SMALL_BODY_MAX, "and an origin");
_Static_assert((int)REPLICA_BYTES_MAX <= (int)CRDT_DELTA_MIN, "a delta has room for a row");
_Static_assert((int)REPORT_BYTES_MAX <= (int)CRDT_DELTA_MIN, "a delta has room for a report");
_Static_assert((int)TIDING_BYTES_MAX <= (int)CRDT_DELTA_MIN, "a delta has room for a tiding");

_Static_assert(CRDT_RECORD_KINDS <= 256, "a kind has one byte");

/* --- writing -------------------------------------------------------------------------------- */

static void write_head(struct wire_writer *w, enum crdt_record_kind kind, size_t body)
{
    wire_write_u8(w, (uint8_t)kind);
    wire_write_varint(w, body);
}

/* Writes a small record with a finished body. */
static bool write_small(struct wire_writer *w, enum crdt_record_kind kind,
                        const struct wire_writer *body)
{
    CHECK(!body->bad);
    struct wire_writer before = *w;
    write_head(w, kind, wire_written(body));
    wire_write_bytes(w, body->start, wire_written(body));
    bool fits = !w->bad;
    if (!fits)
        *w = before;
    return fits;
}

bool crdt_record_write_replica(struct wire_writer *w, const struct crdt_registry_row *row)
{
    uint8_t body[SMALL_BODY_MAX];
    struct wire_writer b = wire_writer_of(body, sizeof body);
    CHECK(row->name.len > 0 && row->name.len <= CRDT_NAME_MAX && row->later.len <= CRDT_LATER_MAX);
    wire_write_varint(&b, row->name.len);
    wire_write_bytes(&b, row->name.at, row->name.len);
    wire_write_varint(&b, row->incarnation.started);
    wire_write_varint(&b, row->incarnation.raises);
    wire_write_varint(&b, row->wish_version);
    wire_write_u8(&b, (uint8_t)((unsigned)row->wish | (row->draining ? WISH_DRAINING : 0u)));
    wire_write_varint(&b, row->drain_version);
    wire_write_varint(&b, row->named);
    wire_write_varint(&b, row->named - row->born);
    wire_write_bytes(&b, row->later.at, row->later.len);
    return write_small(w, CRDT_RECORD_REPLICA, &b);
}

bool crdt_record_write_report(struct wire_writer *w, uint64_t key, const struct crdt_report *row,
                              bool dump)
{
    uint8_t body[SMALL_BODY_MAX];
    struct wire_writer b = wire_writer_of(body, sizeof body);
    wire_write_u48(&b, key);
    if (dump)
        wire_write_varint(&b, row->seq);
    crdt_value_write(&b, row->kind, &row->value, row->later);
    return write_small(w, (enum crdt_record_kind)(CRDT_RECORD_LOAD + (unsigned)row->kind), &b);
}

bool crdt_record_write_origin(struct wire_writer *w, uint64_t router, uint64_t epoch)
{
    uint8_t body[SMALL_BODY_MAX];
    struct wire_writer b = wire_writer_of(body, sizeof body);
    wire_write_u64(&b, router);
    wire_write_varint(&b, epoch);
    return write_small(w, CRDT_RECORD_ORIGIN, &b);
}

void crdt_poison_row_write(struct wire_writer *w, const struct crdt_poison_row *row)
{
    wire_write_u64(w, row->hash);
    wire_write_u32(w, row->until);
    wire_write_u8(w, row->level);
    wire_write_u48(w, row->last);
    wire_write_u48(w, row->before);
}

void crdt_poison_row_read(struct wire_reader *r, struct crdt_poison_row *out)
{
    *out = (struct crdt_poison_row){.hash = wire_read_u64(r)};
    out->until = wire_read_u32(r);
    out->level = wire_read_u8(r);
    out->last = wire_read_u48(r);
    out->before = wire_read_u48(r);
}

bool crdt_record_write_poison(struct wire_writer *w, const struct crdt_poison_row *row)
{
    uint8_t body[CRDT_POISON_ROW_BYTES];
    struct wire_writer b = wire_writer_of(body, sizeof body);
    crdt_poison_row_write(&b, row);
    return write_small(w, CRDT_RECORD_POISON, &b);
}

bool crdt_record_write_tiding(struct wire_writer *w, uint8_t kind, struct slice body)
{
    struct wire_writer before = *w;
    write_head(w, CRDT_RECORD_TIDING, 1 + body.len);
    wire_write_u8(w, kind);
    wire_write_bytes(w, body.at, body.len);
    bool fits = !w->bad;
    if (!fits)
        *w = before;
    return fits;
}

void crdt_record_write_future(struct wire_writer *w)
{
    struct slice body = FUTURE_BYTES;
    write_head(w, (enum crdt_record_kind)FUTURE_KIND, body.len);
    wire_write_bytes(w, body.at, body.len);
}

unsigned crdt_record_write_run(struct wire_writer *w, uint32_t rkey, uint32_t generation,
                               const uint64_t *points, unsigned count)
{
    struct wire_writer before = *w;
    wire_write_u8(w, CRDT_RECORD_RUN);
    unsigned written = crdt_run_write(w, rkey, generation, points, count);
    if (written == 0)
        *w = before;
    return written;
}

int crdt_record_append_batch(struct buf *out, const struct crdt_batch_entry *entries,
                             unsigned count, const uint32_t *rkey_of_slot)
{
    size_t before = out->len;
    int err = crdt_batch_append(out, entries, count, rkey_of_slot);
    if (err == 0)
        err = buf_reserve(out, CRDT_RECORD_HEAD_MAX);
    if (err != 0) {
        out->len = before;
        return err;
    }
    uint8_t head[CRDT_RECORD_HEAD_MAX];
    struct wire_writer w = wire_writer_of(head, sizeof head);
    size_t body = out->len - before;
    write_head(&w, CRDT_RECORD_BATCH, body);
    CHECK(!w.bad);
    size_t len = wire_written(&w);
    memmove(out->at + before + len, out->at + before, body);
    memcpy(out->at + before, head, len);
    out->len += len;
    return 0;
}

/* --- reading -------------------------------------------------------------------------------- */

struct crdt_records crdt_records_of(struct slice bytes, bool dump)
{
    return (struct crdt_records){.in = wire_reader_of(bytes.at, bytes.len), .dump = dump};
}

static uint32_t read_u32(struct wire_reader *r)
{
    return (uint32_t)wire_read_field(r, UINT32_MAX);
}

static void read_replica(struct wire_reader *r, struct crdt_registry_row *out)
{
    size_t len = (size_t)wire_read_varint_max(r, CRDT_NAME_MAX);
    out->name = wire_read_bytes(r, len);
    out->incarnation.started = wire_read_field(r, CRDT_NUMBER_MAX);
    out->incarnation.raises = read_u32(r);
    out->wish_version = read_u32(r);
    uint8_t flags = wire_left(r) > 0 ? wire_read_u8(r) : 0;
    out->drain_version = read_u32(r);
    out->named = read_u32(r);
    out->born = out->named - (uint32_t)wire_read_field(r, out->named);
    out->later = crdt_later_read(r);
    unsigned wish = flags & WISH_MASK;
    out->draining = (flags & WISH_DRAINING) != 0;
    if (len == 0 || wish > CRDT_WISH_REMOVED)
        r->bad = true;
    else
        out->wish = (enum crdt_wish)wish;
}

static void read_report(const struct crdt_records *records, struct wire_reader *r,
                        struct crdt_record *out)
{
    struct crdt_report *row = &out->report.row;
    row->kind = (enum crdt_report_kind)((unsigned)out->kind - CRDT_RECORD_LOAD);
    out->report.key = wire_read_u48(r);
    if (records->dump) {
        r->bad = r->bad || !records->has_origin;
        row->router = records->router;
        row->epoch = records->epoch;
        row->seq = wire_read_varint_max(r, CRDT_NUMBER_MAX);
    }
    crdt_value_read(r, row->kind, &row->value, &row->later);
}

static void read_origin(struct crdt_records *records, struct wire_reader *r)
{
    records->router = wire_read_u64(r);
    records->epoch = wire_read_varint_max(r, CRDT_NUMBER_MAX);
    records->has_origin = true;
}

static void read_tiding(struct wire_reader *r, struct crdt_record *out)
{
    out->tiding.kind = wire_read_u8(r);
    out->tiding.body = wire_read_bytes(r, wire_left(r));
}

/* Reads the body. True if the record is of an expected kind. */
static bool read_body(const struct crdt_records *records, unsigned kind, struct wire_reader *r,
                      struct crdt_record *out)
{
    out->kind = (enum crdt_record_kind)kind;
    if (kind == CRDT_RECORD_REPLICA)
        read_replica(r, &out->replica);
    else if (kind == CRDT_RECORD_LOAD || kind == CRDT_RECORD_SIGHT || kind == CRDT_RECORD_LEARNED)
        read_report(records, r, out);
    else if (kind == CRDT_RECORD_RUN)
        crdt_run_read(r, &out->run);
    else if (kind == CRDT_RECORD_POISON)
        crdt_poison_row_read(r, &out->poison);
    else if (kind == CRDT_RECORD_TIDING && !records->dump)
        read_tiding(r, out);
    else if (kind == CRDT_RECORD_BATCH && records->dump)
        crdt_batch_read(r, &out->block);
    else
        return false;
    return true;
}

bool crdt_records_next(struct crdt_records *records, struct crdt_record *out)
{
    struct wire_reader *r = &records->in;
    while (wire_left(r) > 0) {
        unsigned kind = wire_read_u8(r);
        struct slice bytes = wire_read_bytes(r, (size_t)wire_read_varint(r));
        if (r->bad)
            return false;
        struct wire_reader body = wire_reader_of(bytes.at, bytes.len);
        bool origin = kind == CRDT_RECORD_ORIGIN && records->dump;
        bool record = !origin && read_body(records, kind, &body, out);
        if (origin)
            read_origin(records, &body);
        r->bad = body.bad;
        if (r->bad || record)
            return !r->bad;
        records->skipped += !origin;
    }
    return false;
}

bool crdt_records_valid(struct slice bytes, bool dump)
{
    struct crdt_records records = crdt_records_of(bytes, dump);
    struct crdt_record record;
    while (crdt_records_next(&records, &record))
        continue;
    return !records.in.bad;
}
