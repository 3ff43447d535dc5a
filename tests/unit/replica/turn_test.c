/* The order of routers at a replica, and the changes when routers come and go. */
#include "node/replica/turn.h"

#include "base/prng.h"
#include "tests/lib/test.h"

enum { ROUTERS = 9, REPLICAS = 64, NOBODY = ROUTERS };

static uint64_t routers[ROUTERS], replica;
static bool up[ROUTERS]; /* routers reporting the replica up */

/* The turn as router `self` computes it from the others' reports. */
static struct node_turn turn_of(unsigned self)
{
    struct node_turn t = {0};
    for (unsigned i = 0; i < ROUTERS; i++) {
        if (i != self)
            node_turn_add(&t, up[i], node_turn_rank(replica, routers[i]),
                          node_turn_rank(replica, routers[self]));
    }
    return t;
}

/* The only router with `place` others ahead. */
static unsigned at_place(unsigned place)
{
    unsigned found = NOBODY;
    for (unsigned i = 0; i < ROUTERS; i++) {
        if (!up[i] || turn_of(i).ahead != place)
            continue;
        assert_int_equal(found, NOBODY);
        found = i;
    }
    return found;
}

static unsigned count_up(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < ROUTERS; i++)
        count += up[i];
    return count;
}

static void the_next_router_moves_up(void **state)
{
    (void)state;
    struct prng p;
    prng_seed(&p, 74);
    for (unsigned i = 0; i < ROUTERS; i++)
        routers[i] = prng_next(&p);
    for (unsigned round = 0; round < 200; round++) {
        replica = prng_next(&p);
        for (unsigned i = 0; i < ROUTERS; i++)
            up[i] = prng_below(&p, 3) > 0;
        for (unsigned left = count_up(); left > 0; left--) {
            unsigned first = at_place(0), second = at_place(1);
            assert_int_not_equal(first, NOBODY); /* exactly 1 router */
            assert_int_equal(second == NOBODY, left == 1);
            assert_int_equal(turn_of(first).others, left - 1);
            up[first] = false; /* dies, leaves, or no longer sees the replica up */
            assert_int_equal(at_place(0), second);
            up[first] = true; /* and comes back */
            assert_int_equal(at_place(0), first);
            up[first] = false;
        }
    }
}

/* Each router has a part of the work. */
static void replicas_have_different_orders(void **state)
{
    (void)state;
    struct prng p;
    unsigned firsts[ROUTERS] = {0};
    prng_seed(&p, 75);
    for (unsigned i = 0; i < ROUTERS; i++) {
        routers[i] = prng_next(&p);
        up[i] = true;
    }
    for (unsigned i = 0; i < REPLICAS; i++) {
        replica = prng_next(&p);
        firsts[at_place(0)]++;
    }
    for (unsigned i = 0; i < ROUTERS; i++)
        assert_in_range(firsts[i], 1, REPLICAS / 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_router_moves_up),
        cmocka_unit_test(replicas_have_different_orders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
