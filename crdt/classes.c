#include "crdt/classes.h"

#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "crdt/state_internal.h"

enum { REPLICA_BYTES = 12, REPORT_BYTES = 32, FLOOR_BYTES = 4, HEAD_BYTES = 2 };
_Static_assert(3 * (5 + HEAD_BYTES) + FLOOR_BYTES + CRDT_ROWS_MAX * REPLICA_BYTES +
                       CRDT_ROUTERS_MAX * REPORT_BYTES + CRDT_SUMMARY_MAX +
                       CRDT_POISON_MAX * CRDT_POISON_ROW_BYTES <=
                   CRDT_MESSAGE_MAX,
               "a message has room for all three vectors");
_Static_assert(CRDT_POISON_MAX *(CRDT_RECORD_HEAD_MAX + CRDT_POISON_ROW_BYTES) <= CRDT_CHUNK_MAX,
               "a chunk has room for all poison");

static const uint64_t mask48 = 0xffffffffffff;

/* Takes the next hash, which has `each` bytes. */
static struct wire_reader next_hash(struct wire_reader *hashes, size_t each)
{
    struct slice row = wire_read_bytes(hashes, each);
    return wire_reader_of(row.at, row.len);
}

/* Counts the result of a join if it is an error. */
static void count(struct crdt_state *s, int result)
{
    s->stats.full += result == ERR_FULL || result == ERR_NOMEM;
    s->stats.stale += result == ERR_STALE;
    s->stats.future += result == ERR_RANGE;
    s->stats.unknown_router += result == ERR_NOT_FOUND;
}

/* --- the registry --------------------------------------------------------------------------- */

static void join_replica(struct crdt_state *s, const struct crdt_origin *origin,
                         const struct crdt_record *record)
{
    bool news = false;
    struct crdt_registry_row row = record->replica;
    row.told_by = origin != NULL ? origin->router : 0;
    count(s, crdt_registry_join(s->registry, &row, &news));
    crdt_state_follow_registry(s);
}

static bool write_replica(const struct crdt_state *s, int place, struct wire_writer *w)
{
    struct crdt_registry_row row = crdt_registry_row(s->registry, (unsigned)place);
    return crdt_record_write_replica(w, &row);
}

static bool produce_replicas(struct crdt_state *s, uint64_t seq, struct wire_writer *w)
{
    (void)seq;
    for (int place; (place = crdt_registry_news(s->registry)) >= 0;) {
        if (!write_replica(s, place, w))
            return false;
        crdt_registry_sent(s->registry, (unsigned)place);
    }
    return true;
}

static bool dump_replicas(const struct crdt_state *s, uint64_t *position, struct wire_writer *w)
{
    /* The position is a row's place. If a row moves meanwhile and is missed, anti-entropy brings
     * it. */
    for (int place; (place = crdt_registry_next(s->registry, (int)*position - 1)) >= 0;
         *position = (uint64_t)place + 1)
        if (!write_replica(s, place, w))
            return false;
    return true;
}

static void hash_replicas(const struct crdt_state *s, struct wire_writer *w)
{
    wire_write_u32(w, crdt_registry_floor_s(s->registry));
    for (int i = -1; (i = crdt_registry_next(s->registry, i)) >= 0;) {
        struct crdt_registry_mark mark = crdt_registry_mark(s->registry, (unsigned)i);
        wire_write_u48(w, mark.key);
        wire_write_u48(w, mark.hash & mask48);
    }
}

static bool answer_replicas(struct crdt_state *s, struct wire_reader *theirs, size_t each,
                            unsigned flags, struct wire_writer *w)
{
    (void)flags;
    bool lacking = false;
    bool has[CRDT_REPLICAS_MAX + CRDT_ROWS_MAX] = {false};
    uint32_t floor = wire_read_u32(theirs);
    while (wire_left(theirs) > 0) {
        struct wire_reader r = next_hash(theirs, each);
        int place = crdt_registry_place(s->registry, wire_read_u48(&r));
        uint64_t hash = wire_read_u48(&r);
        if (place < 0) {
            lacking = true;
            continue;
        }
        has[place] = true;
        if ((crdt_registry_mark(s->registry, (unsigned)place).hash & mask48) == hash)
            continue;
        lacking = true;
        (void)write_replica(s, place, w);
    }
    for (int i = -1; (i = crdt_registry_next(s->registry, i)) >= 0;)
        if (!has[i] && crdt_registry_mark(s->registry, (unsigned)i).named >= floor)
            (void)write_replica(s, i, w);
    return lacking;
}

/* --- poison --------------------------------------------------------------------------------- */

static void join_poison(struct crdt_state *s, const struct crdt_origin *origin,
                        const struct crdt_record *record)
{
    (void)origin;
    count(s, crdt_poison_join(&s->poison, &record->poison));
}

