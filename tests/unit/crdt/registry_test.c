#include "crdt/registry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "tests/lib/test.h"

static struct crdt_registry *make(void)
{
    struct crdt_registry *r = NULL;
    assert_int_equal(crdt_registry_create(&r, 1024), 0);
    return r;
}

static int join(struct crdt_registry *r, const char *name, uint64_t started, uint32_t raises)
{
    bool news = false;
    return crdt_registry_join(
        r,
        &(struct crdt_registry_row){.name = slice_of_cstr(name), .incarnation = {started, raises}},
        &news);
}

/* --- the laws ------------------------------------------------------------------------------- */

enum { VALUES = 2 * 2 * 2 * 2 * 2 * 2 };

/* Every row of a small world: two names, two values of each field. */
static struct crdt_registry_row value(unsigned n)
{
    static const char *const names[] = {"a", "b"};
    return (struct crdt_registry_row){.name = slice_of_cstr(names[n & 1]),
                                      .incarnation = {.started = n >> 1 & 1, .raises = n >> 2 & 1},
                                      .wish_version = n >> 3 & 1,
                                      .wish = (enum crdt_wish)(n >> 4 & 1),
                                      .draining = n >> 5 & 1};
}

static uint64_t digest_after(const unsigned *values, unsigned count)
{
    struct crdt_registry *r = make();
    for (unsigned i = 0; i < count; i++) {
        struct crdt_registry_row row = value(values[i]);
        bool news = false;
        assert_true(crdt_registry_join(r, &row, &news) >= 0);
        uint64_t digest = crdt_registry_digest(r);
        assert_true(crdt_registry_join(r, &row, &news) >= 0);
        assert_false(news);
        assert_int_equal(crdt_registry_digest(r), digest);
    }
    uint64_t digest = crdt_registry_digest(r);
    crdt_registry_check(r);
    crdt_registry_destroy(r);
    return digest;
}

static void test_rows_join_in_any_order_and_more_than_once(void **state)
{
    (void)state;
    for (unsigned a = 0; a < VALUES; a++) {
        for (unsigned b = a; b < VALUES; b++) {
            uint64_t ab = digest_after((unsigned[]){a, b}, 2);
            assert_int_equal(digest_after((unsigned[]){b, a}, 2), ab);
            for (unsigned c = b; c < VALUES; c += 7) {
                uint64_t abc = digest_after((unsigned[]){a, b, c}, 3);
                assert_int_equal(digest_after((unsigned[]){c, a, b}, 3), abc);
                assert_int_equal(digest_after((unsigned[]){b, c, a, b}, 4), abc);
            }
        }
    }
}

static void test_the_digest_tells_every_two_values_apart(void **state)
{
    (void)state;
    uint64_t seen[VALUES];
    for (unsigned i = 0; i < VALUES; i++) {
        seen[i] = digest_after(&i, 1);
        for (unsigned k = 0; k < i; k++)
            assert_int_not_equal(seen[k], seen[i]);
    }
}

/* --- incarnations --------------------------------------------------------------------------- */

static void test_a_new_incarnation_is_a_new_rkey_and_the_old_one_is_unknown(void **state)
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
    /* Routers that notice the same start agree by themselves. */
    assert_true(crdt_registry_restarted(r, 0, 1700));
    assert_false(crdt_registry_restarted(r, 0, 1700));
    assert_false(crdt_registry_restarted(r, 0, 1600));
    assert_int_equal(crdt_registry_at(r, 0)->incarnation.raises, 0);
    crdt_registry_check(r);
    crdt_registry_destroy(r);
}

static void test_wishes_take_versions(void **state)
{
    (void)state;
    struct crdt_registry *r = make();
    (void)join(r, "engine", 0, 0);
    assert_true(crdt_registry_wish(r, 0, CRDT_WISH_REMOVED, true));
    assert_false(crdt_registry_wish(r, 0, CRDT_WISH_REMOVED, true));
    assert_true(crdt_registry_wish(r, 0, CRDT_WISH_NONE, false));
    assert_int_equal(crdt_registry_at(r, 0)->wish_version, 2);
    /* The greater version wins, though its value is the lesser. */
    bool news = false;
    struct crdt_registry_row late = {
        .name = SLICE("engine"), .wish_version = 1, .wish = CRDT_WISH_REMOVED, .draining = true};
    assert_int_equal(crdt_registry_join(r, &late, &news), 0);
    assert_false(news);
    assert_int_equal(crdt_registry_at(r, 0)->wish, CRDT_WISH_NONE);
    crdt_registry_destroy(r);
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

/* Two names with the same rkey after so many raises, found among many. */
static void find_collision(char one[32], char two[32], uint32_t raises)
{
    enum { NAMES = 200000 };
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

static void test_of_two_names_with_one_rkey_the_greater_is_raised(void **state)
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
        digest[order] = crdt_registry_digest(r);
        crdt_registry_destroy(r);
    }
    assert_int_equal(digest[0], digest[1]);
}

static void test_raising_goes_on_behind_the_greatest_number(void **state)
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
    uint64_t digest = crdt_registry_digest(r);
    (void)join(r, greater ? two : one, 0, UINT32_MAX); /* told again it is no news */
    assert_int_equal(crdt_registry_digest(r), digest);
    crdt_registry_destroy(r);
}

static void test_names_and_slots_are_bounded(void **state)
{
    (void)state;
    struct crdt_registry *r = NULL;
    assert_int_equal(crdt_registry_create(&r, 3), 0);
    char longest[CRDT_NAME_MAX + 2];
    memset(longest, 'x', sizeof longest);
    longest[CRDT_NAME_MAX + 1] = '\0';
    assert_int_equal(join(r, longest, 0, 0), ERR_RANGE);
    assert_int_equal(join(r, "", 0, 0), ERR_RANGE);
    longest[CRDT_NAME_MAX] = '\0';
    assert_int_equal(join(r, longest, 0, 0), 0);
    assert_int_equal(join(r, "b", 0, 0), 1);
    assert_int_equal(join(r, "c", 0, 0), 2);
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
        cmocka_unit_test(test_the_digest_tells_every_two_values_apart),
        cmocka_unit_test(test_a_new_incarnation_is_a_new_rkey_and_the_old_one_is_unknown),
        cmocka_unit_test(test_wishes_take_versions),
        cmocka_unit_test(test_of_two_names_with_one_rkey_the_greater_is_raised),
        cmocka_unit_test(test_raising_goes_on_behind_the_greatest_number),
        cmocka_unit_test(test_names_and_slots_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
