#include "crdt/registry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "tests/lib/test.h"

enum { NOW = 1000, TTL = 16, FLOOR = NOW - TTL };

static struct crdt_registry *make_of(const struct crdt_registry_config *config)
{
    struct crdt_registry *r = NULL;
    assert_int_equal(crdt_registry_create(&r, config), 0);
    return r;
}

static struct crdt_registry *make(void)
{
    return make_of(&(struct crdt_registry_config){.slots = 1024, .ttl_s = TTL, .now_s = NOW});
}

static int join(struct crdt_registry *r, const char *name, uint64_t started, uint32_t raises)
{
    bool news = false;
    return crdt_registry_join(r,
                              &(struct crdt_registry_row){.name = slice_of_cstr(name),
                                                          .named = NOW,
                                                          .born = NOW,
                                                          .incarnation = {started, raises}},
                              &news);
}

static int join_named(struct crdt_registry *r, const char *name, uint32_t named, uint32_t born)
{
    bool news = false;
    return crdt_registry_join(
        r, &(struct crdt_registry_row){.name = slice_of_cstr(name), .named = named, .born = born},
        &news);
}

static void join_all(struct crdt_registry *to, const struct crdt_registry *from)
{
    for (int at = -1; (at = crdt_registry_next(from, at)) >= 0;) {
        struct crdt_registry_row row = crdt_registry_row(from, (unsigned)at);
        bool news = false;
        DISCARD(crdt_registry_join(to, &row, &news)); /* some wait */
    }
    crdt_registry_check(to);
}

/* --- the laws ------------------------------------------------------------------------------- */

enum { VALUES = 1 << 9, STEP = 61 };

/* Row `n` of all possible rows with two names and two values of each field. */
static struct crdt_registry_row value(unsigned n)
{
    static const char *const names[] = {"a", "b"};
    return (struct crdt_registry_row){.name = slice_of_cstr(names[n & 1]),
                                      .named = NOW - (n >> 6 & 1),
                                      .born = NOW - 5 - (n >> 7 & 1),
                                      .incarnation = {.started = n >> 1 & 1, .raises = n >> 2 & 1},
                                      .wish_version = n >> 3 & 1,
                                      .drain_version = n >> 8 & 1,
                                      .wish = (enum crdt_wish)(n >> 4 & 1),
                                      .draining = n >> 5 & 1};
}

static uint64_t digest_after(const unsigned *values, unsigned count)
{
    /* A small registry: 30,000 are made, checked and freed. */
    struct crdt_registry *r = make_of(&(struct crdt_registry_config){
        .slots = 4, .names_max = 4, .rows_max = 8, .ttl_s = TTL, .now_s = NOW});
    for (unsigned i = 0; i < count; i++) {
        struct crdt_registry_row row = value(values[i]);
        bool news = false;
        assert_true(crdt_registry_join(r, &row, &news) >= 0);
        uint64_t digest = crdt_registry_digest(r, 0);
        assert_true(crdt_registry_join(r, &row, &news) >= 0);
        assert_false(news);
        assert_int_equal(crdt_registry_digest(r, 0), digest);
    }
    uint64_t digest = crdt_registry_digest(r, 0);
    crdt_registry_check(r);
    crdt_registry_destroy(r);
    return digest;
}

static void test_rows_join_in_any_order_and_more_than_once(void **state)
{
    (void)state;
    for (unsigned a = 0; a < TEST_ROUNDS(VALUES); a++) {
        for (unsigned b = a; b < VALUES; b += 31) {
            uint64_t ab = digest_after((unsigned[]){a, b}, 2);
            assert_int_equal(digest_after((unsigned[]){b, a}, 2), ab);
        }
        for (unsigned b = a % STEP; b < VALUES; b += STEP) {
            unsigned c = (a * 7 + b * 3) % VALUES;
            uint64_t abc = digest_after((unsigned[]){a, b, c}, 3);
            assert_int_equal(digest_after((unsigned[]){c, a, b}, 3), abc);
            assert_int_equal(digest_after((unsigned[]){b, c, a, b}, 4), abc);
        }
    }
}

