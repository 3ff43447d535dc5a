/* Marks of checkpoints from a reader of KV-cache events: their laws, and how they reach other
 * routers. */
#include "crdt/marks.h"

#include "base/checkpoint.h"
#include "base/prng.h"
#include "tests/lib/state_help.h"
#include "tests/lib/states.h"
#include "tests/lib/test.h"

enum { POINTS = 8, NOW = 1000 };

static struct chain chain;

static struct crdt_state *make(uint64_t self)
{
    return states_make(&(struct states_setting){.self = self, .now = NOW});
}

static bool held(struct crdt_state *s, unsigned slot, unsigned point)
{
    const struct chain_point *p = &chain.points[point];
    uint32_t generation = 0;
    struct crdt_index *x = crdt_state_index(s);
    return crdt_index_get(x, p->id, slot, p->code, &generation) == ERR_OK &&
           !crdt_index_is_gone(x, p->id, slot, generation);
}

static int gone(struct crdt_state *s, unsigned slot, unsigned point)
{
    return crdt_state_mark_gone(s, chain.points[point].id, chain.points[point].code, slot);
}

static int present(struct crdt_state *s, unsigned slot, unsigned point, uint32_t floor)
{
    return crdt_state_mark_present(s, chain.points[point].id, chain.points[point].code, slot,
                                   floor);
}

static struct crdt_state *with_prompt(uint64_t self, unsigned *slot)
{
    struct crdt_state *s = make(self);
    states_prompt(&chain, 1, POINTS);
    *slot = states_replica(s, 1);
    assert_int_equal(crdt_state_observe(s, &chain, *slot), POINTS);
    return s;
}

/* Sends every waiting delta to another router. */
static void tell(struct crdt_state *from, uint64_t self, struct crdt_state *to)
{
    static uint64_t seq;
    uint8_t bytes[1160];
    size_t len;
    while ((len = crdt_state_produce(from, ++seq, bytes, sizeof bytes)) > 0) {
        const struct crdt_origin origin = {.router = self, .epoch = 1, .seq = seq};
        assert_int_equal(crdt_state_apply(to, &origin, slice_of((const char *)bytes, len)), 0);
    }
}

static void test_gone_and_present_marks_alternate(void **state)
{
    (void)state;
    unsigned slot;
    struct crdt_state *s = with_prompt(1, &slot);
    assert_int_equal(present(s, slot, 3, 0), 0); /* present */
    assert_true(held(s, slot, 3));
    assert_int_equal(gone(s, slot, 3), 1);
    assert_int_equal(gone(s, slot, 3), 0);
    assert_false(held(s, slot, 3));
    assert_true(held(s, slot, 2));
    /* Used again in the same generation: an equal generation counts as gone. */
    DISCARD(crdt_state_observe(s, &chain, slot));
    assert_false(held(s, slot, 3));
    assert_int_equal(present(s, slot, 3, 0), 1);
    assert_int_equal(present(s, slot, 3, 0), 0);
    assert_true(held(s, slot, 3));
    for (unsigned i = 2; i < CRDT_WORDS; i += 2) {
        assert_int_equal(gone(s, slot, 3), 1);
        assert_int_equal(gone(s, slot, 3), 0);
        assert_false(held(s, slot, 3));
        assert_int_equal(present(s, slot, 3, 0), 1);
        assert_true(held(s, slot, 3));
    }
    assert_int_equal(gone(s, slot, 3), ERR_AGAIN); /* already published */
    state_advance(s, NOW + 1);
    assert_int_equal(gone(s, slot, 3), 1);
    assert_false(held(s, slot, 3));
    assert_int_equal(present(s, slot, 3, 0), 1);
    assert_true(held(s, slot, 3));
    state_advance(s, NOW + 3);
    assert_int_equal(gone(s, slot, 3), 1);
    assert_false(held(s, slot, 3));
    state_advance(s, NOW + 4);
    assert_int_equal(crdt_state_observe(s, &chain, slot), POINTS); /* computed again */
    assert_true(held(s, slot, 3));
    crdt_state_check(s);
    crdt_state_destroy(s);
}

static void test_marks_without_effect_are_not_published(void **state)
{
    (void)state;
    unsigned slot;
    struct crdt_state *s = with_prompt(1, &slot);
    (void)states_tell_nobody(s, 0);
    assert_int_equal(crdt_state_mark_gone(s, 4711, 0, slot), 0);
    assert_int_equal(crdt_state_mark_gone(s, chain.points[0].id, chain.points[0].code, 40),
                     ERR_NOT_FOUND);
    assert_int_equal(present(s, 40, 0, 0), ERR_NOT_FOUND);
    assert_int_equal(present(s, slot, 0, NOW), 0);
    assert_false(crdt_state_has_news(s));
    /* Entries older than the caller's floor are published again, though they were not reported
     * gone. Entries missing from the index are published, too. */
    state_advance(s, NOW + 2);
    assert_int_equal(present(s, slot, 0, NOW + 1), 1);
    assert_int_equal(present(s, slot, 0, NOW + 2), 0);
    assert_int_equal(present(s, slot, 0, NOW + 9), 1); /* counts as the next generation */
    assert_int_equal(present(s, slot, 0, NOW + 9), 0);
    assert_int_equal(crdt_state_mark_present(s, 4711, 0, slot, 0), 1);
    assert_true(crdt_state_has_news(s));
    crdt_state_check(s);
    crdt_state_destroy(s);
}

