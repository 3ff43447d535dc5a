#include "crdt/reports.h"

#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "tests/lib/states.h"
#include "tests/lib/test.h"

struct world {
    struct crdt_registry *registry;
    struct crdt_reports *reports;
};

static struct world make(void)
{
    struct world w;
    assert_int_equal(crdt_registry_create(&w.registry, &(struct crdt_registry_config){.slots = 64}),
                     0);
    for (unsigned i = 0; i < 3; i++) {
        char name[2] = {(char)('a' + i), '\0'};
        bool news = false;
        struct crdt_registry_row row = {.name = slice_of_cstr(name)};
        assert_int_equal(crdt_registry_join(w.registry, &row, &news), i);
    }
    assert_int_equal(crdt_reports_create(&w.reports, w.registry, 1, 5), 0);
    crdt_reports_router(w.reports, 2, 10);
    crdt_reports_router(w.reports, 3, 20);
    return w;
}

static void destroy(struct world *w)
{
    crdt_reports_check(w->reports);
    crdt_reports_destroy(w->reports);
    crdt_registry_destroy(w->registry);
}

static struct crdt_report load(uint64_t router, uint64_t epoch, uint64_t seq, unsigned slot,
                               uint32_t requests)
{
    return (struct crdt_report){.router = router,
                                .epoch = epoch,
                                .seq = seq,
                                .slot = slot,
                                .kind = CRDT_REPORT_LOAD,
                                .value.load = {.requests = requests, .prefill_tokens = seq}};
}

static int join(struct world *w, struct crdt_report row)
{
    return crdt_reports_join(w->reports, &row);
}

static unsigned sum(struct world *w, unsigned slot)
{
    struct crdt_load l;
    crdt_reports_load_sum(w->reports, slot, &l);
    return l.requests;
}

static uint64_t digest(struct world *w)
{
    uint64_t loads;
    uint64_t others;
    crdt_reports_digest(w->reports, &loads, &others);
    return loads ^ others;
}

static void test_a_sum_has_all_figures_of_all_routers(void **state)
{
    (void)state;
    struct world w = make();
    struct crdt_report two = load(2, 10, 1, 0, 0);
    struct crdt_report three = load(3, 20, 1, 0, 0);
    two.value.load = (struct crdt_load){.requests = 1,
                                        .prefill_tokens = 2,
                                        .context_tokens = 3,
                                        .decoding_tokens = 4,
                                        .adapter_uses = 5};
    three.value.load = (struct crdt_load){.requests = 10,
                                          .prefill_tokens = 20,
                                          .context_tokens = 30,
                                          .decoding_tokens = 40,
                                          .adapter_uses = 50};
    assert_int_equal(join(&w, two), 1);
    assert_int_equal(join(&w, three), 1);
    struct crdt_load l;
    crdt_reports_load_sum(w.reports, 0, &l);
    assert_int_equal(l.requests, 11);
    assert_int_equal(l.prefill_tokens, 22);
    assert_int_equal(l.context_tokens, 33);
    assert_int_equal(l.decoding_tokens, 44);
    assert_int_equal(l.adapter_uses, 55);
    two = load(2, 10, 2, 0, 0);
    two.value.load = (struct crdt_load){.requests = 0};
    assert_int_equal(join(&w, two), 1);
    crdt_reports_load_sum(w.reports, 0, &l);
    assert_int_equal(l.requests, 10);
    assert_int_equal(l.prefill_tokens, 20);
    assert_int_equal(l.context_tokens, 30);
    assert_int_equal(l.decoding_tokens, 40);
    assert_int_equal(l.adapter_uses, 50);
    destroy(&w);
}

/* All orders of four rows of a router, each up to twice: the number determines the value, because
 * only the router itself writes the rows. */
