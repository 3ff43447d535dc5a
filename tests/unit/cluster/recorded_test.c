/* Recorded state from routers of each version (tests/unit/cluster/recorded/): every later build
 * must read the same values from the bytes. */
#include "tests/lib/test.h"

#include "base/err.h"
#include "crdt/classes.h"
#include "crdt/record.h"
#include "tests/lib/fuzz_state.h"
#include "tests/lib/recorded.h"

/* --- records --------------------------------------------------------------------------------- */

/* No field is 0: trailing zeros would not be sent. */
static const struct crdt_learned learned = {.cache_tokens = 400000,
                                            .prompt_tokens = 123456789012,
                                            .predicted_tokens = 98765432109,
                                            .told = 54321,
                                            .grown_ppm = 700000,
                                            .shrunk_ppm = 1300000,
                                            .believed_ppm = 912345,
                                            .believed_rkey = 0x7abcdef1,
                                            .rate = 8192,
                                            .rate_samples = 250,
                                            .step_base_ns = 9500000,
                                            .step_context_fs = 123456,
                                            .pace_samples = 127,
                                            .bytes_per_token_milli = 4096,
                                            .bytes_samples = 128,
                                            .scrapes = 321,
                                            .engine_started_ms = 1700000000126,
                                            .engine_running = 17,
                                            .engine_waiting = 5,
                                            .engine_usage_ppm = 430001,
                                            .engine_queries = 987654321,
                                            .engine_hits = 876543210,
                                            .engine_prompt = 987654322,
                                            .engine_generated = 12345678};

/* Router 1's state, with an example of every kind. */
static struct crdt_state *author(void)
{
    struct crdt_state *s = fuzz_state(1);
    assert_int_equal(crdt_state_wish(s, 1, CRDT_WISH_ADDED), 1);
    assert_int_equal(crdt_state_drain(s, 1, true), 1);
    assert_true(crdt_state_restarted(s, 2, 1700000000123));
    crdt_state_load(s, 0, &(struct crdt_load){7, 70000, 8000000, 900, 0, 0});
    crdt_state_sight(s, 1, &(struct crdt_sight){true, 2, 3, true, 11, 4, 0, 0, 0});
    crdt_state_learned(s, 2, &learned);
    assert_int_equal(crdt_state_poisoned(s, 0x1122334455667788, CRDT_POISON_SUSPECT, 1, 600), 1);
    assert_int_equal(crdt_state_poisoned(s, 0x1122334455667788, CRDT_POISON_SURE, 2, 3600), 1);
    return s;
}

static void record_deltas(struct recorded *out)
{
    struct crdt_state *s = author();
    uint8_t bytes[1160];
    size_t len;
    for (uint64_t seq = 1; (len = crdt_state_produce(s, seq, bytes, sizeof bytes)) > 0; seq++)
        recorded_add(out, slice_of((char *)bytes, len));
    crdt_state_destroy(s);
}

static void record_chunks(struct recorded *out)
{
    struct crdt_state *s = author();
    fuzz_tell(s);
    struct crdt_snapshot c;
    crdt_snapshot_begin(&c, 0);
    struct buf chunk = {0};
    while (crdt_snapshot_next(s, &c, &chunk) == 1) {
        if (chunk.len > 0)
            recorded_add(out, buf_slice(&chunk));
        buf_clear(&chunk);
    }
    buf_free(&chunk);
    crdt_state_destroy(s);
}

