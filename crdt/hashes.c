#include "crdt/hashes.h"

#include <string.h>

#include "base/check.h"
#include "crdt/record.h"
#include "crdt/state_internal.h"

enum { REPLICA_BYTES = 12, REPORT_BYTES = 32 };
enum { FLAG_LAST = 1, FLAG_LOADS = 2, HEAD_BYTES = 2, FLOOR_BYTES = 4 };
_Static_assert(3 * (5 + HEAD_BYTES) + FLOOR_BYTES + CRDT_ROWS_MAX * REPLICA_BYTES +
                       CRDT_ROUTERS_MAX * REPORT_BYTES + CRDT_SUMMARY_MAX +
                       CRDT_POISON_MAX * CRDT_POISON_ROW_BYTES <=
                   CRDT_MESSAGE_MAX,
               "a message has room for all three vectors");

static const uint64_t mask48 = 0xffffffffffff;

/* --- own vectors ---------------------------------------------------------------------------- */

void crdt_hashes_replicas(const struct crdt_state *s, bool last, struct crdt_section_writer *out)
{
    crdt_section_begin(out, CRDT_SECTION_REPLICAS);
    wire_write_u8(&out->w, last ? FLAG_LAST : 0);
    wire_write_u8(&out->w, REPLICA_BYTES);
    wire_write_u32(&out->w, crdt_registry_floor_s(s->registry));
    for (int i = crdt_registry_next(s->registry, 0); i >= 0;
         i = crdt_registry_next(s->registry, (unsigned)i + 1)) {
        struct crdt_registry_mark mark = crdt_registry_mark(s->registry, (unsigned)i);
        wire_write_u48(&out->w, mark.key);
        wire_write_u48(&out->w, mark.hash & mask48);
    }
    crdt_section_end(out);
}

void crdt_hashes_reports(const struct crdt_state *s, bool last, bool loads,
                         struct crdt_section_writer *out)
{
    crdt_section_begin(out, CRDT_SECTION_REPORTS);
    wire_write_u8(&out->w, (uint8_t)((last ? FLAG_LAST : 0) | (loads ? FLAG_LOADS : 0)));
    wire_write_u8(&out->w, REPORT_BYTES);
    for (unsigned i = 0; i < crdt_reports_routers(s->reports); i++) {
        struct crdt_reporter_digest d = crdt_reports_router_at(s->reports, i);
        wire_write_u64(&out->w, d.router);
        wire_write_u64(&out->w, d.epoch);
        wire_write_u64(&out->w, d.loads);
        wire_write_u64(&out->w, d.others);
    }
    crdt_section_end(out);
}

void crdt_hashes_poison(const struct crdt_state *s, bool last, struct crdt_section_writer *out)
{
    crdt_section_begin(out, CRDT_SECTION_POISON);
    wire_write_u8(&out->w, last ? FLAG_LAST : 0);
    wire_write_u8(&out->w, CRDT_POISON_ROW_BYTES);
    for (unsigned i = 0; i < s->poison.count; i++)
        crdt_poison_row_write(&out->w, &s->poison.row[i]);
    crdt_section_end(out);
}

bool crdt_hashes_valid(const struct crdt_section *part)
{
    size_t known = part->kind == CRDT_SECTION_REPLICAS  ? REPLICA_BYTES
                   : part->kind == CRDT_SECTION_REPORTS ? REPORT_BYTES
                                                        : CRDT_POISON_ROW_BYTES;
    struct wire_reader r = wire_reader_of(part->body.at, part->body.len);
    (void)wire_read_u8(&r);
    size_t each = wire_read_u8(&r);
    if (part->kind == CRDT_SECTION_REPLICAS)
        (void)wire_read_u32(&r); /* the floor */
    return !r.bad && each >= known && wire_left(&r) % each == 0;
}

/* The next of the rows, each of `each` bytes. */
static struct wire_reader next_row(struct wire_reader *rows, size_t each)
{
    struct slice row = wire_read_bytes(rows, each);
    return wire_reader_of(row.at, row.len);
}

/* --- replicas ------------------------------------------------------------------------------- */

static void send_replica(const struct crdt_state *s, unsigned place,
                         struct crdt_section_writer *out)
{
    struct crdt_registry_row row = crdt_registry_row(s->registry, place);
    (void)crdt_record_write_replica(&out->w,
                                    &row); /* what does not fit is left to the next round */
}

/* Returns whether the sender has something that we lack. */
static bool answer_replicas(const struct crdt_state *s, struct wire_reader *rows, size_t each,
                            struct crdt_section_writer *out)
{
    bool lacking = false;
    bool theirs[CRDT_REPLICAS_MAX + CRDT_ROWS_MAX] = {false};
    uint32_t floor = wire_read_u32(rows);
    while (wire_left(rows) > 0) {
        struct wire_reader r = next_row(rows, each);
        int place = crdt_registry_place(s->registry, wire_read_u48(&r));
        uint64_t hash = wire_read_u48(&r);
        if (place < 0) {
            lacking = true;
            continue;
        }
        theirs[place] = true;
        if ((crdt_registry_mark(s->registry, (unsigned)place).hash & mask48) == hash)
            continue;
        lacking = true;
        send_replica(s, (unsigned)place, out);
    }
    for (int i = crdt_registry_next(s->registry, 0); i >= 0;
         i = crdt_registry_next(s->registry, (unsigned)i + 1))
        if (!theirs[i] && crdt_registry_mark(s->registry, (unsigned)i).named >= floor)
            send_replica(s, (unsigned)i, out);
    return lacking;
}

