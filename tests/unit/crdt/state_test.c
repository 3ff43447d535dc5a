/* The laws of the product: states join by snapshot. The order of joining, repetition, and
 * collecting garbage before or after must make no difference. */
#include "crdt/state.h"

#include "base/hash.h"
#include "base/prng.h"
#include "tests/lib/state_help.h"
#include "tests/lib/states.h"
#include "tests/lib/test.h"

static struct chain chain;

static void free_all(struct crdt_state **s, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        crdt_state_check(s[i]);
        crdt_state_destroy(s[i]);
    }
}

static struct crdt_state *copy(const struct crdt_state *s)
{
    struct crdt_state *c = states_make(&(struct states_setting){.self = 99});
    states_join(c, s);
    return c;
}

/* --- small scopes, exhaustively ------------------------------------------------------------- */

enum { SMALL = 12, STEP = SMALL / TEST_ROUNDS(SMALL) };

/* Small states that differ in a thing or two, each of which is newer in some other state. */
static struct crdt_state *small(unsigned n)
{
    struct crdt_state *s = states_make(&(struct states_setting){.self = 1 + n % 3});
    if (n == 0)
        return s;
    unsigned slot = states_replica(s, n % 2);
    if (n == 3 || n == 4)
        (void)crdt_state_restarted(s, slot, 0);
    if (n == 5)
        (void)crdt_state_restarted(s, slot, 900);
    if (n == 6 || n == 7)
        DISCARD(crdt_state_wish(s, slot, n == 6 ? CRDT_WISH_ADDED : CRDT_WISH_REMOVED));
    if (n == 7)
        DISCARD(crdt_state_drain(s, slot, true));
    if (n >= 7 && n <= 9)
        state_advance(s, 1000 + n % 2);
    if (n % 4 != 1) {
        states_prompt(&chain, n % 3, 3);
        assert_int_equal(crdt_state_observe(s, &chain, slot), 3);
    }
    if (n >= 8)
        assert_int_equal(crdt_state_bind(s, n % 2, slot), 1);
    if (n >= 9)
        crdt_state_load(s, slot, &(struct crdt_load){.requests = n});
    if (n >= 11)
        crdt_state_sight(s, slot, &(struct crdt_sight){.health = (uint8_t)n});
    (void)states_tell_nobody(s, n); /* so that states of the same router have different numbers */
    return s;
}

static void test_small_states_join_in_any_order_and_more_than_once(void **state)
{
    (void)state;
    states_ttl = 3;
    states_bytes = 1 << 20;
    struct crdt_state *s[SMALL];
    for (unsigned i = 0; i < SMALL; i++)
        s[i] = small(i);
    for (unsigned a = 0; a < SMALL; a++) {
        for (unsigned b = 0; b < SMALL; b++) {
            struct crdt_state *ab = states_joined(s[a], s[b]);
            struct crdt_state *ba = states_joined(s[b], s[a]);
            assert_true(states_equal(ab, ba, 0));
            states_join(ba, s[a]);
            states_join(ba, ab);
            assert_true(states_equal(ab, ba, 0));
            for (unsigned c = (a + b) % STEP; c < SMALL; c += STEP) {
                struct crdt_state *bc = states_joined(s[b], s[c]);
                struct crdt_state *left = states_joined(ab, s[c]);
                struct crdt_state *right = states_joined(s[a], bc);
                assert_true(states_equal(left, right, 0));
                free_all((struct crdt_state *[]){bc, left, right}, 3);
            }
            free_all((struct crdt_state *[]){ab, ba}, 2);
        }
    }
    free_all(s, SMALL);
    states_ttl = 12;
    states_bytes = 8 << 20;
}

/* --- large ones, at random ------------------------------------------------------------------ */

static struct crdt_state *random_state(struct prng *p, uint64_t self)
{
    struct crdt_state *s = states_make(&(struct states_setting){.self = self, .now = 990});
    for (unsigned i = 0; i < 150; i++) {
        unsigned slot = states_replica(s, (unsigned)prng_below(p, 40));
        state_advance(s, 990 + (uint32_t)prng_below(p, 11));
        states_prompt(&chain, prng_below(p, 20), (unsigned)prng_below(p, 60));
        assert_true(crdt_state_observe(s, &chain, slot) >= 0);
        assert_true(crdt_state_bind(s, hash_mix(1 + prng_below(p, 50)), slot) >= 0);
        if (prng_below(p, 10) == 0)
            (void)crdt_state_restarted(s, slot, prng_below(p, 3));
        if (prng_below(p, 10) == 0)
            DISCARD(crdt_state_wish(s, slot, (enum crdt_wish)prng_below(p, 3)));
        if (prng_below(p, 10) == 0)
            DISCARD(crdt_state_drain(s, slot, prng_below(p, 2)));
        crdt_state_load(s, slot, &(struct crdt_load){.requests = (uint32_t)prng_below(p, 9)});
        crdt_state_learned(s, slot, &(struct crdt_learned){.rate = (uint32_t)prng_below(p, 9)});
    }
    state_advance(s, 1000);
    (void)states_tell_nobody(s, 0);
    return s;
}

