/* Tidings: delivered in order, bounded, part of no state. */
#include "crdt/tidings.h"

#include "base/prng.h"
#include "crdt/record.h"
#include "tests/lib/states.h"
#include "tests/lib/test.h"

static uint8_t body_of[CRDT_TIDING_MAX];

/* Body and length follow from the number. */
static struct slice body(unsigned number)
{
    size_t len = number * 7 % (CRDT_TIDING_MAX + 1);
    memset(body_of, (int)(number & 0xff), sizeof body_of);
    return slice_of((const char *)body_of, len);
}

static void test_the_ring_keeps_order_and_drops_the_oldest(void **state)
{
    (void)state;
    struct crdt_tidings t;
    assert_int_equal(crdt_tidings_init(&t), 0);
    struct crdt_tiding got;
    assert_false(crdt_tidings_peek(&t, &got));
    struct prng p;
    prng_seed(&p, 3);
    unsigned pushed = 0, next = 0;
    for (unsigned round = 0; round < 60; round++) {
        for (unsigned i = (unsigned)prng_below(&p, 150); i > 0; i--, pushed++)
            crdt_tidings_push(&t, (uint8_t)pushed, body(pushed));
        crdt_tidings_check(&t);
        for (unsigned i = (unsigned)prng_below(&p, 100); i > 0; i--) {
            if (!crdt_tidings_peek(&t, &got))
                break;
            unsigned number = next < t.dropped ? (unsigned)t.dropped : next;
            number += (uint8_t)(got.kind - number); /* only the oldest were dropped */
            assert_true(number >= next && number < pushed);
            struct slice sent = body(number);
            assert_int_equal(got.len, sent.len);
            assert_memory_equal(got.body, sent.at, sent.len);
            next = number + 1;
            crdt_tidings_take(&t);
        }
        crdt_tidings_check(&t);
    }
    assert_true(t.dropped > 0);
    while (crdt_tidings_peek(&t, &got)) {
        crdt_tidings_take(&t);
        next++;
    }
    assert_int_equal(next, pushed);
    crdt_tidings_free(&t);
}

/* --- in deltas ------------------------------------------------------------------------------ */

struct heard {
    unsigned count;
    uint64_t bytes;
};

static void hear(void *context, uint64_t router, uint8_t kind, struct slice got)
{
    struct heard *h = context;
    assert_int_equal(router, 1);
    assert_int_equal(kind, (uint8_t)h->count);
    struct slice sent = body(h->count);
    assert_true(slice_equal(got, sent));
    h->count++;
    h->bytes += got.len;
}

static int apply(struct crdt_state *s, struct slice delta)
{
    const struct crdt_origin origin = {.router = 1, .epoch = 1, .seq = 1};
    return crdt_state_apply(s, &origin, delta);
}

static void test_tidings_follow_the_state_and_are_no_part_of_it(void **state)
{
    (void)state;
    struct crdt_state *a = states_make(&(struct states_setting){.self = 1});
    struct crdt_state *b = states_make(&(struct states_setting){.self = 2});
    struct chain chain;
    unsigned slot = states_replica(a, 1);
    struct heard h = {0};
    crdt_state_hear(b, hear, &h);
    states_prompt(&chain, 1, 100);
    for (unsigned i = 0; i < 40; i++)
        crdt_state_tell(a, (uint8_t)i, body(i));
    assert_int_equal(crdt_state_observe(a, &chain, slot), 100);
    uint8_t bytes[CRDT_DELTA_MIN];
    uint64_t seq = 0;
    size_t len;
    while ((len = crdt_state_produce(a, ++seq, bytes, sizeof bytes)) > 0) {
        assert_int_equal(apply(b, slice_of((const char *)bytes, len)), 0);
        /* The part with equal values everywhere comes first. */
        assert_true(h.count == 0 || states_equal(a, b, 0));
    }
    assert_int_equal(h.count, 40);
    assert_false(crdt_state_has_news(a));
    struct crdt_state *c = states_joined(a, a);
    assert_true(states_equal(a, c, 0));
    crdt_state_tell(a, 40, body(40));
    assert_true(crdt_state_has_news(a));
    assert_true(states_equal(a, b, 0));
    struct crdt_state_stats out, in;
    crdt_state_stats(a, &out);
    crdt_state_stats(b, &in);
    assert_int_equal(out.tidings_out, 41);
    assert_int_equal(in.tidings_in, 40);
    assert_int_equal(out.tidings_dropped, 0);
    for (unsigned i = 0; i < 2000; i++)
        crdt_state_tell(a, 0, slice_of((const char *)body_of, sizeof body_of));
    crdt_state_check(a);
    crdt_state_stats(a, &out);
    assert_true(out.tidings_dropped > 1000);
    crdt_state_destroy(a);
    crdt_state_destroy(b);
    crdt_state_destroy(c);
}

static void test_malformed_deltas_and_dumps_deliver_no_tidings(void **state)
{
    (void)state;
    struct crdt_state *s = states_make(&(struct states_setting){.self = 2});
    struct heard h = {0};
    crdt_state_hear(s, hear, &h);
    uint8_t bytes[64];
    struct wire_writer w = wire_writer_of(bytes, sizeof bytes);
    assert_true(crdt_record_write_tiding(&w, 0, body(0)));
    assert_true(crdt_record_write_tiding(&w, 1, body(1)));
    struct slice whole = slice_of((const char *)bytes, wire_written(&w));
    for (size_t len = 1; len < whole.len; len++) {
        if (len != 3)
            assert_int_equal(apply(s, slice_of(whole.at, len)), ERR_SYNTAX);
    }
    assert_int_equal(apply(s, SLICE("\x0a\x00")), ERR_SYNTAX); /* without a kind */
    assert_int_equal(h.count, 0);
    assert_int_equal(crdt_snapshot_apply(s, whole), 0);
    struct crdt_state_stats stats;
    crdt_state_stats(s, &stats);
    assert_int_equal(stats.records_skipped, 2);
    assert_int_equal(h.count, 0);
    assert_int_equal(apply(s, whole), 0);
    assert_int_equal(h.count, 2);
    crdt_state_hear(s, NULL, NULL);
    assert_int_equal(apply(s, whole), 0);
    crdt_state_destroy(s);
}

static void test_a_record_too_long_leaves_the_writer_unchanged(void **state)
{
    (void)state;
    uint8_t bytes[100];
    for (size_t room = 0; room <= sizeof bytes; room++) {
        struct wire_writer w = wire_writer_of(bytes, room);
        bool fits = crdt_record_write_tiding(&w, 9, slice_of((const char *)body_of, 90));
        assert_int_equal(fits, room >= 93);
        assert_int_equal(wire_written(&w), fits ? 93 : 0);
        assert_false(w.bad);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_ring_keeps_order_and_drops_the_oldest),
        cmocka_unit_test(test_tidings_follow_the_state_and_are_no_part_of_it),
        cmocka_unit_test(test_malformed_deltas_and_dumps_deliver_no_tidings),
        cmocka_unit_test(test_a_record_too_long_leaves_the_writer_unchanged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
