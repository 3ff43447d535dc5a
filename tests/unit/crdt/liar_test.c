/* A member of the cluster lies about the names of replicas: more names than fit, older than all
 * others, or added by an unknown operator. */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "crdt/registry.h"
#include "tests/lib/test.h"

enum { NOW = 100000, TTL = 160, NAMES_MAX = 128, LIAR = 9, HONEST = 8 };

static bool has_port(struct slice name)
{
    return slice_find(name, ':') < name.len;
}

static struct crdt_registry *make(uint64_t self)
{
    struct crdt_registry *r = NULL;
    assert_int_equal(crdt_registry_create(&r, &(struct crdt_registry_config){.slots = 256,
                                                                             .names_max = NAMES_MAX,
                                                                             .ttl_s = TTL,
                                                                             .now_s = NOW,
                                                                             .self = self,
                                                                             .is_name = has_port}),
                     0);
    return r;
}

static int tell(struct crdt_registry *r, const char *name, uint64_t told_by, uint32_t now)
{
    bool news = false;
    int at = crdt_registry_join(r,
                                &(struct crdt_registry_row){.name = slice_of_cstr(name),
                                                            .named = now,
                                                            .born = told_by == LIAR ? 1 : now,
                                                            .wish = CRDT_WISH_ADDED,
                                                            .wish_version = 1,
                                                            .told_by = told_by},
                                &news);
    crdt_registry_check(r);
    return at;
}

static void lie(struct crdt_registry *r, unsigned count, uint32_t now)
{
    char name[32];
    for (unsigned i = 0; i < count; i++) {
        (void)snprintf(name, sizeof name, "lie-%u:1", i);
        (void)tell(r, name, LIAR, now);
    }
}

static struct crdt_registry_stats stats_of(const struct crdt_registry *r)
{
    struct crdt_registry_stats stats = *crdt_registry_stats(r);
    return stats;
}

static void a_malformed_name_gets_no_row(void **state)
{
    (void)state;
    struct crdt_registry *r = make(1);
    assert_int_equal(tell(r, "\x1b[2Jjunk", LIAR, NOW), ERR_SYNTAX);
    assert_int_equal(crdt_registry_place_of(r, SLICE("\x1b[2Jjunk")), -1);
    uint64_t told_by = 0;
    assert_slice_equal(crdt_registry_no_name(r, &told_by), "\x1b[2Jjunk");
    assert_int_equal(told_by, LIAR);
    assert_int_equal(stats_of(r).no_names, 1);
    assert_int_equal(stats_of(r).names + stats_of(r).waiting, 0);
    assert_int_equal(crdt_registry_digest(r, 0), 0);
    crdt_registry_destroy(r);
}

/* The names come before the lies or after them, even when the rows are at their limit. */
static void configured_or_serving_names_are_not_displaced(void **state)
{
    (void)state;
    struct crdt_registry *r = make(1);
    bool news = false;
    int own = crdt_registry_name(r, SLICE("own:1"), true, &news);
    int serving = tell(r, "serving:1", HONEST, NOW);
    crdt_registry_seen(r, (unsigned)serving, true);
    lie(r, CRDT_ROWS_MAX + 10, NOW);
    assert_int_equal(stats_of(r).names, NAMES_MAX);
    assert_int_equal(crdt_registry_by_name(r, SLICE("own:1")), own);
    assert_int_equal(crdt_registry_by_name(r, SLICE("serving:1")), serving);
    assert_true(crdt_registry_name(r, SLICE("own-2:1"), true, &news) >= 0);
    assert_true(crdt_registry_name(r, SLICE("added:1"), false, &news) >= 0);
    int place = crdt_registry_place_of(r, SLICE("added:1"));
    assert_true(crdt_registry_wish(r, (unsigned)place, CRDT_WISH_ADDED));
    assert_true(crdt_registry_by_name(r, SLICE("added:1")) >= 0);
    crdt_registry_check(r);
    crdt_registry_destroy(r);
}

/* A router's names beyond the share give way to the names of a router with few. Names probed
 * without success give way to names never probed. */
static void one_routers_names_are_limited_to_its_share(void **state)
{
    (void)state;
    struct crdt_registry *r = make(1);
    lie(r, 2 * NAMES_MAX, NOW);
    int slot = tell(r, "honest:1", HONEST, NOW);
    assert_true(slot >= 0);
    assert_true(stats_of(r).waiting > 0);
    crdt_registry_seen(r, (unsigned)slot, false);
    assert_int_equal(crdt_registry_by_name(r, SLICE("honest:1")), -1); /* untried names go first */
    for (unsigned turn = 0; turn < 3; turn++) {
        for (unsigned i = 0; i < crdt_registry_count(r); i++)
            if (crdt_registry_has(r, i))
                crdt_registry_seen(r, i, false);
        crdt_registry_check(r);
    }
    assert_true(tell(r, "late:1", LIAR, NOW) >= 0);
    crdt_registry_destroy(r);
}

/* Three routers repeat their names to each other. */
static void unconfirmed_names_expire(void **state)
{
    (void)state;
    struct crdt_registry *r[3] = {make(1), make(2), make(3)};
    lie(r[0], 40, NOW);
    (void)tell(r[0], "serves:1", LIAR, NOW);
    for (uint32_t now = NOW + 1; now <= NOW + 4 * TTL; now++) {
        for (unsigned i = 0; i < 9; i++) {
            for (int at = -1; (at = crdt_registry_next(r[i / 3], at)) >= 0;) {
                struct crdt_registry_row row = crdt_registry_row(r[i / 3], (unsigned)at);
                bool news = false;
                DISCARD(crdt_registry_join(r[i % 3], &row, &news));
            }
        }
        for (unsigned i = 0; i < 3; i++) {
            crdt_registry_advance(r[i], now);
            int slot = crdt_registry_by_name(r[i], SLICE("serves:1"));
            if (i == 1) /* a single router seeing the replica up is enough */
                crdt_registry_seen(r[i], (unsigned)slot, true);
        }
        assert_int_equal(stats_of(r[0]).names, now - NOW <= TTL ? 41 : 1);
    }
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(stats_of(r[i]).names, 1);
        assert_true(crdt_registry_by_name(r[i], SLICE("serves:1")) >= 0);
        crdt_registry_destroy(r[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_malformed_name_gets_no_row),
        cmocka_unit_test(configured_or_serving_names_are_not_displaced),
        cmocka_unit_test(one_routers_names_are_limited_to_its_share),
        cmocka_unit_test(unconfirmed_names_expire),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
