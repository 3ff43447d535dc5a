/* Years of new and forgotten names of replicas, and reused slots. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/checkpoint.h"
#include "base/err.h"
#include "base/prng.h"
#include "crdt/record.h"
#include "crdt/state.h"
#include "tests/lib/state_help.h"
#include "tests/lib/states.h"
#include "tests/lib/test.h"

enum {
    TTL = CRDT_NAMES_TTL_S / 15,
    /* generations */ SKEW = 9,
    START = 1000,
    NODES = 3,
    DELTA_MAX = 1160
};

static struct chain chain;

static struct crdt_state *make(uint64_t self, unsigned slots, unsigned names_max)
{
    struct crdt_state_config config = {.index = {.bytes_max = 4 << 20,
                                                 .replicas_max = slots,
                                                 .ttl_generations = 240,
                                                 .generation = START,
                                                 .replicated = true},
                                       .self = self,
                                       .names_max = names_max};
    struct crdt_state *s = NULL;
    assert_int_equal(crdt_state_create(&s, &config), 0);
    crdt_state_epoch(s, 1);
    for (uint64_t router = 1; router <= NODES; router++)
        crdt_state_router(s, router, 1);
    return s;
}

static struct crdt_registry_stats stats_of(const struct crdt_state *s)
{
    struct crdt_registry_stats stats = *crdt_registry_stats(crdt_state_registry(s));
    return stats;
}

/* --- slots ---------------------------------------------------------------------------------- */

static unsigned match(struct crdt_state *s, unsigned slot)
{
    uint16_t lengths[64];
    uint32_t generations[64];
    crdt_index_match(crdt_state_index(s), &chain, NULL, slot + 1, lengths, generations);
    return lengths[slot];
}

/* Observations, reports and bindings of the old name do not pass to the new name, and no late
 * packet restores them. */
static void test_a_reused_slot_keeps_nothing_of_the_old_name(void **state)
{
    (void)state;
    struct crdt_state *s = make(1, 8, 0);
    int slot = state_replica(s, SLICE("old:80"));
    uint32_t now = START + TTL;
    state_advance(s, now); /* this name lives, and later names are younger than all floors below */
    states_prompt(&chain, 1, 20);
    assert_int_equal(crdt_state_observe(s, &chain, (unsigned)slot), 20);
    assert_int_equal(crdt_state_bind(s, 77, (unsigned)slot), 1);
    crdt_state_load(s, (unsigned)slot, &(struct crdt_load){.requests = 5});
    struct crdt_report theirs = {
        .router = 2, .epoch = 1, .seq = 9, .kind = CRDT_REPORT_LOAD, .value.load.requests = 4};
    uint8_t load[64];
    struct wire_writer w = wire_writer_of(load, sizeof load);
    uint64_t key = crdt_registry_at(crdt_state_registry(s), (unsigned)slot)->key;
    crdt_record_write_report(&w, key, &theirs, false);
    struct slice late_load = slice_of((const char *)load, wire_written(&w));
    const struct crdt_origin origin = {.router = 2, .epoch = 1, .seq = 9};
    assert_int_equal(crdt_state_apply(s, &origin, late_load), 0);
    uint8_t late[DELTA_MAX];
    size_t late_len = crdt_state_produce(s, 1, late, sizeof late);
    assert_true(late_len > 0);
    assert_int_equal(match(s, (unsigned)slot), 20);
    uint32_t rkey = crdt_registry_at(crdt_state_registry(s), (unsigned)slot)->rkey;

    state_advance(s, ++now);
    assert_false(crdt_registry_has(crdt_state_registry(s), (unsigned)slot));
    crdt_state_check(s);
    assert_int_equal(crdt_state_bound(s, 77), -1);
    assert_int_equal(crdt_state_observe(s, &chain, (unsigned)slot), ERR_NOT_FOUND);
    assert_int_equal(crdt_state_bind(s, 77, (unsigned)slot), ERR_NOT_FOUND);

    assert_int_equal(state_replica(s, SLICE("new:80")), slot);
    assert_int_equal(match(s, (unsigned)slot), 0);
    assert_int_equal(crdt_index_blocks_total(crdt_state_index(s), (unsigned)slot), 0);
    struct crdt_load sum;
    crdt_reports_load_sum(crdt_state_reports(s), (unsigned)slot, &sum);
    assert_int_equal(sum.requests, 0);
    struct crdt_origin own = {.router = 3, .epoch = 1, .seq = 1};
    assert_int_equal(crdt_state_apply(s, &own, slice_of((const char *)late, late_len)), 0);
    assert_int_equal(crdt_state_apply(s, &origin, late_load), 0);
    assert_int_equal(match(s, (unsigned)slot), 0);
    crdt_reports_load_sum(crdt_state_reports(s), (unsigned)slot, &sum);
    assert_int_equal(sum.requests, 0);
    crdt_state_check(s);

    /* The old name, named again, has the same rkey. Entries from before it was named again do not
     * count. */
    int again = state_replica(s, SLICE("old:80"));
    assert_true(again >= 0 && again != slot);
    assert_int_equal(crdt_registry_at(crdt_state_registry(s), (unsigned)again)->rkey, rkey);
    state_advance(s, now + 20);
    crdt_state_check(s);
    uint8_t bytes[256];
    uint64_t points[2] = {11, 12};
    w = wire_writer_of(bytes, sizeof bytes);
    assert_int_equal(crdt_record_write_run(&w, rkey, now - SKEW - 1, points, 2), 2);
    assert_int_equal(crdt_state_apply(s, &own, slice_of((const char *)bytes, wire_written(&w))), 0);
    assert_int_equal(crdt_index_blocks_total(crdt_state_index(s), (unsigned)again), 0);
    crdt_state_destroy(s);
}

