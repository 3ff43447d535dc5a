#include "crdt/record.h"

#include "base/check.h"
#include "crdt/limits.h"

enum {
    WISH_MASK = 3,
    WISH_DRAINING = 4,
    SIGHT_CONFIGURED = 1,
    SIGHT_ASLEEP = 2,
    ID_BYTES = 6,
};

/* Kind, then the varints at their longest: 9 bytes of 63 bits, 5 of 32. */
enum {
    REPLICA_BYTES_MAX = 1 + 2 + CRDT_NAME_MAX + 9 + 5 + 5 + 1,
    REPORT_BYTES_MAX = 1 + ID_BYTES + 9 + CRDT_LEARNED_BYTES_MAX,
    LOG_BYTES_MAX = 1 + 4 + 9 + 2 + ID_BYTES * CRDT_EVENTS_IDS_MAX,
};
_Static_assert((int)REPLICA_BYTES_MAX <= (int)CRDT_DELTA_MIN, "a delta has room for a row");
_Static_assert((int)REPORT_BYTES_MAX <= (int)CRDT_DELTA_MIN, "a delta has room for a report");
_Static_assert((int)LOG_BYTES_MAX <= (int)CRDT_CHUNK_MAX, "a chunk has room for a log");
_Static_assert((int)LOG_BYTES_MAX + 64 <= (int)CRDT_MESSAGE_MAX, "a message has room for a log");

_Static_assert(CRDT_RECORD_KINDS <= 256, "a kind has one byte");

static const uint32_t rkey_max = 0x7fffffff;

/* --- writing -------------------------------------------------------------------------------- */

void crdt_record_write_replica(struct wire_writer *w, const struct crdt_registry_row *row)
{
    const uint8_t *start = w->at;
    CHECK(row->name.len > 0 && row->name.len <= CRDT_NAME_MAX);
    wire_write_u8(w, CRDT_RECORD_REPLICA);
    wire_write_varint(w, row->name.len);
    wire_write_bytes(w, row->name.at, row->name.len);
    wire_write_varint(w, row->incarnation.started);
    wire_write_varint(w, row->incarnation.raises);
    wire_write_varint(w, row->wish_version);
    wire_write_u8(w, (uint8_t)((unsigned)row->wish | (row->draining ? WISH_DRAINING : 0u)));
    CHECK(w->at - start <= REPLICA_BYTES_MAX);
}

static void write_load(struct wire_writer *w, const struct crdt_load *l)
{
    wire_write_varint(w, l->requests);
    wire_write_varint(w, l->prefill_tokens);
    wire_write_varint(w, l->context_tokens);
    wire_write_varint(w, l->decoding_tokens);
}

static void write_sight(struct wire_writer *w, const struct crdt_sight *s)
{
    wire_write_u8(
        w, (uint8_t)((s->configured ? SIGHT_CONFIGURED : 0u) | (s->asleep ? SIGHT_ASLEEP : 0u)));
    wire_write_u8(w, s->health);
    wire_write_u8(w, s->engine);
}

void crdt_record_write_report(struct wire_writer *w, uint64_t key, const struct crdt_report *row,
                              bool dump)
{
    const uint8_t *start = w->at;
    wire_write_u8(w, (uint8_t)(CRDT_RECORD_LOAD + (unsigned)row->kind));
    wire_write_u48(w, key);
    if (dump)
        wire_write_varint(w, row->seq);
    if (row->kind == CRDT_REPORT_LOAD)
        write_load(w, &row->value.load);
    else if (row->kind == CRDT_REPORT_SIGHT)
        write_sight(w, &row->value.sight);
    else
        crdt_learned_write(w, &row->value.learned);
    CHECK(w->at - start <= REPORT_BYTES_MAX);
}

void crdt_record_write_origin(struct wire_writer *w, uint64_t router, uint64_t epoch)
{
    wire_write_u8(w, CRDT_RECORD_ORIGIN);
    wire_write_u64(w, router);
    wire_write_varint(w, epoch);
}