static void test_marks_are_published_and_have_no_weight(void **state)
{
    (void)state;
    unsigned slot, there;
    struct crdt_state *a = with_prompt(1, &slot);
    struct crdt_state *b = make(2);
    there = states_replica(b, 1);
    tell(a, 1, b);
    uint64_t blocks = crdt_index_blocks_total(crdt_state_index(a), slot);
    assert_int_equal(gone(a, slot, 5), 1);
    assert_int_equal(crdt_index_blocks_total(crdt_state_index(a), slot), blocks);
    tell(a, 1, b);
    assert_false(held(b, there, 5));
    assert_int_equal(present(b, there, 5, 0), 1);
    tell(b, 2, a);
    assert_true(held(a, slot, 5));
    assert_true(states_equal(a, b, 0));
    assert_true(crdt_state_restarted(a, slot, 0)); /* marks end with the cache */
    assert_int_equal(crdt_state_observe(a, &chain, slot), POINTS);
    assert_true(held(a, slot, 5));
    assert_int_equal(gone(a, slot, 5), 1);
    state_advance(a, NOW + 13); /* after the whole TTL both are forgotten */
    assert_int_equal(gone(a, slot, 5), 0);
    assert_int_equal(crdt_state_observe(a, &chain, slot), POINTS);
    assert_true(held(a, slot, 5));
    crdt_state_check(a);
    crdt_state_check(b);
    crdt_state_destroy(a);
    crdt_state_destroy(b);
}

/* --- laws ----------------------------------------------------------------------------------- */

static struct crdt_state *random_marks(struct prng *p, uint64_t self)
{
    struct crdt_state *s = make(self);
    for (unsigned i = 0; i < 60; i++) {
        unsigned slot = states_replica(s, (unsigned)prng_below(p, 3));
        unsigned point = (unsigned)prng_below(p, POINTS);
        state_advance(s, NOW + i / 10);
        states_prompt(&chain, 1, POINTS);
        int said;
        switch (prng_below(p, 4)) {
        case 0:
            said = crdt_state_observe(s, &chain, slot);
            break;
        case 1:
            said = present(s, slot, point, 0);
            break;
        default:
            said = gone(s, slot, point);
        }
        assert_true(said >= 0 || said == ERR_AGAIN);
    }
    return s;
}

static struct crdt_state *joined(const struct crdt_state *a, const struct crdt_state *b)
{
    struct crdt_state *s = make(99);
    state_advance(s, NOW + 6);
    states_join(s, a);
    states_join(s, b);
    return s;
}

/* Joined in any order, with garbage collected before or after, all routers have the same
 * entries. */
static void test_marks_join_in_any_order(void **state)
{
    (void)state;
    struct prng p;
    prng_seed(&p, 7);
    for (unsigned round = 0; round < TEST_ROUNDS(40); round++) {
        struct crdt_state *x = random_marks(&p, 1), *y = random_marks(&p, 2);
        struct crdt_state *xy = joined(x, y), *yx = joined(y, x);
        assert_true(states_equal(xy, yx, 0));
        uint32_t floor = NOW + (uint32_t)prng_below(&p, 7);
        crdt_index_floor_raise(crdt_state_index(xy), floor);
        crdt_index_floor_raise(crdt_state_index(x), floor);
        crdt_index_floor_raise(crdt_state_index(y), floor);
        struct crdt_state *cut = joined(y, x);
        assert_true(states_equal(xy, cut, floor));
        for (unsigned number = 0; number < 3; number++) {
            unsigned a = states_replica(xy, number), b = states_replica(cut, number),
                     whole = states_replica(yx, number);
            for (unsigned point = 0; point < POINTS; point++) {
                assert_int_equal(held(xy, a, point), held(cut, b, point));
                /* The floor removes entries, and restores none that was gone. */
                assert_true(held(yx, whole, point) || !held(xy, a, point));
            }
        }
        struct crdt_state *all[] = {x, y, xy, yx, cut};
        for (unsigned i = 0; i < 5; i++) {
            crdt_state_check(all[i]);
            crdt_state_destroy(all[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gone_and_present_marks_alternate),
        cmocka_unit_test(test_marks_without_effect_are_not_published),
        cmocka_unit_test(test_marks_are_published_and_have_no_weight),
        cmocka_unit_test(test_marks_join_in_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
