#include "crdt/events.h"

#include <string.h>

#include "base/err.h"
#include "base/prng.h"
#include "tests/lib/states.h"
#include "tests/lib/test.h"

static struct crdt_events *make(uint64_t bytes)
{
    struct crdt_events *l = NULL;
    assert_int_equal(crdt_events_create(&l, 64, bytes), 0);
    return l;
}

/* The history of a cache: event v adds id v and, from 3 on, takes out id v - 2. */
static struct crdt_event event(uint32_t rkey, uint64_t version, uint64_t ids[2])
{
    ids[0] = version;
    ids[1] = version - 2;
    return (struct crdt_event){.rkey = rkey,
                               .version = version,
                               .added = &ids[0],
                               .added_count = 1,
                               .removed = &ids[1],
                               .removed_count = version >= 3};
}

static int append(struct crdt_events *l, uint32_t rkey, uint64_t version)
{
    uint64_t ids[2];
    struct crdt_event e = event(rkey, version, ids);
    return crdt_events_append(l, &e);
}

static void test_only_the_next_event_is_applied(void **state)
{
    (void)state;
    struct crdt_events *l = make(1 << 20);
    assert_int_equal(append(l, 7, 2), ERR_AGAIN);
    assert_int_equal(crdt_events_count(l), 0);
    assert_int_equal(append(l, 7, 1), 1);
    assert_int_equal(append(l, 7, 1), 0);
    assert_int_equal(append(l, 7, 3), ERR_AGAIN);
    assert_int_equal(append(l, 7, 2), 1);
    assert_int_equal(append(l, 7, 3), 1);
    assert_false(crdt_events_holds(l, 7, 1));
    assert_true(crdt_events_holds(l, 7, 2) && crdt_events_holds(l, 7, 3));
    crdt_events_check(l);
    crdt_events_retire(l, 7);
    assert_int_equal(crdt_events_count(l), 0);
    assert_int_equal(crdt_events_digest(l), 0);
    crdt_events_check(l);
    crdt_events_destroy(l);
}

static struct crdt_events *history(unsigned a, unsigned b)
{
    struct crdt_events *l = make(1 << 20);
    for (unsigned v = 1; v <= a; v++)
        assert_int_equal(append(l, 1, v), 1);
    for (unsigned v = 1; v <= b; v++)
        assert_int_equal(append(l, 2, v), 1);
    return l;
}

static void join(struct crdt_events *into, const struct crdt_events *from)
{
    uint64_t ids[CRDT_EVENTS_IDS_MAX];
    for (unsigned i = 0; i < crdt_events_count(from); i++) {
        struct crdt_events_head head = crdt_events_at(from, i);
        crdt_events_ids(from, i, ids);
        assert_true(crdt_events_join(into, head.rkey, head.version, ids, head.count) >= 0);
    }
    crdt_events_check(into);
}

static uint64_t joined(const unsigned *states, unsigned count)
{
    struct crdt_events *l = make(1 << 20);
    for (unsigned i = 0; i < count; i++) {
        struct crdt_events *one = history(states[i] / 5, states[i] % 5);
        join(l, one);
        crdt_events_destroy(one);
    }
    uint64_t digest = crdt_events_digest(l);
    assert_int_equal(crdt_events_conflicts(l), 0);
    crdt_events_destroy(l);
    return digest;
}

static void test_states_of_two_caches_join_in_any_order(void **state)
{
    (void)state;
    for (unsigned a = 0; a < 25; a++) {
        for (unsigned b = 0; b < 25; b++) {
            /* The join of two histories is the longer one, cache by cache. */
            unsigned most = (a / 5 > b / 5 ? a / 5 : b / 5) * 5 + (a % 5 > b % 5 ? a % 5 : b % 5);
            uint64_t both = joined((unsigned[]){a, b}, 2);
            assert_int_equal(both, joined(&most, 1));
            assert_int_equal(both, joined((unsigned[]){b, a, a}, 3));
            for (unsigned c = b % 3; c < 25; c += 3)
                assert_int_equal(joined((unsigned[]){a, b, c}, 3),
                                 joined((unsigned[]){c, b, a}, 3));
        }
    }
}