/* The slot changes more often within a lap of the sweeper than there are incarnation numbers. */
static void test_a_slot_may_be_reused_within_a_sweepers_lap(void **state)
{
    (void)state;
    struct crdt_state *s = make(1, 1, 1);
    char name[16];
    uint32_t now = START;
    for (unsigned i = 0; i < 3 * TTL; i++) {
        snprintf(name, sizeof name, "pod-%u", i);
        assert_int_equal(state_replica(s, slice_of_cstr(name)), 0);
        states_prompt(&chain, i % 2, 30);
        assert_int_equal(match(s, 0), 0);
        assert_int_equal(crdt_state_observe(s, &chain, 0), 30);
        assert_int_equal(match(s, 0), 30);
        now += TTL + 1;
        state_advance(s, now);
        if (i % 16 == 0)
            crdt_state_check(s);
    }
    crdt_state_destroy(s);
}

/* --- a year --------------------------------------------------------------------------------- */

struct cluster {
    struct crdt_state *node[NODES];
    uint64_t seq[NODES];
    struct prng prng;
};

static void tell(struct cluster *c, unsigned from, unsigned loss_percent)
{
    uint8_t bytes[DELTA_MAX];
    size_t len;
    while ((len = crdt_state_produce(c->node[from], ++c->seq[from], bytes, sizeof bytes)) > 0) {
        const struct crdt_origin origin = {.router = from + 1, .epoch = 1, .seq = c->seq[from]};
        for (unsigned to = 0; to < NODES; to++)
            for (unsigned times = 0; to != from && times < 2; times++)
                if (prng_below(&c->prng, 100) >= (times == 0 ? loss_percent : 90))
                    assert_int_equal(
                        crdt_state_apply(c->node[to], &origin, slice_of((const char *)bytes, len)),
                        0);
    }
}

static bool are_equal(const struct cluster *c, uint32_t from)
{
    struct crdt_digest first;
    crdt_state_digest(c->node[0], from, &first);
    bool equal = true;
    for (unsigned i = 1; i < NODES; i++) {
        struct crdt_digest d;
        crdt_state_digest(c->node[i], from, &d);
        equal = equal && memcmp(&d, &first, sizeof d) == 0;
    }
    return equal;
}