static void test_different_values_have_different_digests(void **state)
{
    (void)state;
    uint64_t seen[VALUES];
    for (unsigned i = 0; i < VALUES; i++) {
        seen[i] = digest_after(&i, 1);
        for (unsigned k = 0; k < i; k++)
            assert_int_not_equal(seen[k], seen[i]);
    }
}

/* --- forgetting ----------------------------------------------------------------------------- */

/* Rows of three names; the floor may rise above each row. */
static struct crdt_registry_row mortal(unsigned n)
{
    static const char *const names[] = {"a", "b", "c"};
    uint32_t named = FLOOR + 1 + n / 3 % 4;
    return (struct crdt_registry_row){
        .name = slice_of_cstr(names[n % 3]), .named = named, .born = FLOOR};
}

/* Joins the rows in the given order; before row `rise` the floor rises by two. */
static struct crdt_registry *after_rise(const unsigned *values, unsigned count, unsigned rise,
                                        unsigned names_max)
{
    struct crdt_registry *r = make_of(&(struct crdt_registry_config){
        .slots = 4, .names_max = names_max, .rows_max = 8, .ttl_s = TTL, .now_s = NOW});
    for (unsigned i = 0; i <= count; i++) {
        if (i == rise)
            crdt_registry_advance(r, NOW + 2);
        struct crdt_registry_row row;
        bool news = false;
        if (i < count) {
            row = mortal(values[i]);
            DISCARD(crdt_registry_join(r, &row, &news)); /* the row may be below the floor */
        }
        crdt_registry_check(r);
    }
    return r;
}

/* For each order, and each place at which the floor rises. */
static void test_floors_commute_with_joins_at_the_limit_too(void **state)
{
    (void)state;
    for (unsigned n = 0; n < TEST_ROUNDS(12 * 12 * 12); n++) {
        if (n % 12 > n / 144)
            continue; /* the opposite order is tried as well */
        for (unsigned names_max = 1; names_max <= 3; names_max++) {
            const unsigned a = n % 12, b = n / 12 % 12, c = n / 144;
            const unsigned orders[][3] = {{a, b, c}, {c, b, a}, {b, a, c}};
            uint64_t digest = 0;
            int slots[3] = {0};
            for (unsigned run = 0; run < 12; run++) {
                struct crdt_registry *r = after_rise(orders[run % 3], 3, run / 3, names_max);
                bool first = run == 0;
                assert_true(first || crdt_registry_digest(r, 0) == digest);
                digest = crdt_registry_digest(r, 0);
                for (unsigned i = 0; i < 3; i++) {
                    bool has = crdt_registry_by_name(r, mortal(i).name) >= 0;
                    assert_true(first || slots[i] == has); /* the same names are in use */
                    slots[i] = has;
                }
                crdt_registry_destroy(r);
            }
        }
    }
}