static bool produce_poison(struct crdt_state *s, uint64_t seq, struct wire_writer *w)
{
    (void)seq;
    for (int at; (at = crdt_poison_news(&s->poison)) >= 0;) {
        if (!crdt_record_write_poison(w, &s->poison.row[at]))
            return false;
        crdt_poison_sent(&s->poison, (unsigned)at);
    }
    return true;
}

/* All rows go into a single chunk, because a row added or removed between chunks would shift the
 * others. */
static bool dump_poison(const struct crdt_state *s, uint64_t *position, struct wire_writer *w)
{
    for (; *position < s->poison.count; ++*position)
        CHECK(crdt_record_write_poison(w, &s->poison.row[*position]));
    return true;
}

static void hash_poison(const struct crdt_state *s, struct wire_writer *w)
{
    for (unsigned i = 0; i < s->poison.count; i++)
        crdt_poison_row_write(w, &s->poison.row[i]);
}

static bool answer_poison(struct crdt_state *s, struct wire_reader *theirs, size_t each,
                          unsigned flags, struct wire_writer *w)
{
    (void)flags;
    (void)w;
    struct crdt_poison alone;
    crdt_poison_init(&alone, s->poison.now_s, UINT32_MAX / 2);
    while (wire_left(theirs) > 0) {
        struct wire_reader r = next_hash(theirs, each);
        struct crdt_poison_row row;
        crdt_poison_row_read(&r, &row);
        count(s, crdt_poison_join(&s->poison, &row));
        DISCARD(crdt_poison_join(&alone, &row)); /* a row expired here is in neither digest */
    }
    return alone.digest != s->poison.digest;
}

/* --- reports -------------------------------------------------------------------------------- */

static void join_report(struct crdt_state *s, const struct crdt_origin *origin,
                        const struct crdt_record *record)
{
    struct crdt_report row = record->report.row;
    int slot = crdt_registry_by_key(s->registry, record->report.key);
    if (slot < 0) {
        s->stats.unknown_replica++;
        return;
    }
    row.slot = (unsigned)slot;
    if (origin != NULL) {
        row.router = origin->router;
        row.epoch = origin->epoch;
        row.seq = origin->seq;
    }
    count(s, crdt_reports_join(s->reports, &row));
}

static bool write_report(const struct crdt_state *s, const struct crdt_report *row, bool dump,
                         struct wire_writer *w)
{
    return crdt_record_write_report(w, crdt_registry_at(s->registry, row->slot)->key, row, dump);
}

static bool produce_reports(struct crdt_state *s, uint64_t seq, struct wire_writer *w)
{
    for (unsigned k = 0; k < CRDT_REPORTS; k++) {
        enum crdt_report_kind kind = (enum crdt_report_kind)k;
        for (int slot = 0; (slot = crdt_reports_waiting(s->reports, kind, (unsigned)slot)) >= 0;) {
            struct crdt_report row;
            crdt_reports_own(s->reports, kind, (unsigned)slot, &row);
            if (!write_report(s, &row, false, w))
                return false;
            crdt_reports_heard(s->reports, kind, (unsigned)slot, seq);
        }
    }
    return true;
}

static bool dump_reports(const struct crdt_state *s, uint64_t *position, struct wire_writer *w)
{
    /* The position counts (router, replica) pairs. A router that joins or leaves meanwhile shifts
     * some rows out of the snapshot. Deltas and anti-entropy bring these rows. */
    uint64_t end = (uint64_t)crdt_reports_routers(s->reports) * CRDT_REPLICAS_MAX;
    unsigned last = UINT32_MAX;
    for (; *position < end; ++*position) {
        unsigned router = (unsigned)(*position / CRDT_REPLICAS_MAX);
        unsigned slot = (unsigned)(*position % CRDT_REPLICAS_MAX);
        struct wire_writer before = *w;
        for (unsigned kind = 0; kind < CRDT_REPORTS; kind++) {
            struct crdt_report row;
            if (!crdt_reports_row(s->reports, router, (enum crdt_report_kind)kind, slot, &row))
                continue;
            bool fits = router == last || crdt_record_write_origin(w, row.router, row.epoch);
            last = router;
            if (!fits || !write_report(s, &row, true, w)) {
                *w = before;
                return false;
            }
        }
    }
    return true;
}

static void hash_reports(const struct crdt_state *s, struct wire_writer *w)
{
    for (unsigned i = 0; i < crdt_reports_routers(s->reports); i++) {
        struct crdt_reporter_digest d = crdt_reports_router_at(s->reports, i);
        wire_write_u64(w, d.router);
        wire_write_u64(w, d.epoch);
        wire_write_u64(w, d.loads);
        wire_write_u64(w, d.others);
    }
}