/* 200 new names a day, each used for an hour or two. 1 or 2 of 3 routers name each; their packets
 * are lost now and then. Before the fix, 1,024 names were used up in five days. */
static void test_two_months_of_new_names_leave_the_tables_flat(void **state)
{
    (void)state;
    enum { DAYS = TEST_ROUNDS(60), A_DAY = 200, STEP = 29, LIVES = 14 }; /* a generation is 15 s */
    struct cluster c = {0};
    prng_seed(&c.prng, 3);
    for (unsigned i = 0; i < NODES; i++)
        c.node[i] = make(i + 1, 128, 64);
    char name[32];
    unsigned slots = 0;
    uint32_t now = START;
    for (unsigned n = 0; n < DAYS * A_DAY; n++) {
        now += STEP;
        for (unsigned i = 0; i < NODES; i++) {
            struct crdt_index *index = crdt_state_index(c.node[i]);
            struct crdt_index_stats stats;
            state_advance(c.node[i], now);
            crdt_index_stats(index, &stats);
            (void)crdt_index_sweep(index, (uint32_t)stats.buckets / 64); /* at high speed */
            snprintf(name, sizeof name, "10.%u.%u.%u:8000", n >> 16, n >> 8 & 255, n & 255);
            if ((n + i) % 3 == 0 || n % 2 == 0) {
                int slot = crdt_state_name(c.node[i], slice_of_cstr(name));
                assert_true(slot >= 0);
                crdt_state_sight(c.node[i], (unsigned)slot, &(struct crdt_sight){.health = 1});
                states_prompt(&chain, n, 3);
                assert_true(crdt_state_observe(c.node[i], &chain, (unsigned)slot) >= 0);
            }
            unsigned gone = n - LIVES;
            snprintf(name, sizeof name, "10.%u.%u.%u:8000", gone >> 16, gone >> 8 & 255,
                     gone & 255);
            crdt_state_unname(c.node[i], slice_of_cstr(name));
        }
        for (unsigned i = 0; i < NODES; i++)
            tell(&c, i, 5);
        for (unsigned i = 0; i < NODES; i++)
            (void)states_reconcile(c.node[i], c.node[(i + 1) % NODES], true);
        if (n == A_DAY)
            slots = crdt_registry_count(crdt_state_registry(c.node[0]));
        if (n % 500 != 499)
            continue;
        for (unsigned i = 0; i < NODES; i++)
            (void)states_reconcile(c.node[i], c.node[(i + 1) % NODES], true);
        assert_true(are_equal(&c, now - 230));
    }
    assert_in_range(slots, LIVES, LIVES + 6);
    for (unsigned i = 0; i < NODES; i++) {
        struct crdt_registry_stats stats = stats_of(c.node[i]);
        assert_in_range(crdt_registry_count(crdt_state_registry(c.node[i])), slots, slots + 2);
        assert_in_range(stats.names, LIVES, slots + 2);
        assert_int_equal(stats.waiting, 0);
        assert_int_equal(stats.refused, 0);
        assert_int_equal(stats.future, 0);
        assert_in_range(stats.forgotten, DAYS * A_DAY - 2 * LIVES, DAYS * A_DAY);
        crdt_state_check(c.node[i]);
        crdt_state_destroy(c.node[i]);
    }
}

/* --- agreeing ------------------------------------------------------------------------------- */

/* The floors of two routers differ for a moment. A row forgotten by a single router is not restored
 * by the other, and is no lasting difference. */