/* A summary, the following messages, and the rare sections. */
static void record_message(struct recorded *out)
{
    struct crdt_state *a = author(), *b = fuzz_state(2);
    fuzz_tell(a);
    fuzz_tell(b);
    struct buf message = {0}, summary = {0};
    assert_int_equal(crdt_state_summary(a, &message), 0);
    assert_int_equal(crdt_state_summary(b, &summary), 0);
    struct crdt_reconciled r;
    assert_int_equal(crdt_state_message(a, buf_slice(&summary), true, &message, &r), 0);
    uint8_t bytes[1024];
    struct crdt_section_writer w = {.w = wire_writer_of(bytes, sizeof bytes)};
    crdt_section_begin(&w, CRDT_SECTION_RECORDS);
    crdt_record_write_origin(&w.w, 1, 1);
    struct crdt_report load = {.kind = CRDT_REPORT_LOAD, .seq = 9, .value.load = {5, 6, 7, 8}};
    crdt_record_write_report(&w.w, crdt_registry_at(crdt_state_registry(a), 0)->key, &load, true);
    crdt_section_end(&w);
    crdt_section_begin(&w, CRDT_SECTION_WIDER);
    wire_write_u32(&w.w, 998);
    wire_write_u16(&w.w, 24);
    wire_write_u8(&w.w, 1);
    crdt_section_end(&w);
    crdt_section_begin(&w, CRDT_SECTION_TOO_MANY);
    crdt_section_end(&w);
    assert_false(w.w.bad);
    assert_int_equal(buf_append(&message, bytes, wire_written(&w.w)), 0);
    recorded_add(out, buf_slice(&message));
    buf_free(&message);
    buf_free(&summary);
    crdt_state_destroy(a);
    crdt_state_destroy(b);
}

/* --- reading --------------------------------------------------------------------------------- */

static bool check_reports(void *context, uint64_t router, const struct crdt_load *load,
                          const struct crdt_sight *sight, const struct crdt_learned *got)
{
    unsigned *seen = context;
    if (router != 1)
        return true;
    if (load != NULL && load->requests == 7 && load->prefill_tokens == 70000 &&
        load->context_tokens == 8000000 && load->decoding_tokens == 900)
        *seen |= 1;
    if (sight != NULL && sight->configured && sight->asleep && sight->health == 2 &&
        sight->engine == 3 && sight->breaker == 11 && sight->cured == 4)
        *seen |= 2;
#define SAME(width, name, when) &&got->name == learned.name
    if (got != NULL CRDT_LEARNED_FIELDS(SAME))
        *seen |= 4;
    return true;
}

/* Checks the known part of the author's state. `skipped`: records of kinds no longer in use. */
static void check_state(struct crdt_state *s, unsigned skipped)
{
    const struct crdt_registry *registry = crdt_state_registry(s);
    const struct crdt_replica *b = crdt_registry_at(registry, 1),
                              *c = crdt_registry_at(registry, 2);
    assert_string_equal(b->name, "b");
    assert_int_equal(b->wish, CRDT_WISH_ADDED);
    assert_true(b->draining);
    assert_string_equal(c->name, "c");
    assert_true(c->incarnation.started == 1700000000123 && c->incarnation.raises == 0);
    unsigned seen = 0;
    for (unsigned slot = 0; slot < 3; slot++)
        crdt_reports_each(crdt_state_reports(s), slot, check_reports, &seen);
    assert_int_equal(seen, 1 | 2 | 4);
    for (unsigned i = 0; i < 60; i++) {
        uint32_t generation = 0;
        assert_int_equal(crdt_index_get(crdt_state_index(s), hash_mix(1000 + i), 1,
                                        checkpoint_code(i), &generation),
                         0);
        assert_int_equal(generation, 1000);
    }
    assert_int_equal(crdt_state_bound(s, hash_mix(77)), 1);
    const struct crdt_poison_row *p = crdt_poison_find(crdt_state_poison(s), 0x1122334455667788);
    assert_non_null(p);
    assert_int_equal(p->level, CRDT_POISON_SURE);
    assert_int_equal(p->until, 1000 * 15 + 3600);
    assert_true(p->last == c->key && p->before == b->key);
    struct crdt_state_stats stats;
    crdt_state_stats(s, &stats);
    assert_int_equal(stats.records_skipped, skipped);
    assert_int_equal(stats.sections_skipped + stats.malformed, 0);
    crdt_state_check(s);
}

/* Everything this build writes was also recorded; kinds no longer in use may be missing. */
static void check_written(const struct recorded *now, const struct recorded *then)
{
    for (unsigned i = 0; i < now->count; i++) {
        unsigned k = 0;
        while (k < then->count && !slice_equal(recorded_item(now, i), recorded_item(then, k)))
            k++;
        assert_true(k < then->count);
    }
}

