/* Possible additions of a later version to the state on the wire: records and sections of unknown
 * kinds, and bytes behind the known bytes. The known part is read as before; the rest is counted
 * and forwarded. */
#include "tests/lib/test.h"

#include <stdlib.h>

#include "base/err.h"
#include "crdt/record.h"
#include "crdt/section.h"
#include "tests/lib/fuzz_state.h"
#include "tests/lib/recorded.h"

enum { ROOM = 1 << 17, UNKNOWN = 200 };

static const char more[] = "\x07 of later"; /* the final zero does not count */

static void write_unknown(struct wire_writer *w)
{
    wire_write_u8(w, UNKNOWN);
    wire_write_varint(w, sizeof more);
    wire_write_bytes(w, more, sizeof more);
}

/* Writes an unknown record before each record, and makes each record longer, except a RUN, whose
 * length is fixed. Returns the number of records. */
static unsigned extend_records(struct slice in, struct wire_writer *w)
{
    struct wire_reader r = wire_reader_of(in.at, in.len);
    unsigned count = 0;
    for (; wire_left(&r) > 0; count++) {
        uint8_t kind = wire_read_u8(&r);
        struct slice body = wire_read_bytes(&r, wire_read_varint(&r));
        size_t added = kind == CRDT_RECORD_RUN ? 0 : sizeof more;
        write_unknown(w);
        wire_write_u8(w, kind);
        wire_write_varint(w, body.len + added);
        wire_write_bytes(w, body.at, body.len);
        wire_write_bytes(w, more, added);
    }
    assert_false(r.bad || w->bad);
    return count;
}

static struct crdt_state_stats stats_of(const struct crdt_state *s)
{
    struct crdt_state_stats stats;
    crdt_state_stats(s, &stats);
    return stats;
}

/* The states are equal but for the additions. Additions are part of the rows, and so of their
 * digests. */
static void assert_same_index(const struct crdt_state *a, const struct crdt_state *b)
{
    struct crdt_digest x = fuzz_digest(a), y = fuzz_digest(b);
    assert_true(x.index == y.index);
    assert_true(x.registry != y.registry && x.reports != y.reports);
    for (unsigned slot = 0; slot < 3; slot++) {
        struct crdt_registry_row p = crdt_registry_row(crdt_state_registry(a), slot);
        struct crdt_registry_row q = crdt_registry_row(crdt_state_registry(b), slot);
        assert_true(p.incarnation.started == q.incarnation.started && p.wish == q.wish);
        assert_true(p.later.len == 0);
        assert_true(slice_equal(q.later, slice_of(more, sizeof more - 1)));
        struct crdt_load l, m;
        crdt_reports_load_sum(crdt_state_reports(a), slot, &l);
        crdt_reports_load_sum(crdt_state_reports(b), slot, &m);
        assert_true(l.requests == m.requests && l.decoding_tokens == m.decoding_tokens);
    }
}

static void longer_and_unknown_records_are_read(void **state)
{
    (void)state;
    const char *const names[] = {"delta", "chunk"};
    for (unsigned dump = 0; dump < 2; dump++) {
        struct recorded then;
        recorded_load(&then, RECORDED_VERSION, names[dump]);
        struct crdt_state *plain = fuzz_state(2), *extended = fuzz_state(2);
        uint8_t *bytes = malloc(ROOM);
        assert_non_null(bytes);
        unsigned records = 0;
        struct crdt_origin origin = {.router = 1, .epoch = 1};
        for (unsigned i = 0; i < then.count; i++) {
            struct wire_writer w = wire_writer_of(bytes, ROOM);
            records += extend_records(recorded_item(&then, i), &w);
            struct slice longer = slice_of((char *)bytes, wire_written(&w));
            origin.seq++;
            if (dump) {
                assert_int_equal(crdt_snapshot_apply(plain, recorded_item(&then, i)), 0);
                assert_int_equal(crdt_snapshot_apply(extended, longer), 0);
            } else {
                assert_int_equal(crdt_state_apply(plain, &origin, recorded_item(&then, i)), 0);
                assert_int_equal(crdt_state_apply(extended, &origin, longer), 0);
            }
        }
        assert_true(records > 5);
        unsigned gone = dump; /* version 1 also had engines' events in dumps */
        assert_int_equal(stats_of(plain).records_skipped, gone);
        assert_int_equal(stats_of(extended).records_skipped, records + gone);
        assert_int_equal(stats_of(extended).malformed, 0);
        assert_same_index(plain, extended);
        crdt_state_check(extended);
        free(bytes);
        crdt_state_destroy(plain);
        crdt_state_destroy(extended);
        recorded_free(&then);
    }
}