/* --- reports -------------------------------------------------------------------------------- */

/* Returns the first slot whose row did not fit, or -1. */
static int send_reports(const struct crdt_state *s, unsigned router, enum crdt_report_kind kind,
                        unsigned from, struct crdt_section_writer *out)
{
    unsigned count = crdt_registry_count(s->registry);
    int full = -1;
    for (unsigned i = 0; i < count; i++) {
        unsigned slot = (from + i) % count;
        struct crdt_report row;
        if (!crdt_reports_row(s->reports, router, kind, slot, &row))
            continue;
        if (!crdt_record_write_report(&out->w, crdt_registry_at(s->registry, slot)->key, &row,
                                      true) &&
            full < 0)
            full = (int)slot;
    }
    return full;
}

static int find_router(const struct crdt_state *s, uint64_t router)
{
    for (unsigned i = 0; i < crdt_reports_routers(s->reports); i++)
        if (crdt_reports_router_at(s->reports, i).router == router)
            return (int)i;
    return -1;
}

static bool answer_reports(struct crdt_state *s, struct wire_reader *rows, size_t each, bool loads,
                           struct crdt_section_writer *out)
{
    bool lacking = false;
    while (wire_left(rows) > 0) {
        struct wire_reader r = next_row(rows, each);
        int at = find_router(s, wire_read_u64(&r));
        struct crdt_reporter_digest theirs = {.epoch = wire_read_u64(&r)};
        theirs.loads = wire_read_u64(&r);
        theirs.others = wire_read_u64(&r);
        if (at < 0)
            continue; /* membership has to tell us of it first */
        unsigned router = (unsigned)at;
        struct crdt_reporter_digest own = crdt_reports_router_at(s->reports, router);
        bool loads_differ = loads && own.loads != theirs.loads;
        bool others_differ = own.others != theirs.others;
        if (own.epoch != theirs.epoch || (!loads_differ && !others_differ))
            continue;
        bool fits = crdt_record_write_origin(&out->w, own.router, own.epoch);
        if (fits && loads_differ)
            (void)send_reports(s, router, CRDT_REPORT_LOAD, 0, out);
        if (fits && others_differ) {
            (void)send_reports(s, router, CRDT_REPORT_SIGHT, 0, out);
            int full = send_reports(s, router, CRDT_REPORT_LEARNED, s->reports_from, out);
            s->reports_from = full >= 0 ? (unsigned)full : 0;
        }
        lacking = lacking || !crdt_reports_is_self(s->reports, own.router);
    }
    return lacking;
}

/* --- poison --------------------------------------------------------------------------------- */

static uint64_t digest_of_rows(struct wire_reader rows, size_t each, uint32_t now_s)
{
    struct crdt_poison theirs;
    crdt_poison_init(&theirs, now_s, UINT32_MAX / 2);
    while (wire_left(&rows) > 0) {
        struct wire_reader r = next_row(&rows, each);
        struct crdt_poison_row row;
        crdt_poison_row_read(&r, &row);
        DISCARD(crdt_poison_join(&theirs, &row)); /* what is past counts at neither */
    }
    return theirs.digest;
}

static void answer_poison(struct crdt_state *s, struct wire_reader *rows, size_t each, bool last,
                          struct crdt_section_writer *out)
{
    struct wire_reader again = *rows;
    while (wire_left(rows) > 0) {
        struct wire_reader r = next_row(rows, each);
        struct crdt_poison_row row;
        crdt_poison_row_read(&r, &row);
        crdt_state_join_poison(s, &row);
    }
    if (!last && digest_of_rows(again, each, s->poison.now_s) != s->poison.digest)
        crdt_hashes_poison(s, true, out);
}

void crdt_hashes_answer(struct crdt_state *s, const struct crdt_section *part,
                        struct crdt_section_writer *out)
{
    struct wire_reader r = wire_reader_of(part->body.at, part->body.len);
    uint8_t flags = wire_read_u8(&r);
    size_t each = wire_read_u8(&r);
    bool last = (flags & FLAG_LAST) != 0;
    bool loads = (flags & FLAG_LOADS) != 0;
    if (part->kind == CRDT_SECTION_POISON) {
        answer_poison(s, &r, each, last, out);
        return;
    }
    bool lacking = false;
    struct crdt_section_writer before = *out;
    crdt_section_begin(out, CRDT_SECTION_RECORDS);
    const uint8_t *empty = out->w.at;
    if (part->kind == CRDT_SECTION_REPLICAS)
        lacking = answer_replicas(s, &r, each, out);
    else
        lacking = answer_reports(s, &r, each, loads, out);
    if (out->w.at != empty)
        crdt_section_end(out);
    else
        *out = before;
    if (!lacking || last)
        return;
    if (part->kind == CRDT_SECTION_REPLICAS)
        crdt_hashes_replicas(s, true, out);
    else
        crdt_hashes_reports(s, true, loads, out);
}
