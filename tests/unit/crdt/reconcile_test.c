#include "crdt/state.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/prng.h"
#include "crdt/classes.h"
#include "crdt/record.h"
#include "crdt/section.h"
#include "crdt/sketch.h"
#include "tests/lib/state_help.h"
#include "tests/lib/states.h"
#include "tests/lib/test.h"

static struct chain chain;

static struct crdt_state *make(uint64_t self, uint32_t ttl, uint64_t bytes_max)
{
    struct crdt_state *s =
        states_make(&(struct states_setting){.self = self, .ttl = ttl, .bytes_max = bytes_max});
    for (unsigned i = 0; i < 8; i++)
        (void)states_replica(s, i);
    return s;
}

static void observe(struct crdt_state *s, uint64_t seed, unsigned points, unsigned slot)
{
    states_prompt(&chain, seed, points);
    assert_int_equal(crdt_state_observe(s, &chain, slot), points);
}

static void destroy(struct crdt_state *a, struct crdt_state *b)
{
    crdt_state_check(a);
    crdt_state_check(b);
    crdt_state_destroy(a);
    crdt_state_destroy(b);
}

static void test_equal_states_need_one_packet(void **state)
{
    (void)state;
    struct crdt_state *a = make(1, 12, 0);
    struct crdt_state *b = make(2, 12, 0);
    observe(a, 1, 100, 3);
    observe(b, 1, 100, 3);
    struct states_exchange e = states_reconcile(a, b, true);
    assert_true(e.equal);
    assert_int_equal(e.messages, 1);
    assert_in_range(e.bytes, 1, CRDT_SUMMARY_MAX);
    destroy(a, b);
}

static void test_differences_of_any_number_are_repaired_both_ways(void **state)
{
    (void)state;
    for (unsigned prompts = 1; prompts <= 64; prompts *= 2) {
        struct crdt_state *a = make(1, 12, 8 << 20);
        struct crdt_state *b = make(2, 12, 8 << 20);
        for (unsigned i = 0; i < 300; i++) {
            observe(a, i, 50, i % 8);
            observe(b, i, 50, i % 8);
        }
        for (unsigned i = 0; i < prompts; i++) {
            observe(i % 2 == 0 ? a : b, 1000 + i, 30, i % 8);
            assert_int_equal(crdt_state_bind(i % 2 == 0 ? a : b, hash_mix(i + 1), i % 8), 1);
        }
        assert_false(states_equal(a, b, 0));
        struct states_exchange e = states_reconcile(a, b, false);
        assert_false(e.too_many);
        assert_int_equal(e.differences, 31 * prompts);
        assert_int_equal(e.joined, 31 * prompts);
        assert_true(states_equal(a, b, 0));
        assert_true(states_reconcile(b, a, true).equal);
        /* The cost depends on the difference, not on the size: cells fold to few widths. */
        assert_in_range(e.bytes, 1, 2500 + 60 * 31 * prompts);
        destroy(a, b);
    }
}

/* The figure in docs/benchmarks.md. */
static void test_a_thousand_differences_cost_some_25_kb(void **state)
{
    (void)state;
    struct crdt_state *a = make(1, 12, 16 << 20);
    struct crdt_state *b = make(2, 12, 16 << 20);
    for (unsigned i = 0; i < 1000; i++) {
        observe(a, i, 100, i % 8);
        observe(b, i, 100, i % 8);
    }
    for (unsigned i = 0; i < 10; i++)
        observe(i % 2 == 0 ? a : b, 5000 + i, 100, i % 8);
    struct states_exchange e = states_reconcile(a, b, false);
    assert_int_equal(e.joined, 1000);
    assert_int_equal(e.messages, 3);
    assert_in_range(e.bytes, 1, 33000); /* the standard error of the estimate is 9 % */
    assert_true(states_equal(a, b, 0));
    destroy(a, b);
}