static void test_an_unnamed_replica_is_forgotten_for_good(void **state)
{
    (void)state;
    struct crdt_registry *r = make();
    bool news = false;
    int kept = crdt_registry_name(r, SLICE("kept"), true, &news);
    int gone = crdt_registry_name(r, SLICE("gone"), false, &news);
    int added = crdt_registry_name(r, SLICE("added"), false, &news);
    assert_true(crdt_registry_wish(r, (unsigned)added, CRDT_WISH_ADDED));
    struct crdt_registry_row late = crdt_registry_row(r, (unsigned)gone);
    char name[8] = "gone";
    late.name = slice_of_cstr(name); /* the registry owns the row */
    uint64_t version = crdt_registry_version(r);
    for (uint32_t now = NOW + 1; now <= NOW + TTL; now++)
        crdt_registry_advance(r, now);
    assert_int_equal(crdt_registry_by_name(r, SLICE("gone")), gone);
    crdt_registry_advance(r, NOW + TTL + 1);
    assert_int_equal(crdt_registry_by_name(r, SLICE("gone")), -1);
    assert_false(crdt_registry_has(r, (unsigned)gone));
    assert_int_equal(crdt_registry_by_name(r, SLICE("kept")), kept);
    assert_int_equal(crdt_registry_by_name(r, SLICE("added")), added);
    assert_true(crdt_registry_version(r) > version);
    assert_true(crdt_registry_news(r) >= 0); /* repeated names are published */

    assert_int_equal(crdt_registry_join(r, &late, &news), ERR_STALE);
    assert_false(news);
    struct crdt_registry_stats stats = *crdt_registry_stats(r);
    assert_int_equal(stats.forgotten, 1);
    assert_int_equal(stats.late, 1);
    /* A forgotten name is new when named again; another name may have the old slot. */
    assert_true(crdt_registry_name(r, SLICE("new"), false, &news) == gone);
    assert_true(crdt_registry_name(r, SLICE("gone"), false, &news) >= 0);
    int slot = crdt_registry_by_name(r, SLICE("gone"));
    assert_int_equal(crdt_registry_at(r, (unsigned)slot)->born, NOW + TTL + 1);
    /* After a long sleep a router does not repeat names added and forgotten elsewhere meanwhile. */
    crdt_registry_advance(r, NOW + 10 * TTL);
    assert_int_equal(crdt_registry_by_name(r, SLICE("added")), -1);
    assert_true(crdt_registry_by_name(r, SLICE("kept")) >= 0);
    crdt_registry_unname(r, SLICE("kept"));
    crdt_registry_advance(r, NOW + 12 * TTL);
    assert_int_equal(crdt_registry_by_name(r, SLICE("kept")), -1);
    stats = *crdt_registry_stats(r);
    assert_int_equal(stats.names, 0);
    assert_int_equal(crdt_registry_digest(r, 0), 0);
    crdt_registry_check(r);
    crdt_registry_destroy(r);
}

/* A router with a late clock adds a replica: the name arrives here in the last second of the TTL.
 * All routers forgot the name. (Simulation, seed 206 of storm.) */
static void test_a_replica_added_by_a_late_clock_is_kept(void **state)
{
    (void)state;
    for (uint32_t slept = 1; slept <= 10; slept += 9) {
        struct crdt_registry *r = make();
        crdt_registry_advance(r, NOW + TTL);
        char name[] = "added";
        struct crdt_registry_row row = {.name = slice_of_cstr(name),
                                        .named = NOW,
                                        .born = NOW,
                                        .wish = CRDT_WISH_ADDED,
                                        .wish_version = 1};
        bool news = false;
        assert_int_equal(crdt_registry_join(r, &row, &news), 0);
        crdt_registry_advance(r, NOW + TTL + slept);
        assert_int_equal(crdt_registry_by_name(r, slice_of_cstr(name)), slept == 1 ? 0 : -1);
        crdt_registry_destroy(r);
    }
}

static void test_names_from_the_far_future_are_refused(void **state)
{
    (void)state;
    struct crdt_registry *r = make();
    assert_int_equal(join_named(r, "ahead", NOW + TTL / 8, NOW), 0);
    assert_int_equal(join_named(r, "far", NOW + TTL / 8 + 1, NOW), ERR_RANGE);
    assert_int_equal(join_named(r, "unborn", NOW, NOW + 1), ERR_RANGE);
    crdt_registry_destroy(r);
}