static void test_rows_join_in_any_order_and_more_than_once(void **state)
{
    (void)state;
    uint64_t expected = 0;
    for (unsigned order = 0; order < 4 * 4 * 4 * 4 * 4 * 4; order++) {
        struct world w = make();
        unsigned seen = 0;
        for (unsigned step = 0, o = order; step < 6; step++, o /= 4) {
            unsigned seq = o % 4 + 1;
            seen |= 1u << seq;
            (void)join(&w, load(2, 10, seq, 0, seq * 7 % 5));
            crdt_reports_check(w.reports);
        }
        if (seen == 0x1e) {
            assert_int_equal(sum(&w, 0), 4 * 7 % 5);
            if (expected == 0)
                expected = digest(&w);
            assert_int_equal(digest(&w), expected);
        }
        destroy(&w);
    }
}

static void test_other_routers_loads_add_up_until_they_die(void **state)
{
    (void)state;
    struct world w = make();
    struct crdt_report own = load(0, 0, 0, 0, 100);
    crdt_reports_set(w.reports, &own);
    assert_int_equal(sum(&w, 0), 0); /* the router knows the present load better than such a row */
    assert_int_equal(join(&w, load(2, 10, 1, 0, 5)), 1);
    assert_int_equal(join(&w, load(3, 20, 1, 0, 7)), 1);
    assert_int_equal(join(&w, load(3, 20, 2, 1, 9)), 1);
    assert_int_equal(sum(&w, 0), 12);
    assert_int_equal(join(&w, load(3, 20, 3, 0, 1)), 1);
    assert_int_equal(sum(&w, 0), 6);
    uint64_t version = crdt_reports_load_version(w.reports);
    crdt_reports_router_gone(w.reports, 3);
    assert_int_equal(sum(&w, 0), 5);
    assert_int_equal(sum(&w, 1), 0);
    assert_true(crdt_reports_load_version(w.reports) > version);
    assert_int_equal(join(&w, load(3, 20, 4, 0, 1)), ERR_NOT_FOUND);
    destroy(&w);
}

static void test_a_new_epoch_drops_the_rows_of_the_old(void **state)
{
    (void)state;
    struct world w = make();
    (void)join(&w, load(2, 10, 500, 0, 5));
    assert_int_equal(join(&w, load(2, 9, 900, 0, 6)), ERR_STALE);
    assert_int_equal(join(&w, load(2, 11, 1, 0, 6)), ERR_NOT_FOUND); /* life 11 is unknown yet */
    crdt_reports_router(w.reports, 2, 11);
    assert_int_equal(sum(&w, 0), 0);
    assert_int_equal(join(&w, load(2, 10, 501, 0, 5)), ERR_STALE);
    assert_int_equal(join(&w, load(2, 11, 1, 0, 6)), 1);
    crdt_reports_router(w.reports, 2, 10);
    assert_int_equal(sum(&w, 0), 6);
    destroy(&w);
}

/* Only the router itself writes such rows. If others have a row unknown to the router, the router
 * publishes a newer row. */
static void test_own_rows_known_only_to_others_are_superseded(void **state)
{
    (void)state;
    struct world w = make();
    crdt_reports_epoch(w.reports, 5);
    assert_int_equal(join(&w, load(1, 4, 900, 0, 6)), ERR_NOT_FOUND); /* of an earlier life */
    assert_int_equal(join(&w, load(1, 6, 900, 0, 6)), ERR_NOT_FOUND);
    assert_false(crdt_reports_any_waiting(w.reports));
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(join(&w, load(1, 5, 9, 0, 6)), i == 0 ? 1 : ERR_NOT_FOUND);
    assert_int_equal(crdt_reports_waiting(w.reports, CRDT_REPORT_LOAD, 0), 0);
    struct crdt_report own;
    crdt_reports_own(w.reports, CRDT_REPORT_LOAD, 0, &own);
    assert_int_equal(own.value.load.requests, 0);
    crdt_reports_heard(w.reports, CRDT_REPORT_LOAD, 0, 10);
    assert_int_equal(join(&w, load(1, 5, 9, 0, 6)), ERR_NOT_FOUND);
    assert_false(crdt_reports_any_waiting(w.reports));
    destroy(&w);
}