static void test_too_many_differences_make_both_take_snapshots(void **state)
{
    (void)state;
    struct crdt_state *a = make(1, 12, 8 << 20);
    struct crdt_state *b = make(2, 12, 8 << 20);
    for (unsigned i = 0; i < 100; i++)
        observe(a, i, 200, i % 8);
    struct states_exchange e = states_reconcile(a, b, true);
    assert_true(e.too_many);
    assert_int_equal(e.messages, 2);
    assert_in_range(e.bytes, 1, 3000);
    /* If the clocks are hours apart, no snapshot is taken: it would be refused as well. */
    struct crdt_state *c = states_make(&(struct states_setting){.self = 3, .now = 500});
    assert_false(states_reconcile(a, c, true).too_many);
    assert_false(states_reconcile(c, a, true).too_many);
    states_join(b, a);
    assert_true(states_equal(a, b, 0));
    crdt_state_destroy(c);
    destroy(a, b);
}

/* A router's reports about the default maximum of replicas, with the longest figures. */
static void test_rows_beyond_a_full_message_follow_in_later_rounds(void **state)
{
    (void)state;
    struct states_setting setting = {
        .self = 1, .bytes_max = 64 << 20, .replicas_max = CRDT_REPLICAS_MAX};
    struct crdt_state *a = states_make(&setting);
    setting.self = 2;
    struct crdt_state *b = states_make(&setting);
    struct crdt_learned longest;
#define LONGEST_u64                CRDT_NUMBER_MAX
#define LONGEST_u32                UINT32_MAX
#define LONGEST(width, name, when) longest.name = LONGEST_##width;
    CRDT_LEARNED_FIELDS(LONGEST)
    for (unsigned i = 0; i < 1024; i++) {
        unsigned slot = states_replica(a, i);
        assert_int_equal(states_replica(b, i), slot);
        crdt_state_learned(a, slot, &longest);
        crdt_state_load(a, slot, &(struct crdt_load){7, 70000, 8000000, 900, 0, 0});
    }
    (void)states_tell_nobody(a, 1 << 20);
    struct states_exchange e = {0};
    uint64_t bytes = 0;
    unsigned rounds = 0;
    for (; !e.equal && rounds < 8; rounds++, bytes += e.bytes)
        e = states_reconcile(b, a, true); /* checks the length of each message */
    assert_true(e.equal);
    assert_in_range(rounds, 3, 5);
    assert_in_range(bytes, CRDT_MESSAGE_MAX, 4 * CRDT_MESSAGE_MAX);
    destroy(a, b);
}

/* A router short of memory has a higher floor. Entries below the floor are neither compared nor
 * sent, so the exchange ends. */
static void test_a_higher_floor_ends_the_exchange(void **state)
{
    (void)state;
    for (uint32_t ttl = 12; ttl <= 96; ttl += 84) { /* spans of 1 generation, then of 3 */
        struct crdt_state *a = make(1, ttl, 16 << 20);
        struct crdt_state *b = make(2, ttl, 16 << 20);
        for (uint32_t now = 1000; now < 1010; now++) {
            state_advance(a, now);
            state_advance(b, now);
            observe(a, now, 20, now % 8);
            observe(b, now + 5000, 20, now % 8);
        }
        crdt_index_floor_raise(crdt_state_index(b), 1005);
        uint32_t from = crdt_index_sketch_from(crdt_state_index(b), 1005);
        for (unsigned who = 0; who < 2; who++) {
            struct states_exchange e = states_reconcile(who == 0 ? a : b, who == 0 ? b : a, false);
            assert_int_equal(e.joined, who == 0 ? 2 * 20 * (1010 - from) : 0);
        }
        assert_true(states_equal(a, b, from));
        assert_true(states_reconcile(a, b, true).messages <= 2);
        assert_true(states_reconcile(a, b, true).equal || from > 1005);
        assert_true(states_reconcile(b, a, true).equal);
        struct crdt_state_stats stats;
        crdt_state_stats(b, &stats);
        assert_int_equal(stats.stale, 0);
        destroy(a, b);
    }
}

/* Two routers counted as "equal" if their memory kept less than a span: nothing in the span was
 * compared. */