static void test_rows_below_the_higher_floor_are_not_compared(void **state)
{
    (void)state;
    struct crdt_state *a = make(1, 8, 0), *b = make(2, 8, 0);
    assert_int_equal(state_replica(a, SLICE("old:80")), 0);
    (void)states_reconcile(b, a, true);
    state_advance(a, START + 1);
    assert_int_equal(state_replica(a, SLICE("young:80")), 1);
    (void)states_reconcile(a, b, true); /* the router with the lower floor compares */
    assert_true(states_equal(a, b, START + 2));
    state_advance(a, START + TTL + 1); /* the other router reaches the same floor in a moment */
    assert_int_equal(stats_of(a).names, 1);
    assert_int_equal(stats_of(b).names, 2);
    for (unsigned i = 0; i < 3; i++) {
        (void)states_reconcile(a, b, true);
        (void)states_reconcile(b, a, true);
        assert_int_equal(stats_of(a).names, 1);
    }
    assert_int_equal(stats_of(a).late, 0); /* the row was not even sent */
    state_advance(b, START + TTL + 1);
    assert_true(states_equal(a, b, START + TTL + 2));
    crdt_state_destroy(a);
    crdt_state_destroy(b);
}

/* A router was paused for longer than names live. The router forgets a name still in use elsewhere,
 * and the reports, which the others still have. There is nothing to report any more, and zero makes
 * no row. Before the fix, nothing ever superseded the others' rows. */
static void test_a_router_that_forgot_a_name_supersedes_its_reports(void **state)
{
    (void)state;
    struct crdt_state *a = make(1, 8, 0), *b = make(2, 8, 0);
    unsigned slot = (unsigned)crdt_state_name(b, SLICE("long:80"));
    (void)states_reconcile(b, a, true);
    crdt_state_load(a, slot, &(struct crdt_load){.requests = 5});
    crdt_state_sight(a, slot, &(struct crdt_sight){.configured = true, .health = 1});
    crdt_state_learned(a, slot, &(struct crdt_learned){.rate = 1234});
    uint64_t seq = states_tell_nobody(a, 0);
    (void)states_reconcile(a, b, true);
    assert_true(states_equal(a, b, 0));

    for (uint32_t now = START; now <= START + TTL + 1; now++)
        state_advance(b, now); /* b repeats the name again and again */
    state_advance(a, START + TTL + 1);
    assert_int_equal(stats_of(a).names, 0);
    (void)states_reconcile(b, a, true);
    assert_int_equal(crdt_registry_by_name(crdt_state_registry(a), SLICE("long:80")), slot);
    for (unsigned i = 0; i < 3; i++) {
        (void)states_reconcile(i % 2 == 0 ? a : b, i % 2 == 0 ? b : a, true);
        seq = states_tell_nobody(a, seq);
    }
    assert_true(states_equal(a, b, START + TTL + 2));
    struct crdt_load sum;
    crdt_reports_load_sum(crdt_state_reports(b), slot, &sum);
    assert_int_equal(sum.requests, 0);
    crdt_state_check(a);
    crdt_state_destroy(a);
    crdt_state_destroy(b);
}

/* --- start times that become known ----------------------------------------------------------- */

enum { EARLY_MS = 15000 }; /* a generation, as set by make() */

static struct crdt_state *used_at(uint64_t cluster_ms, unsigned *slot)
{
    struct crdt_state *s = make(1, 8, 8);
    crdt_state_clock(s, cluster_ms);
    states_prompt(&chain, 1, 20);
    *slot = (unsigned)crdt_state_name(s, SLICE("a:1"));
    assert_true(crdt_state_observe(s, &chain, *slot) > 0);
    assert_int_equal(crdt_state_bind(s, 4711, *slot), 1);
    return s;
}

static bool is_kept(struct crdt_state *s, unsigned slot)
{
    crdt_state_observe_again(s);
    crdt_state_check(s);
    bool kept = match(s, slot) == chain.length;
    assert_int_equal(crdt_state_bound(s, 4711), kept ? (int)slot : -1);
    return kept;
}

/* The first start time renames the cache. Earlier observations stay if they came after the start of
 * the process. */