static void test_two_writers_of_one_version_agree_on_the_greater_and_are_counted(void **state)
{
    (void)state;
    uint64_t x[] = {1, 2, 3};
    uint64_t y[] = {4, 5};
    struct crdt_events *a = make(1 << 20);
    struct crdt_events *b = make(1 << 20);
    DISCARD(crdt_events_join(a, 9, 5, x, 3));
    DISCARD(crdt_events_join(a, 9, 5, y, 2));
    DISCARD(crdt_events_join(b, 9, 5, y, 2));
    DISCARD(crdt_events_join(b, 9, 5, x, 3));
    assert_int_equal(crdt_events_digest(a), crdt_events_digest(b));
    assert_int_equal(crdt_events_conflicts(a), 1);
    assert_int_equal(crdt_events_conflicts(b), 1);
    crdt_events_destroy(a);
    crdt_events_destroy(b);
}

static void test_memory_is_bounded_and_a_refusal_changes_nothing(void **state)
{
    (void)state;
    struct crdt_events *l = make(4096);
    uint64_t version = 0;
    int got;
    uint64_t id = 0;
    do {
        id++;
        got = crdt_events_append(
            l,
            &(struct crdt_event){.rkey = 1, .version = ++version, .added = &id, .added_count = 1});
        crdt_events_check(l);
    } while (got == 1);
    assert_int_equal(got, ERR_FULL);
    struct crdt_events_head head;
    assert_true(crdt_events_find(l, 1, &head));
    assert_int_equal(head.version, version - 1);
    assert_int_equal(head.count, version - 1);
    uint64_t many[600];
    for (unsigned i = 0; i < 600; i++)
        many[i] = 1000 + i;
    uint64_t digest = crdt_events_digest(l);
    assert_int_equal(crdt_events_join(l, 2, 1, many, 600), ERR_FULL);
    assert_int_equal(crdt_events_join(l, 2, 1, many, CRDT_EVENTS_IDS_MAX + 1), ERR_LIMIT);
    assert_int_equal(crdt_events_digest(l), digest);
    crdt_events_check(l);
    crdt_events_destroy(l);
}

static void test_a_random_history_is_what_a_set_would_hold(void **state)
{
    (void)state;
    struct crdt_events *l = make(1 << 20);
    bool model[512] = {false};
    struct prng p;
    prng_seed(&p, 11);
    for (unsigned v = 1; v <= 3000; v++) {
        uint64_t added[8];
        uint64_t removed[8];
        unsigned adds = (unsigned)prng_below(&p, 9);
        unsigned removes = (unsigned)prng_below(&p, 9);
        for (unsigned i = 0; i < adds; i++)
            model[added[i] = prng_below(&p, 512)] = true;
        for (unsigned i = 0; i < removes; i++)
            model[removed[i] = prng_below(&p, 512)] = false;
        assert_int_equal(
            crdt_events_append(l, &(struct crdt_event){3, v, added, adds, removed, removes}), 1);
        if (v % 100 != 0)
            continue;
        crdt_events_check(l);
        for (unsigned i = 0; i < 512; i++)
            assert_int_equal(crdt_events_holds(l, 3, i), model[i]);
    }
    crdt_events_destroy(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_the_next_event_is_applied),
        cmocka_unit_test(test_states_of_two_caches_join_in_any_order),
        cmocka_unit_test(test_two_writers_of_one_version_agree_on_the_greater_and_are_counted),
        cmocka_unit_test(test_memory_is_bounded_and_a_refusal_changes_nothing),
        cmocka_unit_test(test_a_random_history_is_what_a_set_would_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