static void test_entries_in_a_span_cut_by_a_floor_are_repaired(void **state)
{
    (void)state;
    static const uint32_t floors[] = {1003, 1001, 1000}; /* now, in a span, below a span */
    for (unsigned f = 0; f < 3; f++) {
        struct crdt_state *a = make(1, 96, 16 << 20);
        struct crdt_state *b = make(2, 96, 16 << 20); /* spans of three generations */
        crdt_index_advance(crdt_state_index(a), floors[f]);
        crdt_index_advance(crdt_state_index(b), floors[f]);
        crdt_index_floor_raise(crdt_state_index(a), floors[f]);
        crdt_index_floor_raise(crdt_state_index(b), floors[f]);
        assert_true(crdt_index_sketch_from(crdt_state_index(a), floors[f]) > floors[f]);
        for (unsigned i = 0; i < 100; i++) {
            observe(a, i, 50, i % 8);
            observe(b, i, 50, i % 8);
        }
        observe(a, 1000, 40, 1);
        observe(b, 1001, 40, 2);
        crdt_index_advance(crdt_state_index(a), 1003);
        crdt_index_advance(crdt_state_index(b), 1003);
        assert_false(states_reconcile(a, b, false).equal);
        struct states_exchange e = states_reconcile(a, b, true);
        assert_false(e.equal || e.too_many || e.incomparable);
        assert_int_equal(e.joined, 80);
        assert_int_equal(e.messages, 3);
        assert_in_range(e.bytes, 1, 20000);
        assert_true(states_equal(a, b, 0));
        assert_true(states_reconcile(a, b, true).equal);
        destroy(a, b);
    }
}

static void test_two_floors_within_a_span_use_the_higher(void **state)
{
    (void)state;
    struct crdt_state *a = make(1, 192, 16 << 20);
    struct crdt_state *b = make(2, 192, 16 << 20); /* spans of six generations */
    for (uint32_t now = 1002; now < 1008; now++) {
        crdt_index_advance(crdt_state_index(a), now);
        crdt_index_advance(crdt_state_index(b), now);
        observe(a, now, 10, 1);
        observe(b, now + 100, 10, 2);
    }
    crdt_index_floor_raise(crdt_state_index(a), 1003);
    crdt_index_floor_raise(crdt_state_index(b), 1005);
    struct states_exchange e = states_reconcile(a, b, true);
    assert_int_equal(e.joined, 3 * 2 * 10);
    assert_true(states_equal(a, b, 1005));
    assert_true(states_reconcile(a, b, true).equal && states_reconcile(b, a, true).equal);
    destroy(a, b);
}

static struct crdt_reconciled take(struct crdt_state *s, const struct wire_writer *w,
                                   const uint8_t *bytes, struct buf *reply)
{
    struct crdt_reconciled r;
    buf_clear(reply);
    assert_int_equal(
        crdt_state_message(s, slice_of((const char *)bytes, wire_written(w)), true, reply, &r), 0);
    return r;
}

/* A request costs little to send. Sixteen sections in a packet, packet after packet, each caused a
 * walk over the index. */
static void test_repeated_requests_cause_a_single_walk(void **state)
{
    (void)state;
    struct crdt_state *s = make(1, 96, 16 << 20); /* spans of three generations */
    observe(s, 1, 50, 1);
    crdt_index_advance(crdt_state_index(s), 1003);
    crdt_index_floor_raise(crdt_state_index(s), 1000);
    assert_true(crdt_index_sketch_from(crdt_state_index(s), 1000) > 1000);
    for (unsigned kind = 0; kind < 3; kind++) {
        uint8_t bytes[512];
        struct buf reply = {0};
        struct crdt_section_writer out = {.w = wire_writer_of(bytes, sizeof bytes)};
        for (unsigned i = 0; i < 16; i++) {
            crdt_section_begin(&out, CRDT_SECTION_WIDER);
            wire_write_u32(&out.w, kind == 1 ? 1000 + i % 2 : 1000);
            wire_write_u16(&out.w, kind == 2 ? CRDT_SKETCH_CELLS : 96);
            wire_write_u8(&out.w, 1);
            crdt_section_end(&out);
        }
        assert_false(out.w.bad);
        crdt_state_cut_renew(s);
        struct crdt_reconciled r = take(s, &out.w, bytes, &reply);
        assert_true(r.cut_walked && r.cut_hard == (kind == 2));
        size_t len = reply.len;
        assert_in_range(len, 1, CRDT_MESSAGE_MAX);
        observe(s, 2 + kind, 5, 2);
        r = take(s, &out.w, bytes, &reply);
        assert_false(r.cut_walked);
        /* If the difference is too large for fewer cells, the reply is not sent again and again. */
        assert_int_equal(reply.len, kind == 2 ? 0 : len);
        crdt_state_cut_renew(s);
        assert_true(take(s, &out.w, bytes, &reply).cut_walked);
        buf_free(&reply);
    }
    crdt_state_check(s);
    crdt_state_destroy(s);
}