static void test_observations_before_a_known_start_time_stay(void **state)
{
    (void)state;
    const uint64_t now = (uint64_t)START * EARLY_MS + 7000;
    const uint64_t begin = now - CRDT_EARLY_SKEW_MS;
    unsigned slot;
    struct crdt_state *s = used_at(now, &slot);
    assert_true(crdt_state_restarted(s, slot, begin)); /* exact to the millisecond */
    assert_int_equal(match(s, slot), 0);
    assert_true(is_kept(s, slot));
    /* Reports use the new cache's name. */
    uint8_t delta[4096];
    struct crdt_state *other = make(2, 8, 8);
    crdt_state_clock(other, now);
    size_t len;
    for (uint64_t seq = 1; (len = crdt_state_produce(s, seq, delta, sizeof delta)) > 0; seq++)
        assert_int_equal(
            crdt_state_apply(other, &(struct crdt_origin){.router = 1, .epoch = 1, .seq = seq},
                             slice_of((const char *)delta, len)),
            0);
    assert_true(is_kept(other, 0));
    /* Only once: the next start time is a restart. */
    assert_true(crdt_state_restarted(s, slot, begin + 1));
    assert_false(is_kept(s, slot));
    crdt_state_destroy(other);
    crdt_state_destroy(s);

    s = used_at(now, &slot);
    assert_true(crdt_state_restarted(s, slot, begin + 1)); /* the process began later */
    assert_false(is_kept(s, slot));
    /* The clock was late, and is corrected. */
    crdt_state_clock(s, now + 500);
    crdt_state_clock_moved(s, 500);
    assert_true(is_kept(s, slot));
    crdt_state_destroy(s);

    s = used_at(now, &slot);
    crdt_state_clock_moved(s, -500); /* the clock was ahead */
    assert_true(crdt_state_restarted(s, slot, begin));
    assert_false(is_kept(s, slot));
    crdt_state_destroy(s);

    s = used_at(now, &slot);
    assert_true(crdt_state_restarted(s, slot, 0)); /* the cache was lost, */
    assert_true(crdt_state_restarted(s, slot, begin - 1000));
    assert_false(is_kept(s, slot));
    crdt_state_destroy(s);

    s = used_at(now, &slot);
    crdt_state_unname(s, SLICE("a:1"));
    crdt_state_clock(s, now + 2000 * (uint64_t)CRDT_NAMES_TTL_S); /* forgotten, and used again */
    assert_int_equal(crdt_state_name(s, SLICE("b:1")), slot);
    assert_true(crdt_state_restarted(s, slot, begin - 1000));
    assert_false(is_kept(s, slot));
    crdt_state_destroy(s);
}

/* Engines without a start time: the waiting observations are bounded, and the oldest go first. */
static void test_observations_without_a_start_time_are_bounded(void **state)
{
    (void)state;
    const uint64_t now = (uint64_t)START * EARLY_MS + 7000;
    unsigned slot;
    struct crdt_state *s = used_at(now, &slot);
    for (uint64_t i = 0; i < CRDT_EARLY_MAX; i++)
        assert_int_equal(crdt_state_bind(s, 1000000 + i, slot), 1);
    crdt_state_check(s);
    assert_true(crdt_state_restarted(s, slot, now - CRDT_EARLY_SKEW_MS));
    crdt_state_observe_again(s);
    assert_int_equal(match(s, slot), 0);
    assert_int_equal(crdt_state_bound(s, 4711), -1);
    for (uint64_t i = 0; i < CRDT_EARLY_MAX; i++)
        assert_int_equal(crdt_state_bound(s, 1000000 + i), slot);
    crdt_state_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_reused_slot_keeps_nothing_of_the_old_name),
        cmocka_unit_test(test_a_slot_may_be_reused_within_a_sweepers_lap),
        cmocka_unit_test(test_rows_below_the_higher_floor_are_not_compared),
        cmocka_unit_test(test_a_router_that_forgot_a_name_supersedes_its_reports),
        cmocka_unit_test(test_observations_before_a_known_start_time_stay),
        cmocka_unit_test(test_observations_without_a_start_time_are_bounded),
        cmocka_unit_test(test_two_months_of_new_names_leave_the_tables_flat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