/* A build forwards unknown fields unchanged: a third router, which gets them from this build,
 * agrees with the author. */
static void unknown_fields_are_forwarded(void **state)
{
    (void)state;
    struct recorded then;
    recorded_load(&then, RECORDED_VERSION, "delta");
    uint8_t *bytes = malloc(ROOM);
    assert_non_null(bytes);
    struct wire_writer w = wire_writer_of(bytes, ROOM);
    (void)extend_records(recorded_item(&then, 0), &w);
    struct crdt_state *second = fuzz_state(2), *third = fuzz_state(3);
    crdt_state_router(third, 2, 1);
    struct crdt_origin origin = {.router = 1, .epoch = 1, .seq = 1};
    assert_int_equal(crdt_state_apply(second, &origin, slice_of((char *)bytes, wire_written(&w))),
                     0);
    struct crdt_snapshot c;
    crdt_snapshot_begin(&c, 0);
    struct buf chunk = {0};
    while (crdt_snapshot_next(second, &c, &chunk) == 1) {
        assert_int_equal(crdt_snapshot_apply(third, buf_slice(&chunk)), 0);
        buf_clear(&chunk);
    }
    assert_true(fuzz_digest(second).registry == fuzz_digest(third).registry);
    for (unsigned i = 0; i < crdt_reports_routers(crdt_state_reports(third)); i++) {
        struct crdt_reporter_digest d = crdt_reports_router_at(crdt_state_reports(third), i);
        for (unsigned k = 0; k < crdt_reports_routers(crdt_state_reports(second)); k++) {
            struct crdt_reporter_digest e = crdt_reports_router_at(crdt_state_reports(second), k);
            if (d.router == 1 && e.router == 1)
                assert_true(d.loads == e.loads && d.others == e.others && d.others != 0);
        }
    }
    buf_free(&chunk);
    free(bytes);
    crdt_state_check(third);
    crdt_state_destroy(second);
    crdt_state_destroy(third);
    recorded_free(&then);
}

/* The greatest bytes win, in any order. */
static void later_bytes_of_a_row_are_joined(void **state)
{
    (void)state;
    const struct slice values[] = {SLICE(""), SLICE("\x01"), SLICE("\x01\x05"), SLICE("\x02")};
    for (unsigned first = 0; first < 4; first++) {
        for (unsigned second = 0; second < 4; second++) {
            struct crdt_state *s = fuzz_state(1), *t = fuzz_state(1);
            const unsigned order[2][2] = {{first, second}, {second, first}};
            for (unsigned k = 0; k < 2; k++) {
                for (unsigned i = 0; i < 2; i++) {
                    uint8_t bytes[256];
                    struct wire_writer w = wire_writer_of(bytes, sizeof bytes);
                    crdt_record_write_replica(
                        &w, &(struct crdt_registry_row){.name = SLICE("a"),
                                                        .named = 15000,
                                                        .born = 15000,
                                                        .later = values[order[k][i]]});
                    struct crdt_origin origin = {.router = 2, .epoch = 1, .seq = i + 1};
                    assert_int_equal(crdt_state_apply(k == 0 ? s : t, &origin,
                                                      slice_of((char *)bytes, wire_written(&w))),
                                     0);
                }
            }
            struct slice later = crdt_registry_row(crdt_state_registry(s), 0).later;
            assert_true(slice_equal(later, values[first > second ? first : second]));
            assert_true(fuzz_digest(s).registry == fuzz_digest(t).registry);
            crdt_state_check(s);
            crdt_state_destroy(s);
            crdt_state_destroy(t);
        }
    }
}