/* If several routers name a replica, the first router's repetition is enough. */
static void test_a_single_router_repeats_a_name(void **state)
{
    (void)state;
    enum { ROUTERS = 5, NAMES = 20, LONG = 64 };
    struct crdt_registry *r[ROUTERS];
    char name[16];
    bool news = false;
    for (unsigned i = 0; i < ROUTERS; i++) {
        r[i] = make_of(&(struct crdt_registry_config){
            .slots = 64, .ttl_s = LONG, .now_s = NOW, .self = i * 977 + 1});
        for (unsigned k = 0; k < NAMES; k++) {
            snprintf(name, sizeof name, "pod-%u", k);
            assert_int_equal(crdt_registry_name(r[i], slice_of_cstr(name), true, &news), k);
        }
    }
    unsigned sent = 0;
    for (uint32_t now = NOW + 1; now <= NOW + 4 * LONG; now++) {
        for (unsigned i = 0; i < ROUTERS; i++)
            crdt_registry_advance(r[i], now);
        for (unsigned i = 0; i < ROUTERS; i++) {
            for (int at; (at = crdt_registry_news(r[i])) >= 0; sent++) {
                struct crdt_registry_row row = crdt_registry_row(r[i], (unsigned)at);
                for (unsigned to = 0; to < ROUTERS; to++)
                    assert_int_equal(crdt_registry_join(r[to], &row, &news), at);
                crdt_registry_sent(r[i], (unsigned)at);
            }
        }
    }
    /* Each name is repeated after a good quarter of the TTL, not five times as often. */
    assert_in_range(sent, NAMES * 12, NAMES * 32);
    for (unsigned i = 1; i < ROUTERS; i++)
        assert_int_equal(crdt_registry_digest(r[i], 0), crdt_registry_digest(r[0], 0));
    for (unsigned i = 0; i < ROUTERS; i++) {
        crdt_registry_check(r[i]);
        crdt_registry_destroy(r[i]);
    }
}

/* --- the limit ------------------------------------------------------------------------------ */

static struct crdt_registry *make_small(void)
{
    return make_of(&(struct crdt_registry_config){
        .slots = 4, .names_max = 3, .rows_max = 6, .ttl_s = TTL, .skew_s = 8, .now_s = NOW});
}

/* Each half refused the other's last name, and the halves were never equal again. */
static void test_two_halves_at_the_limit_choose_the_same_names(void **state)
{
    (void)state;
    struct crdt_registry *half[2] = {make_small(), make_small()};
    for (unsigned i = 0; i < 2; i++) {
        assert_true(join_named(half[i], "one", NOW, NOW - 9) >= 0);
        assert_true(join_named(half[i], "two", NOW, NOW - 8) >= 0);
    }
    assert_true(join_named(half[0], "left", NOW, NOW - 2) >= 0);
    assert_true(join_named(half[1], "right", NOW, NOW - 3) >= 0);
    struct crdt_registry *both[2] = {make_small(), make_small()};
    for (unsigned i = 0; i < 2; i++) {
        join_all(both[i], half[i]);
        join_all(both[i], half[1 - i]);
        assert_true(crdt_registry_by_name(both[i], SLICE("right")) >= 0);
        assert_int_equal(crdt_registry_by_name(both[i], SLICE("left")), -1);
        assert_slice_equal(crdt_registry_waiting(both[i]), "left");
    }
    assert_int_equal(crdt_registry_digest(both[0], 0), crdt_registry_digest(both[1], 0));
    /* Once there is room, the name enters without another add. */
    for (unsigned i = 0; i < 2; i++) {
        crdt_registry_unname(both[i], SLICE("one"));
        assert_true(join_named(both[i], "two", NOW + 5, NOW) >= 0);
        assert_true(join_named(both[i], "right", NOW + 5, NOW) >= 0);
        assert_int_equal(join_named(both[i], "left", NOW + 5, NOW), ERR_AGAIN);
        crdt_registry_advance(both[i], NOW + TTL + 1);
        assert_int_equal(crdt_registry_by_name(both[i], SLICE("one")), -1);
        assert_true(crdt_registry_by_name(both[i], SLICE("left")) >= 0);
        assert_int_equal(crdt_registry_waiting(both[i]).len, 0);
        crdt_registry_check(both[i]);
        crdt_registry_destroy(both[i]);
        crdt_registry_destroy(half[i]);
    }
}