static void test_a_forgotten_name_frees_its_reports(void **state)
{
    (void)state;
    struct world w = make();
    struct crdt_report row = load(2, 10, 1, 0, 6);
    row.later = SLICE("of a later version");
    assert_int_equal(join(&w, row), 1);
    crdt_reports_forget(w.reports, 0);
    assert_int_equal(sum(&w, 0), 0);
    destroy(&w); /* the leak checker sees all rows */
}

static void test_own_rows_are_published_once_per_epoch(void **state)
{
    (void)state;
    struct world w = make();
    crdt_reports_epoch(w.reports, 5);
    struct crdt_report row = load(0, 0, 0, 2, 0);
    crdt_reports_set(w.reports, &row);
    assert_false(crdt_reports_any_waiting(w.reports)); /* zero load is no news */
    row.value.load.requests = 3;
    crdt_reports_set(w.reports, &row);
    crdt_reports_set(w.reports, &row);
    assert_int_equal(crdt_reports_waiting(w.reports, CRDT_REPORT_LOAD, 0), 2);
    crdt_reports_heard(w.reports, CRDT_REPORT_LOAD, 2, 17);
    assert_false(crdt_reports_any_waiting(w.reports));
    struct crdt_report told;
    assert_true(crdt_reports_row(w.reports, 0, CRDT_REPORT_LOAD, 2, &told));
    assert_int_equal(told.seq, 17);
    assert_int_equal(told.epoch, 5);
    crdt_reports_epoch(w.reports, 6);
    assert_int_equal(crdt_reports_waiting(w.reports, CRDT_REPORT_LOAD, 0), 2);
    assert_false(crdt_reports_row(w.reports, 0, CRDT_REPORT_LOAD, 2, &told)); /* has no number */
    crdt_reports_check(w.reports);
    crdt_reports_heard(w.reports, CRDT_REPORT_LOAD, 2, 1);
    destroy(&w);
}

static bool count_rows(void *context, uint64_t router, const struct crdt_load *l,
                       const struct crdt_sight *s, const struct crdt_learned *e)
{
    unsigned *seen = context;
    seen[router] += (l != NULL) + 10 * (s != NULL) + 100 * (e != NULL);
    return true;
}

static void test_rows_of_one_replica_are_visited_by_router(void **state)
{
    (void)state;
    struct world w = make();
    (void)join(&w, load(2, 10, 1, 1, 5));
    (void)join(&w, (struct crdt_report){.router = 2,
                                        .epoch = 10,
                                        .seq = 1,
                                        .slot = 1,
                                        .kind = CRDT_REPORT_LEARNED,
                                        .value.learned.rate = 9});
    struct crdt_report own = {.slot = 1, .kind = CRDT_REPORT_SIGHT, .value.sight.health = 1};
    crdt_reports_set(w.reports, &own);
    unsigned seen[4] = {0};
    crdt_reports_each(w.reports, 1, count_rows, seen);
    assert_int_equal(seen[1], 10);
    assert_int_equal(seen[2], 101);
    assert_int_equal(seen[3], 0);
    destroy(&w);
}

/* When a gauge falls, the prefill was computed; but not when it falls because the router leaves. */
static void test_prefill_leaving_the_gauges_is_counted(void **state)
{
    (void)state;
    struct world w = make();
    struct crdt_report row = load(2, 10, 1, 0, 1);
    static const struct {
        uint64_t gauge, prefilled;
    } steps[] = {{700, 0}, {900, 0}, {200, 700}, {500, 700}, {0, 1200}, {300, 1200}};
    for (unsigned i = 0; i < ARRAY_LEN(steps); i++) {
        row.seq = i + 1;
        row.value.load.prefill_tokens = steps[i].gauge;
        assert_int_equal(join(&w, row), 1);
        assert_int_equal(crdt_reports_prefilled(w.reports, 0), steps[i].prefilled);
    }
    assert_int_equal(join(&w, row), 0);
    crdt_reports_router_gone(w.reports, 2);
    assert_int_equal(crdt_reports_prefilled(w.reports, 0), 1200);
    destroy(&w);
}