static void test_states_without_common_generations_are_not_equal(void **state)
{
    (void)state;
    struct crdt_state *a = make(1, 12, 0);
    struct crdt_state *b = make(2, 12, 0);
    crdt_index_advance(crdt_state_index(b), 1014);
    for (unsigned who = 0; who < 2; who++) {
        struct states_exchange e = states_reconcile(who == 0 ? a : b, who == 0 ? b : a, true);
        assert_true(e.incomparable);
        assert_false(e.equal);
    }
    crdt_index_advance(crdt_state_index(a), 1001);
    assert_false(states_reconcile(a, b, true).incomparable);
    assert_true(states_reconcile(a, b, true).equal);
    destroy(a, b);
}

/* A router requests no entries older than the other router keeps. */
static void test_generations_kept_by_only_one_are_not_requested(void **state)
{
    (void)state;
    for (unsigned who = 0; who < 2; who++) {
        struct crdt_state *a = make(1, 12, 0);
        struct crdt_state *b = make(2, 12, 0);
        crdt_index_advance(crdt_state_index(b), 1014);
        unsigned messages = 0;
        for (unsigned turn = 0; turn < 2; turn++) {
            struct states_exchange e = states_reconcile(who == 0 ? a : b, who == 0 ? b : a, true);
            assert_true(e.incomparable);
            assert_int_equal(e.differences + e.joined, 0);
            assert_true(turn == 0 || e.messages == messages);
            messages = e.messages;
            if (turn == 0) {
                observe(a, 1, 5, 3);
                observe(b, 2, 5, 3);
            }
        }
        destroy(a, b);
    }
}

/* --- lost caches ---------------------------------------------------------------------------- */

enum { LOST = 50000 };

static struct crdt_state *make_with_cache(uint64_t self)
{
    struct crdt_state *s = make(self, 96, 24 << 20);
    for (unsigned i = 0; i < LOST / 100; i++)
        observe(s, i, 100, 3);
    return s;
}

/* The sketches of both routers contain the lost cache's entries until the sweep. Because of "far
 * behind", each router once took a snapshot. */
static void test_sweeping_a_lost_cache_causes_no_snapshot(void **state)
{
    (void)state;
    struct crdt_state *a = make_with_cache(1);
    struct crdt_state *b = make_with_cache(2);
    (void)crdt_state_restarted(a, 3, 777);
    observe(a, 9000, 50, 3);
    /* Router a has received the loss, router b has not. */
    struct states_exchange e = states_reconcile(b, a, true);
    assert_false(e.too_many);
    assert_in_range(e.bytes, 1, 5000);
    /* Both have received the loss; their sweepers are at different places. */
    (void)crdt_index_sweep(crdt_state_index(a), 200);
    observe(b, 9001, 50, 3);
    uint64_t bytes = 0;
    for (unsigned round = 0; round < 4; round++) {
        e = states_reconcile(round % 2 == 0 ? a : b, round % 2 == 0 ? b : a, true);
        assert_false(e.too_many || e.equal);
        bytes += e.bytes;
        if (round == 1) /* a's sweep is done */
            while (!crdt_index_sketch_is_clean(crdt_state_index(a)))
                (void)crdt_index_sweep(crdt_state_index(a), 5000);
    }
    assert_in_range(bytes, 1, 4 * CRDT_SUMMARY_MAX);
    while (!crdt_index_sketch_is_clean(crdt_state_index(b)))
        (void)crdt_index_sweep(crdt_state_index(b), 5000);
    e = states_reconcile(a, b, true);
    assert_int_equal(e.joined, 100);
    assert_in_range(e.bytes, 1, 10000);
    assert_true(states_equal(a, b, 0));
    destroy(a, b);
}