static void test_too_many_waiting_names_drop_the_greatest(void **state)
{
    (void)state;
    struct crdt_registry *r[2] = {make_small(), make_small()};
    char name[16];
    for (unsigned i = 0; i < 10; i++) {
        for (unsigned k = 0; k < 2; k++) {
            unsigned n = k == 0 ? i : 9 - i;
            snprintf(name, sizeof name, "n-%u", n);
            DISCARD(join_named(r[k], name, NOW, NOW - 1 - n * 7 % 10)); /* some names are refused */
            crdt_registry_check(r[k]);
        }
    }
    struct crdt_registry_stats stats = *crdt_registry_stats(r[0]);
    assert_int_equal(stats.names, 3);
    assert_int_equal(stats.waiting, 3);
    assert_true(stats.refused > 0);
    assert_int_equal(crdt_registry_digest(r[0], 0), crdt_registry_digest(r[1], 0));
    crdt_registry_destroy(r[0]);
    crdt_registry_destroy(r[1]);
}

static void test_a_busy_slot_is_not_reused(void **state)
{
    (void)state;
    struct crdt_registry *r = make_of(
        &(struct crdt_registry_config){.slots = 2, .names_max = 2, .ttl_s = TTL, .now_s = NOW});
    bool news = false;
    int slot = crdt_registry_name(r, SLICE("busy"), false, &news);
    crdt_registry_hold(r, (unsigned)slot, true);
    assert_int_equal(crdt_registry_name(r, SLICE("other"), true, &news), 1);
    crdt_registry_advance(r, NOW + TTL + 1);
    assert_false(crdt_registry_has(r, (unsigned)slot));
    assert_int_equal(crdt_registry_name(r, SLICE("next"), true, &news), ERR_AGAIN);
    crdt_registry_check(r);
    crdt_registry_hold(r, (unsigned)slot, false);
    assert_int_equal(crdt_registry_by_name(r, SLICE("next")), slot);
    crdt_registry_check(r);
    crdt_registry_destroy(r);
}

/* --- incarnations --------------------------------------------------------------------------- */

static void test_a_restart_gives_a_new_rkey_and_drops_the_old(void **state)
{
    (void)state;
    struct crdt_registry *r = make();
    int slot = join(r, "engine", 0, 0);
    uint32_t first = crdt_registry_at(r, 0)->rkey;
    assert_int_equal(slot, 0);
    assert_int_equal(crdt_registry_by_rkey(r, first), 0);
    assert_true(crdt_registry_restarted(r, 0, 0));
    uint32_t second = crdt_registry_at(r, 0)->rkey;
    assert_int_not_equal(first, second);
    assert_int_equal(crdt_registry_by_rkey(r, first), -1);
    assert_int_equal(crdt_registry_by_rkey(r, second), 0);
    /* Routers with the same start time agree by themselves. */
    assert_true(crdt_registry_restarted(r, 0, 1700));
    assert_false(crdt_registry_restarted(r, 0, 1700));
    assert_false(crdt_registry_restarted(r, 0, 1600));
    assert_int_equal(crdt_registry_at(r, 0)->incarnation.raises, 0);
    crdt_registry_check(r);
    crdt_registry_destroy(r);
}