static void test_large_states_join_in_any_order(void **state)
{
    (void)state;
    struct prng p;
    prng_seed(&p, 5);
    for (unsigned round = 0; round < 10; round++) {
        struct crdt_state *s[3];
        for (unsigned i = 0; i < 3; i++)
            s[i] = random_state(&p, i + 1);
        struct crdt_state *ab = states_joined(s[0], s[1]);
        struct crdt_state *bc = states_joined(s[1], s[2]);
        struct crdt_state *left = states_joined(ab, s[2]);
        struct crdt_state *right = states_joined(bc, s[0]);
        assert_true(states_equal(left, right, 0));
        assert_false(states_equal(left, ab, 0));
        states_join(right, ab);
        assert_true(states_equal(left, right, 0));
        free_all((struct crdt_state *[]){ab, bc, left, right}, 4);
        free_all(s, 3);
    }
}

/* --- garbage -------------------------------------------------------------------------------- */

/* floor(x join y) = floor(x) join floor(y); different floors give equal states above the greater
 * floor. */
static void test_raising_the_floor_commutes_with_joining(void **state)
{
    (void)state;
    struct prng p;
    prng_seed(&p, 6);
    struct crdt_state *x = random_state(&p, 1);
    struct crdt_state *y = random_state(&p, 2);
    for (uint32_t floor = 988; floor <= 1001; floor++) {
        struct crdt_state *after = states_joined(x, y);
        crdt_index_floor_raise(crdt_state_index(after), floor);
        struct crdt_state *fx = copy(x);
        struct crdt_state *fy = copy(y);
        crdt_index_floor_raise(crdt_state_index(fx), floor);
        struct crdt_state *half = states_joined(fx, fy);
        assert_true(states_equal(after, half, floor));
        crdt_index_floor_raise(crdt_state_index(fy), floor);
        struct crdt_state *before = states_joined(fx, fy);
        assert_true(states_equal(after, before, 0));
        free_all((struct crdt_state *[]){after, fx, fy, half, before}, 5);
    }
    free_all((struct crdt_state *[]){x, y}, 2);
}

/* A cache is forgotten before or after the observations are joined: either way they are gone. */
static void test_retiring_a_cache_commutes_with_joining(void **state)
{
    (void)state;
    struct prng p;
    prng_seed(&p, 8);
    struct crdt_state *x = random_state(&p, 1);
    struct crdt_state *y = random_state(&p, 2);
    for (unsigned number = 0; number < 40; number += 3) {
        struct crdt_state *news = states_make(&(struct states_setting){.self = 3});
        (void)crdt_state_restarted(news, states_replica(news, number), 5000);
        struct crdt_state *after = states_joined(x, y);
        states_join(after, news);
        struct crdt_state *fx = states_joined(news, x);
        struct crdt_state *before = states_joined(fx, y);
        assert_true(states_equal(after, before, 0));
        unsigned slot = states_replica(after, number);
        assert_int_equal(crdt_index_blocks_total(crdt_state_index(after), slot), 0);
        free_all((struct crdt_state *[]){news, after, fx, before}, 4);
    }
    free_all((struct crdt_state *[]){x, y}, 2);
}

/* --- bindings ------------------------------------------------------------------------------- */

static void test_a_binding_names_the_newest_replica(void **state)
{
    (void)state;
    struct crdt_state *s = states_make(&(struct states_setting){.self = 1});
    unsigned a = states_replica(s, 1);
    unsigned b = states_replica(s, 2);
    assert_int_equal(crdt_state_bound(s, 5), -1);
    assert_int_equal(crdt_state_bind(s, 5, a), 1);
    assert_int_equal(crdt_state_bind(s, 5, a), 0);
    assert_int_equal(crdt_state_bound(s, 5), (int)a);
    state_advance(s, 1001);
    assert_int_equal(crdt_state_bind(s, 5, b), 1);
    assert_int_equal(crdt_state_bound(s, 5), (int)b);
    assert_true(crdt_state_restarted(s, b, 0));
    assert_int_equal(crdt_state_bound(s, 5), (int)a);
    state_advance(s, 1100);
    assert_int_equal(crdt_state_bound(s, 5), -1);
    crdt_state_check(s);
    crdt_state_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_states_join_in_any_order_and_more_than_once),
        cmocka_unit_test(test_large_states_join_in_any_order),
        cmocka_unit_test(test_raising_the_floor_commutes_with_joining),
        cmocka_unit_test(test_retiring_a_cache_commutes_with_joining),
        cmocka_unit_test(test_a_binding_names_the_newest_replica),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