/* --- other classes -------------------------------------------------------------------------- */

static void test_registry_and_reports_are_repaired(void **state)
{
    (void)state;
    struct crdt_state *a = make(1, 12, 0);
    struct crdt_state *b = make(2, 12, 0);
    crdt_state_load(a, 1, &(struct crdt_load){.requests = 4});
    crdt_state_sight(b, 2, &(struct crdt_sight){.configured = true});
    crdt_state_learned(b, 3, &(struct crdt_learned){.rate = 1234});
    (void)states_tell_nobody(a, 0);
    (void)states_tell_nobody(b, 0);
    (void)crdt_state_restarted(a, 4, 777);
    (void)states_replica(b, 20);
    DISCARD(crdt_state_wish(b, 5, CRDT_WISH_REMOVED));
    DISCARD(crdt_state_drain(b, 5, true));
    (void)states_reconcile(a, b, false);
    struct crdt_load sum;
    crdt_reports_load_sum(crdt_state_reports(b), 1, &sum);
    assert_int_equal(sum.requests, 0); /* loads are compared only if no delta is on the way */
    (void)states_reconcile(a, b, true);
    crdt_reports_load_sum(crdt_state_reports(b), 1, &sum);
    assert_int_equal(sum.requests, 4);
    assert_true(states_equal(a, b, 0));
    destroy(a, b);
}

/* A message may be full anywhere. A report can be shorter than the ORIGIN in front of the report.
 * Such a report was written although the ORIGIN did not fit, and counted as the previous
 * router's. */
static void test_reports_keep_their_router_in_a_full_message(void **state)
{
    (void)state;
    struct crdt_state *a = make(1, 12, 0);
    struct crdt_state *b = make(4, 12, 0);
    for (uint64_t router = 1; router <= 3; router++) {
        struct crdt_state *from = make(router, 12, 0);
        crdt_state_load(from, 1, &(struct crdt_load){.requests = (uint32_t)router});
        uint8_t delta[1160];
        size_t len = crdt_state_produce(from, 1, delta, sizeof delta);
        const struct crdt_origin origin = {.router = router, .epoch = 1, .seq = 1};
        if (router > 1)
            assert_int_equal(crdt_state_apply(a, &origin, slice_of((char *)delta, len)), 0);
        crdt_state_destroy(from);
    }
    uint8_t hashes[1024], reply[1024];
    struct crdt_section_writer theirs = {.w = wire_writer_of(hashes, sizeof hashes)};
    crdt_hashes_write(b, CRDT_SECTION_REPORTS, CRDT_HASHES_LAST | CRDT_HASHES_LOADS, &theirs);
    struct crdt_section part;
    struct wire_reader r = wire_reader_of(hashes, wire_written(&theirs.w));
    assert_true(crdt_section_next(&r, &part));
    unsigned reports = 0;
    for (size_t room = 0; room <= 256; room++) {
        struct crdt_section_writer w = {.w = wire_writer_of(reply, room)};
        crdt_hashes_answer(a, &part, &w);
        r = wire_reader_of(reply, wire_written(&w.w));
        struct crdt_section rows;
        reports = 0;
        if (!crdt_section_next(&r, &rows))
            continue;
        struct crdt_records records = crdt_records_of(rows.body, true);
        struct crdt_record record;
        while (crdt_records_next(&records, &record)) {
            assert_int_equal(record.report.row.value.load.requests, record.report.row.router);
            reports++;
        }
        assert_false(records.in.bad);
    }
    assert_int_equal(reports, 2);
    destroy(a, b);
}