static void test_routers_are_bounded_and_claims_are_cut(void **state)
{
    (void)state;
    struct world w = make();
    for (uint64_t router = 4; router < 10; router++)
        crdt_reports_router(w.reports, router, 1);
    assert_int_equal(crdt_reports_routers(w.reports), 5);
    assert_int_equal(join(&w, load(5, 1, 1, 0, 1)), 1);
    assert_int_equal(join(&w, load(6, 1, 1, 0, 1)), ERR_NOT_FOUND);
    for (uint64_t router = 2; router < 6; router++)
        (void)join(&w, load(router, router == 2 ? 10 : router == 3 ? 20 : 1, 9, 0, UINT32_MAX));
    assert_int_equal(sum(&w, 0), 4u * CRDT_LOAD_REQUESTS_MAX);
    destroy(&w);
}

/* Bytes of a later version; the replica's slot gets another name (ASan looks for the bytes). */
static void test_later_bytes_are_freed_with_the_replica(void **state)
{
    (void)state;
    struct world w = make();
    struct crdt_report row = load(2, 10, 1, 1, 1);
    row.later = SLICE("later");
    assert_int_equal(join(&w, row), 1);
    crdt_reports_forget(w.reports, 1);
    crdt_reports_check(w.reports);
    row.seq = 2;
    assert_int_equal(join(&w, row), 1);
    destroy(&w);
}

/* The last fields of a sight have a single valid encoding. */
static void test_rejections_of_a_replica_survive_the_wire(void **state)
{
    (void)state;
    static const struct crdt_sight sights[] = {
        {.health = 1, .rejects = 0x100, .rejects_with = 401},
        {.health = 1, .rejects = UINT64_MAX},
        {.health = 1},
    };
    for (unsigned i = 0; i < ARRAY_LEN(sights); i++) {
        union crdt_report_value value = {.sight = sights[i]}, back;
        uint8_t bytes[CRDT_VALUE_BYTES_MAX];
        struct slice later;
        memset(&back, 0, sizeof back);
        struct wire_writer w = wire_writer_of(bytes, sizeof bytes);
        crdt_value_write(&w, CRDT_REPORT_SIGHT, &value, slice_of("", 0));
        struct wire_reader r = wire_reader_of(bytes, wire_written(&w));
        crdt_value_read(&r, CRDT_REPORT_SIGHT, &back, &later);
        assert_false(r.bad);
        assert_int_equal(later.len, 0);
        assert_true(back.sight.rejects == sights[i].rejects);
        assert_int_equal(back.sight.rejects_with, sights[i].rejects_with);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rejections_of_a_replica_survive_the_wire),
        cmocka_unit_test(test_a_sum_has_all_figures_of_all_routers),
        cmocka_unit_test(test_rows_join_in_any_order_and_more_than_once),
        cmocka_unit_test(test_other_routers_loads_add_up_until_they_die),
        cmocka_unit_test(test_a_new_epoch_drops_the_rows_of_the_old),
        cmocka_unit_test(test_own_rows_known_only_to_others_are_superseded),
        cmocka_unit_test(test_a_forgotten_name_frees_its_reports),
        cmocka_unit_test(test_own_rows_are_published_once_per_epoch),
        cmocka_unit_test(test_rows_of_one_replica_are_visited_by_router),
        cmocka_unit_test(test_prefill_leaving_the_gauges_is_counted),
        cmocka_unit_test(test_routers_are_bounded_and_claims_are_cut),
        cmocka_unit_test(test_later_bytes_are_freed_with_the_replica),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