/* Splits a message into sections, except for the summary, which has digests of all classes. */
static void split(struct slice message, struct recorded *out)
{
    struct wire_reader r = wire_reader_of(message.at, message.len);
    for (struct crdt_section next; crdt_section_next(&r, &next);)
        if (next.kind != CRDT_SECTION_SUMMARY)
            recorded_add(out, slice_of(next.body.at - 5, next.body.len + 5)); /* with the head */
}

static void deltas_are_read(void **state)
{
    (void)state;
    struct recorded now = {0}, then;
    record_deltas(&now);
    recorded_update(&now, RECORDED_VERSION, "delta");
    for (unsigned version = 1; version <= RECORDED_VERSION; version++) {
        recorded_load(&then, version, "delta");
        struct crdt_state *s = fuzz_state(2);
        for (unsigned i = 0; i < then.count; i++)
            assert_int_equal(
                crdt_state_apply(s, &(struct crdt_origin){.router = 1, .epoch = 1, .seq = i + 1},
                                 recorded_item(&then, i)),
                0);
        check_state(s, 0);
        crdt_state_destroy(s);
        if (version == RECORDED_VERSION)
            check_written(&now, &then);
        recorded_free(&then);
    }
    recorded_free(&now);
}

static void chunks_are_read(void **state)
{
    (void)state;
    struct recorded now = {0}, then;
    record_chunks(&now);
    recorded_update(&now, RECORDED_VERSION, "chunk");
    for (unsigned version = 1; version <= RECORDED_VERSION; version++) {
        recorded_load(&then, version, "chunk");
        struct crdt_state *s = fuzz_state(2);
        for (unsigned i = 0; i < then.count; i++)
            assert_int_equal(crdt_snapshot_apply(s, recorded_item(&then, i)), 0);
        check_state(s, 1); /* version 1 also had engines' events */
        crdt_state_destroy(s);
        if (version == RECORDED_VERSION)
            check_written(&now, &then);
        recorded_free(&then);
    }
    recorded_free(&now);
}

static void messages_are_read(void **state)
{
    (void)state;
    struct recorded now = {0}, then;
    record_message(&now);
    recorded_update(&now, RECORDED_VERSION, "message");
    for (unsigned version = 1; version <= RECORDED_VERSION; version++) {
        recorded_load(&then, version, "message");
        struct slice message = recorded_item(&then, 0);
        unsigned kinds = 0;
        struct wire_reader sections = wire_reader_of(message.at, message.len);
        for (struct crdt_section next; crdt_section_next(&sections, &next);)
            kinds |= 1u << next.kind;
        assert_int_equal(kinds, (1u << CRDT_SECTION_KINDS) - 2); /* every section kind */
        struct crdt_state *s = fuzz_state(2);
        fuzz_tell(s);
        struct buf reply = {0};
        struct crdt_reconciled r;
        assert_int_equal(crdt_state_message(s, message, true, &reply, &r), 0);
        struct crdt_state_stats stats;
        crdt_state_stats(s, &stats);
        assert_int_equal(stats.sections_skipped, 1); /* version 1 also had engines' events */
        assert_true(r.summary && !r.equal && r.decoded && r.too_many);
        assert_int_equal(r.peer_now, 1000);
        assert_int_equal(r.peer_floor, 998);
        assert_int_equal(r.differences, 120); /* 60 only here and 60 only there */
        assert_int_equal(r.joined, 60);
        struct crdt_load sum;
        crdt_reports_load_sum(crdt_state_reports(s), 0, &sum);
        assert_int_equal(sum.requests, 5);
        assert_true(reply.len > 0);
        crdt_state_check(s);
        buf_free(&reply);
        crdt_state_destroy(s);
        if (version == RECORDED_VERSION) {
            struct recorded ours = {0}, theirs = {0};
            split(recorded_item(&now, 0), &ours);
            split(message, &theirs);
            check_written(&ours, &theirs);
            recorded_free(&ours);
            recorded_free(&theirs);
        }
        recorded_free(&then);
    }
    recorded_free(&now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deltas_are_read),
        cmocka_unit_test(chunks_are_read),
        cmocka_unit_test(messages_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