static void test_the_wish_with_the_greater_version_wins(void **state)
{
    (void)state;
    struct crdt_registry *r = make();
    (void)join(r, "engine", 0, 0);
    assert_true(crdt_registry_wish(r, 0, CRDT_WISH_REMOVED));
    assert_false(crdt_registry_wish(r, 0, CRDT_WISH_REMOVED));
    assert_true(crdt_registry_wish(r, 0, CRDT_WISH_NONE));
    assert_int_equal(crdt_registry_at(r, 0)->wish_version, 2);
    assert_int_equal(crdt_registry_at(r, 0)->drain_version, 0);
    /* The greater version wins, though the value is less. */
    bool news = false;
    struct crdt_registry_row late = {.name = SLICE("engine"),
                                     .named = NOW,
                                     .born = NOW,
                                     .wish_version = 1,
                                     .wish = CRDT_WISH_REMOVED};
    assert_int_equal(crdt_registry_join(r, &late, &news), 0);
    assert_false(news);
    assert_int_equal(crdt_registry_at(r, 0)->wish, CRDT_WISH_NONE);
    crdt_registry_destroy(r);
}

/* Both were in the same register, and either the drain or the addition was lost. */
static void test_concurrent_drain_and_add_both_apply(void **state)
{
    (void)state;
    struct crdt_registry *r[2] = {make(), make()};
    for (unsigned i = 0; i < 2; i++)
        (void)join(r[i], "engine", 0, 0);
    assert_true(crdt_registry_drain(r[0], 0, true));
    assert_true(crdt_registry_wish(r[1], 0, CRDT_WISH_ADDED));
    join_all(r[0], r[1]);
    join_all(r[1], r[0]);
    for (unsigned i = 0; i < 2; i++) {
        assert_true(crdt_registry_at(r[i], 0)->draining);
        assert_int_equal(crdt_registry_at(r[i], 0)->wish, CRDT_WISH_ADDED);
    }
    assert_int_equal(crdt_registry_digest(r[0], 0), crdt_registry_digest(r[1], 0));
    crdt_registry_destroy(r[0]);
    crdt_registry_destroy(r[1]);
}

/* --- collisions ----------------------------------------------------------------------------- */

struct named {
    uint32_t rkey;
    unsigned number;
};

static int by_rkey(const void *a, const void *b)
{
    uint32_t x = ((const struct named *)a)->rkey;
    uint32_t y = ((const struct named *)b)->rkey;
    return (x > y) - (x < y);
}

/* Finds two names, among many, with the same rkey after `raises` raises. */
static void find_collision(char one[32], char two[32], uint32_t raises)
{
    enum { NAMES = 44000 }; /* the secret is fixed, so fewer names contain the first pairs */
    struct named *n = malloc(NAMES * sizeof *n);
    assert_non_null(n);
    struct crdt_registry *r = NULL;
    for (unsigned i = 0; i < NAMES; i++) {
        if (i % 1000 == 0) {
            crdt_registry_destroy(r);
            r = make();
        }
        snprintf(one, 32, "name-%u", i);
        int slot = join(r, one, 0, raises);
        n[i] = (struct named){crdt_registry_at(r, (unsigned)slot)->rkey, i};
    }
    crdt_registry_destroy(r);
    qsort(n, NAMES, sizeof *n, by_rkey);
    unsigned i = 1;
    while (i < NAMES && n[i].rkey != n[i - 1].rkey)
        i++;
    assert_true(i < NAMES);
    snprintf(one, 32, "name-%u", n[i - 1].number);
    snprintf(two, 32, "name-%u", n[i].number);
    free(n);
}

static void test_an_rkey_collision_raises_the_greater_name(void **state)
{
    (void)state;
    char one[32];
    char two[32];
    find_collision(one, two, 0);
    const char *greater = strcmp(one, two) > 0 ? one : two;
    uint64_t digest[2];
    for (unsigned order = 0; order < 2; order++) {
        struct crdt_registry *r = make();
        (void)join(r, order == 0 ? one : two, 0, 0);
        (void)join(r, order == 0 ? two : one, 0, 0);
        crdt_registry_check(r); /* rkeys are distinct */
        for (unsigned i = 0; i < 2; i++) {
            const struct crdt_replica *row = crdt_registry_at(r, i);
            assert_int_equal(row->incarnation.raises, strcmp(row->name, greater) == 0);
        }
        digest[order] = crdt_registry_digest(r, 0);
        crdt_registry_destroy(r);
    }
    assert_int_equal(digest[0], digest[1]);
}