/* Returns the first slot with a row that did not fit, or -1. */
static int send_reports(const struct crdt_state *s, unsigned router, enum crdt_report_kind kind,
                        unsigned from, struct wire_writer *w)
{
    unsigned slots = crdt_registry_count(s->registry);
    int full = -1;
    for (unsigned i = 0; i < slots; i++) {
        unsigned slot = (from + i) % slots;
        struct crdt_report row;
        if (crdt_reports_row(s->reports, router, kind, slot, &row) &&
            !write_report(s, &row, true, w) && full < 0)
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

static bool answer_reports(struct crdt_state *s, struct wire_reader *theirs, size_t each,
                           unsigned flags, struct wire_writer *w)
{
    bool lacking = false;
    while (wire_left(theirs) > 0) {
        struct wire_reader r = next_hash(theirs, each);
        int at = find_router(s, wire_read_u64(&r));
        uint64_t epoch = wire_read_u64(&r), loads = wire_read_u64(&r), others = wire_read_u64(&r);
        if (at < 0)
            continue; /* membership has not announced the router yet */
        unsigned router = (unsigned)at;
        struct crdt_reporter_digest own = crdt_reports_router_at(s->reports, router);
        bool loads_differ = (flags & CRDT_HASHES_LOADS) != 0 && own.loads != loads;
        bool others_differ = own.others != others;
        if (own.epoch != epoch || (!loads_differ && !others_differ))
            continue;
        bool fits = crdt_record_write_origin(w, own.router, own.epoch);
        if (fits && loads_differ)
            (void)send_reports(s, router, CRDT_REPORT_LOAD, 0, w);
        if (fits && others_differ) {
            (void)send_reports(s, router, CRDT_REPORT_SIGHT, 0, w);
            int full = send_reports(s, router, CRDT_REPORT_LEARNED, s->reports_from, w);
            s->reports_from = full >= 0 ? (unsigned)full : 0;
        }
        lacking = lacking || !crdt_reports_is_self(s->reports, own.router);
    }
    return lacking;
}

/* --- the table ------------------------------------------------------------------------------ */

const struct crdt_class crdt_classes[CRDT_CLASSES] = {
    /* The registry is first, because rows of the other classes refer to replicas. */
    {1u << CRDT_RECORD_REPLICA, CRDT_SECTION_REPLICAS, REPLICA_BYTES, FLOOR_BYTES, join_replica,
     produce_replicas, dump_replicas, hash_replicas, answer_replicas},
    {1u << CRDT_RECORD_POISON, CRDT_SECTION_POISON, CRDT_POISON_ROW_BYTES, 0, join_poison,
     produce_poison, dump_poison, hash_poison, answer_poison},
    {1u << CRDT_RECORD_LOAD | 1u << CRDT_RECORD_SIGHT | 1u << CRDT_RECORD_LEARNED,
     CRDT_SECTION_REPORTS, REPORT_BYTES, 0, join_report, produce_reports, dump_reports,
     hash_reports, answer_reports},
};

static const struct crdt_class *of_section(unsigned kind)
{
    for (unsigned i = 0; i < CRDT_CLASSES; i++)
        if (crdt_classes[i].section == kind)
            return &crdt_classes[i];
    return NULL;
}

void crdt_hashes_write(const struct crdt_state *s, enum crdt_section_kind kind, unsigned flags,
                       struct crdt_section_writer *out)
{
    const struct crdt_class *class = of_section(kind);
    crdt_section_begin(out, kind);
    wire_write_u8(&out->w, (uint8_t)flags);
    wire_write_u8(&out->w, (uint8_t) class->hash_bytes);
    class->hash(s, &out->w);
    crdt_section_end(out);
}

bool crdt_hashes_valid(const struct crdt_section *part)
{
    const struct crdt_class *class = of_section(part->kind);
    struct wire_reader r = wire_reader_of(part->body.at, part->body.len);
    (void)wire_read_u8(&r);
    size_t each = wire_read_u8(&r);
    if (class == NULL || each < class->hash_bytes)
        return false;
    (void)wire_read_bytes(&r, class->head_bytes);
    return !r.bad && wire_left(&r) % each == 0;
}

void crdt_hashes_answer(struct crdt_state *s, const struct crdt_section *part,
                        struct crdt_section_writer *out)
{
    struct wire_reader r = wire_reader_of(part->body.at, part->body.len);
    unsigned flags = wire_read_u8(&r);
    size_t each = wire_read_u8(&r);
    struct crdt_section_writer before = *out;
    crdt_section_begin(out, CRDT_SECTION_RECORDS);
    const uint8_t *empty = out->w.at;
    bool lacking = of_section(part->kind)->answer(s, &r, each, flags, &out->w);
    if (out->w.at != empty)
        crdt_section_end(out);
    else
        *out = before;
    if (lacking && (flags & CRDT_HASHES_LAST) == 0)
        crdt_hashes_write(s, (enum crdt_section_kind)part->kind,
                          CRDT_HASHES_LAST | (flags & CRDT_HASHES_LOADS), out);
}