/* Copies a section with more bytes behind the known bytes; each row of hashes is longer. */
static void extend_section(const struct crdt_section *in, struct crdt_section_writer *w)
{
    crdt_section_begin(w, (enum crdt_section_kind)in->kind);
    bool hashes = in->kind == CRDT_SECTION_REPLICAS || in->kind == CRDT_SECTION_REPORTS ||
                  in->kind == CRDT_SECTION_EVENTS || in->kind == CRDT_SECTION_POISON;
    if (in->kind == CRDT_SECTION_RECORDS) {
        (void)extend_records(in->body, &w->w);
    } else if (hashes) {
        size_t each = (uint8_t)in->body.at[1];
        wire_write_u8(&w->w, (uint8_t)in->body.at[0] | 0xf0);
        wire_write_u8(&w->w, (uint8_t)(each + sizeof more));
        size_t head = in->kind == CRDT_SECTION_REPLICAS ? 6 : 2; /* a floor */
        wire_write_bytes(&w->w, in->body.at + 2, head - 2);
        for (size_t at = head; at < in->body.len; at += each) {
            wire_write_bytes(&w->w, in->body.at + at, each);
            wire_write_bytes(&w->w, more, sizeof more);
        }
    } else {
        wire_write_bytes(&w->w, in->body.at, in->body.len);
        wire_write_bytes(&w->w, more, sizeof more);
    }
    crdt_section_end(w);
}

static void longer_and_unknown_sections_are_read(void **state)
{
    (void)state;
    struct recorded then;
    recorded_load(&then, RECORDED_VERSION, "message");
    uint8_t *bytes = malloc(ROOM);
    assert_non_null(bytes);
    struct slice message = recorded_item(&then, 0);
    struct wire_reader r = wire_reader_of(message.at, message.len);
    struct crdt_section_writer w = {.w = wire_writer_of(bytes, ROOM)};
    unsigned sections = 0;
    for (struct crdt_section next; crdt_section_next(&r, &next); sections++) {
        crdt_section_begin(&w, (enum crdt_section_kind)(UNKNOWN + sections));
        wire_write_bytes(&w.w, more, sizeof more);
        crdt_section_end(&w);
        extend_section(&next, &w);
    }
    assert_false(r.bad || w.w.bad);
    struct crdt_state *plain = fuzz_state(2), *extended = fuzz_state(2);
    fuzz_tell(plain);
    fuzz_tell(extended);
    struct buf reply = {0}, longer = {0};
    struct crdt_reconciled x, y;
    assert_int_equal(crdt_state_message(plain, message, true, &reply, &x), 0);
    assert_int_equal(crdt_state_message(extended, slice_of((char *)bytes, wire_written(&w.w)), true,
                                        &longer, &y),
                     0);
    assert_true(x.joined == y.joined && x.differences == y.differences && y.decoded && y.too_many);
    assert_true(x.peer_now == y.peer_now && y.summary);
    assert_int_equal(stats_of(extended).sections_skipped, sections + 1); /* and engines' events */
    assert_true(stats_of(extended).records_skipped > 0);
    assert_true(fuzz_digest(plain).index == fuzz_digest(extended).index);
    assert_true(longer.len >= reply.len); /* the rows in the answer are longer now */
    crdt_state_check(extended);
    free(bytes);
    buf_free(&reply);
    buf_free(&longer);
    crdt_state_destroy(plain);
    crdt_state_destroy(extended);
    recorded_free(&then);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(longer_and_unknown_records_are_read),
        cmocka_unit_test(unknown_fields_are_forwarded),
        cmocka_unit_test(later_bytes_of_a_row_are_joined),
        cmocka_unit_test(longer_and_unknown_sections_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