/* --- hostile and broken messages ------------------------------------------------------------ */

static struct crdt_digest digest(const struct crdt_state *s)
{
    struct crdt_digest d;
    crdt_state_digest(s, 0, &d);
    return d;
}

static void try_message(struct crdt_state *s, const uint8_t *bytes, size_t len)
{
    /* An exact copy, so that the sanitizer sees a read beyond the end. */
    char *copy = malloc(len > 0 ? len : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, len);
    struct crdt_digest before = digest(s);
    struct crdt_reconciled r;
    struct buf reply = {0};
    if (crdt_state_message(s, slice_of(copy, len), true, &reply, &r) != 0) {
        struct crdt_digest after = digest(s);
        assert_memory_equal(&before, &after, sizeof before);
        assert_int_equal(reply.len, 0);
    }
    assert_in_range(reply.len, 0, CRDT_MESSAGE_MAX);
    buf_free(&reply);
    free(copy);
}

static void test_malformed_messages_change_nothing(void **state)
{
    (void)state;
    struct crdt_state *a = make(1, 12, 0);
    struct crdt_state *b = make(2, 12, 0);
    observe(a, 1, 40, 1);
    observe(b, 2, 40, 2);
    (void)states_replica(b, 9);
    struct buf message[3] = {{0}};
    struct crdt_reconciled r;
    assert_int_equal(crdt_state_summary(a, &message[0]), 0);
    assert_int_equal(crdt_state_message(b, buf_slice(&message[0]), true, &message[1], &r), 0);
    assert_int_equal(crdt_state_message(a, buf_slice(&message[1]), true, &message[2], &r), 0);
    assert_true(message[2].len > 0);
    struct prng p;
    prng_seed(&p, 3);
    for (unsigned m = 0; m < 3; m++) {
        const uint8_t *bytes = (const uint8_t *)message[m].at;
        for (size_t cut = 0; cut < message[m].len; cut += 1 + cut / 60)
            try_message(b, bytes, cut);
        uint8_t *flipped = malloc(message[m].len + 1);
        assert_non_null(flipped);
        for (unsigned i = 0; i < 300; i++) {
            memcpy(flipped, bytes, message[m].len);
            for (unsigned n = 0; n < 1 + i % 3; n++)
                flipped[prng_below(&p, i < 100 ? 20 : message[m].len)] ^=
                    (uint8_t)(1 << prng_below(&p, 8));
            try_message(b, flipped, message[m].len);
        }
        free(flipped);
        buf_free(&message[m]);
    }
    uint8_t noise[2000];
    for (unsigned i = 0; i < 2000; i++) {
        for (unsigned n = 0; n < sizeof noise; n++)
            noise[n] = (uint8_t)prng_next(&p);
        noise[0] = (uint8_t)(i % 9);
        try_message(b, noise, prng_below(&p, sizeof noise));
    }
    destroy(a, b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_states_need_one_packet),
        cmocka_unit_test(test_differences_of_any_number_are_repaired_both_ways),
        cmocka_unit_test(test_a_thousand_differences_cost_some_25_kb),
        cmocka_unit_test(test_too_many_differences_make_both_take_snapshots),
        cmocka_unit_test(test_rows_beyond_a_full_message_follow_in_later_rounds),
        cmocka_unit_test(test_a_higher_floor_ends_the_exchange),
        cmocka_unit_test(test_entries_in_a_span_cut_by_a_floor_are_repaired),
        cmocka_unit_test(test_two_floors_within_a_span_use_the_higher),
        cmocka_unit_test(test_repeated_requests_cause_a_single_walk),
        cmocka_unit_test(test_states_without_common_generations_are_not_equal),
        cmocka_unit_test(test_generations_kept_by_only_one_are_not_requested),
        cmocka_unit_test(test_sweeping_a_lost_cache_causes_no_snapshot),
        cmocka_unit_test(test_registry_and_reports_are_repaired),
        cmocka_unit_test(test_reports_keep_their_router_in_a_full_message),
        cmocka_unit_test(test_malformed_messages_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