static void test_raising_wraps_at_the_greatest_number(void **state)
{
    (void)state;
    char one[32];
    char two[32];
    find_collision(one, two, UINT32_MAX);
    struct crdt_registry *r = make();
    (void)join(r, one, 0, UINT32_MAX);
    (void)join(r, two, 0, UINT32_MAX);
    crdt_registry_check(r);
    unsigned greater = strcmp(one, two) < 0;
    assert_int_equal(crdt_registry_at(r, greater)->incarnation.started, 1);
    assert_int_equal(crdt_registry_at(r, greater)->incarnation.raises, 0);
    uint64_t digest = crdt_registry_digest(r, 0);
    (void)join(r, greater ? two : one, 0, UINT32_MAX); /* no news the second time */
    assert_int_equal(crdt_registry_digest(r, 0), digest);
    crdt_registry_destroy(r);
}

static void test_names_and_slots_are_bounded(void **state)
{
    (void)state;
    struct crdt_registry *r = make_of(
        &(struct crdt_registry_config){.slots = 3, .rows_max = 3, .ttl_s = TTL, .now_s = NOW});
    char longest[CRDT_NAME_MAX + 2];
    memset(longest, 'x', sizeof longest);
    longest[CRDT_NAME_MAX + 1] = '\0';
    assert_int_equal(join(r, longest, 0, 0), ERR_RANGE);
    assert_int_equal(join(r, "", 0, 0), ERR_RANGE);
    longest[CRDT_NAME_MAX] = '\0';
    assert_int_equal(join_named(r, longest, NOW, NOW - 1), 0);
    bool news = true;
    assert_int_equal(crdt_registry_name(r, slice_of(longest, CRDT_NAME_MAX), true, &news), 0);
    assert_false(news);
    assert_int_equal(crdt_registry_name(r, slice_of(longest, CRDT_NAME_MAX + 1), true, &news),
                     ERR_RANGE);
    assert_int_equal(join_named(r, "b", NOW, NOW - 1), 1);
    assert_int_equal(join_named(r, "c", NOW, NOW - 1), 2);
    assert_int_equal(join(r, "d", 0, 0), ERR_FULL);
    assert_int_equal(join(r, "c", 0, 1), 2);
    assert_int_equal(crdt_registry_by_name(r, SLICE("d")), -1);
    assert_int_equal(crdt_registry_by_name(r, SLICE("b")), 1);
    crdt_registry_check(r);
    crdt_registry_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_join_in_any_order_and_more_than_once),
        cmocka_unit_test(test_different_values_have_different_digests),
        cmocka_unit_test(test_a_restart_gives_a_new_rkey_and_drops_the_old),
        cmocka_unit_test(test_the_wish_with_the_greater_version_wins),
        cmocka_unit_test(test_concurrent_drain_and_add_both_apply),
        cmocka_unit_test(test_floors_commute_with_joins_at_the_limit_too),
        cmocka_unit_test(test_an_unnamed_replica_is_forgotten_for_good),
        cmocka_unit_test(test_a_replica_added_by_a_late_clock_is_kept),
        cmocka_unit_test(test_names_from_the_far_future_are_refused),
        cmocka_unit_test(test_a_single_router_repeats_a_name),
        cmocka_unit_test(test_two_halves_at_the_limit_choose_the_same_names),
        cmocka_unit_test(test_too_many_waiting_names_drop_the_greatest),
        cmocka_unit_test(test_a_busy_slot_is_not_reused),
        cmocka_unit_test(test_an_rkey_collision_raises_the_greater_name),
        cmocka_unit_test(test_raising_wraps_at_the_greatest_number),
        cmocka_unit_test(test_names_and_slots_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