void crdt_record_write_log(struct wire_writer *w, const struct crdt_events_head *head,
                           const uint64_t *ids)
{
    wire_write_u8(w, CRDT_RECORD_EVENTS);
    wire_write_u32(w, head->rkey);
    wire_write_varint(w, head->version);
    wire_write_varint(w, head->count);
    for (unsigned i = 0; i < head->count; i++)
        wire_write_u48(w, ids[i]);
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

/* --- reading -------------------------------------------------------------------------------- */

struct crdt_records crdt_records_of(struct slice bytes, bool dump)
{
    return (struct crdt_records){.in = wire_reader_of(bytes.at, bytes.len), .dump = dump};
}

static uint32_t read_u32(struct wire_reader *r)
{
    return (uint32_t)wire_read_varint_max(r, UINT32_MAX);
}

static void read_replica(struct wire_reader *r, struct crdt_registry_row *out)
{
    size_t len = (size_t)wire_read_varint_max(r, CRDT_NAME_MAX);
    out->name = wire_read_bytes(r, len);
    out->incarnation.started = wire_read_varint_max(r, CRDT_NUMBER_MAX);
    out->incarnation.raises = read_u32(r);
    out->wish_version = read_u32(r);
    uint8_t flags = wire_read_u8(r);
    unsigned wish = flags & WISH_MASK;
    out->draining = (flags & WISH_DRAINING) != 0;
    if (len == 0 || wish > CRDT_WISH_REMOVED || flags > (WISH_MASK | WISH_DRAINING))
        r->bad = true;
    else
        out->wish = (enum crdt_wish)wish;
}

static void read_value(struct wire_reader *r, struct crdt_report *out)
{
    if (out->kind == CRDT_REPORT_LOAD) {
        struct crdt_load *l = &out->value.load;
        l->requests = (uint32_t)wire_read_varint_max(r, CRDT_LOAD_REQUESTS_MAX);
        l->prefill_tokens = wire_read_varint_max(r, CRDT_LOAD_TOKENS_MAX);
        l->context_tokens = wire_read_varint_max(r, CRDT_LOAD_TOKENS_MAX);
        l->decoding_tokens = wire_read_varint_max(r, CRDT_LOAD_TOKENS_MAX);
    } else if (out->kind == CRDT_REPORT_SIGHT) {
        struct crdt_sight *s = &out->value.sight;
        uint8_t flags = wire_read_u8(r);
        r->bad = r->bad || flags > (SIGHT_CONFIGURED | SIGHT_ASLEEP);
        s->configured = (flags & SIGHT_CONFIGURED) != 0;
        s->asleep = (flags & SIGHT_ASLEEP) != 0;
        s->health = wire_read_u8(r);
        s->engine = wire_read_u8(r);
    } else {
        crdt_learned_read(r, &out->value.learned);
    }
}

static void read_report(struct crdt_records *records, struct crdt_record *out)
{
    struct wire_reader *r = &records->in;
    struct crdt_report *row = &out->report.row;
    row->kind = (enum crdt_report_kind)((unsigned)out->kind - CRDT_RECORD_LOAD);
    out->report.key = wire_read_u48(r);
    if (records->dump) {
        r->bad = r->bad || !records->has_origin;
        row->router = records->router;
        row->epoch = records->epoch;
        row->seq = wire_read_varint_max(r, CRDT_NUMBER_MAX);
    }
    read_value(r, row);
}

static void read_log(struct wire_reader *r, struct crdt_record *out)
{
    out->log.rkey = wire_read_u32(r);
    out->log.version = wire_read_varint_max(r, CRDT_NUMBER_MAX);
    out->log.count = (unsigned)wire_read_varint_max(r, CRDT_EVENTS_IDS_MAX);
    out->log.ids = wire_read_bytes(r, (size_t)out->log.count * ID_BYTES);
    if (out->log.version == 0 || out->log.rkey == 0 || out->log.rkey > rkey_max)
        r->bad = true;
}

static void read_origin(struct crdt_records *records)
{
    records->router = wire_read_u64(&records->in);
    records->epoch = wire_read_varint_max(&records->in, CRDT_NUMBER_MAX);
    records->has_origin = true;
}

bool crdt_records_next(struct crdt_records *records, struct crdt_record *out)
{
    struct wire_reader *r = &records->in;
    unsigned kind = CRDT_RECORD_ORIGIN;
    while (kind == CRDT_RECORD_ORIGIN) {
        if (wire_left(r) == 0)
            return false;
        kind = wire_read_u8(r);
        if (kind == CRDT_RECORD_ORIGIN && records->dump)
            read_origin(records);
        else if (kind == CRDT_RECORD_ORIGIN)
            r->bad = true;
    }
    out->kind = (enum crdt_record_kind)kind;
    if (kind == CRDT_RECORD_REPLICA)
        read_replica(r, &out->replica);
    else if (kind == CRDT_RECORD_LOAD || kind == CRDT_RECORD_SIGHT || kind == CRDT_RECORD_LEARNED)
        read_report(records, out);
    else if (kind == CRDT_RECORD_RUN)
        crdt_run_read(r, &out->run);
    else if (kind == CRDT_RECORD_EVENTS && records->dump)
        read_log(r, out);
    else if (kind == CRDT_RECORD_BATCH && records->dump)
        crdt_batch_read(r, &out->block);
    else
        r->bad = true;
    return !r->bad;
}

bool crdt_records_valid(struct slice bytes, bool dump)
{
    struct crdt_records records = crdt_records_of(bytes, dump);
    struct crdt_record record;
    while (crdt_records_next(&records, &record))
        continue;
    return !records.in.bad;
}
