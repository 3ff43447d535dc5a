#include "node/replica/adapters.h"

#include <math.h>

#include "tests/lib/test.h"

enum { K = 3 };

static struct node_adapters *make(unsigned slots)
{
    struct node_adapters *a;
    assert_int_equal(node_adapters_create(&a), ERR_OK);
    node_adapters_slots(a, K, slots);
    return a;
}

static bool held(const struct node_adapters *a, uint32_t adapter)
{
    return !node_adapters_need(a, K, adapter, 0).loads;
}

/* A request for an adapter comes and goes. */
static void once(struct node_adapters *a, uint32_t adapter, uint64_t now_ms)
{
    node_adapters_asked(a, adapter, now_ms);
    node_adapters_use(a, K, adapter, now_ms);
    node_adapters_release(a, K, adapter);
}

static void the_least_recently_used_adapter_is_evicted(void **state)
{
    (void)state;
    struct node_adapters *a = make(2);
    once(a, 1, 10);
    once(a, 2, 20);
    once(a, 1, 30);
    once(a, 3, 40);
    assert_true(held(a, 1) && !held(a, 2) && held(a, 3));
    node_adapters_seen(a, K, 4, 35); /* at another router, before our last */
    assert_true(!held(a, 1) && held(a, 3) && held(a, 4));
    node_adapters_seen(a, K, 5, 20); /* too long ago: evicted since */
    assert_false(held(a, 5));
    assert_int_equal(node_adapters_held(a, K), 2);
    node_adapters_forget(a, K);
    assert_false(held(a, 3));
    assert_int_equal(node_adapters_slots_of(a, K), 2);
    node_adapters_leave(a, K);
    assert_int_equal(node_adapters_slots_of(a, K), NODE_ADAPTER_SLOTS);
    node_adapters_check(a);
    node_adapters_destroy(a);
}

static void an_adapter_in_use_is_not_evicted(void **state)
{
    (void)state;
    struct node_adapters *a = make(2);
    node_adapters_use(a, K, 1, 10);
    node_adapters_use(a, K, 1, 15);
    once(a, 2, 20);
    once(a, 3, 30);
    assert_true(held(a, 1) && !held(a, 2));
    node_adapters_release(a, K, 1);
    node_adapters_use(a, K, 3, 40);
    assert_true(node_adapters_need(a, K, 4, 50).waits); /* all slots are in use */
    node_adapters_release(a, K, 1);
    assert_false(node_adapters_need(a, K, 4, 50).waits);
    node_adapters_use(a, K, 4, 60);
    assert_true(!held(a, 1) && held(a, 3) && held(a, 4));
    node_adapters_use(a, K, 5, 70); /* more than the slots, so the engine lets them wait */
    node_adapters_release(a, K, 3);
    node_adapters_release(a, K, 4);
    node_adapters_release(a, K, 5);
    node_adapters_check(a);
    node_adapters_destroy(a);
}

/* If the engine turns out to have fewer slots, an adapter in use is removed, too. */
static void the_engine_reports_its_adapter_slots(void **state)
{
    (void)state;
    struct node_adapters *a = make(0);
    for (uint32_t i = 1; i <= 100; i++)
        once(a, i, i);
    assert_int_equal(node_adapters_held(a, K), NODE_ADAPTER_SLOTS);
    node_adapters_slots(a, K, 4);
    assert_int_equal(node_adapters_held(a, K), 4);
    assert_true(held(a, 97) && !held(a, 96));
    node_adapters_slots(a, K, 1u << 20);
    for (uint32_t i = 1; i <= 1000; i++)
        once(a, i, 100 + i);
    assert_int_equal(node_adapters_held(a, K), NODE_ADAPTER_SLOTS_MAX);
    node_adapters_check(a);
    node_adapters_destroy(a);
}

/* Two are requested often, many once: with two slots those two are popular. */
static void popular_adapters_keep_their_slots(void **state)
{
    (void)state;
    struct node_adapters *a = make(2);
    uint64_t now_ms = 1000;
    for (uint32_t i = 0; i < 50; i++) {
        once(a, 1, now_ms += 10);
        once(a, 2, now_ms += 10);
        node_adapters_asked(a, 100 + i, now_ms);
    }
    node_adapters_tick(a, 2, now_ms);
    struct node_adapter_need rare = node_adapters_need(a, K, 120, now_ms);
    struct node_adapter_need often = node_adapters_need(a, K, 1, now_ms);
    assert_true(rare.loads && rare.wanted > 0.4 && rare.unlike > 0.4);
    assert_false(often.loads);
    node_adapters_slots(a, K + 1, 1);
    node_adapters_use(a, K + 1, 130, now_ms);
    node_adapters_release(a, K + 1, 130);
    node_adapters_tick(a, 2, now_ms);
    rare = node_adapters_need(a, K + 1, 120, now_ms); /* among equals */
    assert_true(rare.loads && rare.wanted < 0.1 && rare.unlike < 0.1);
    often = node_adapters_need(a, K + 1, 1, now_ms);
    assert_true(often.loads && often.wanted < 0.1 && often.unlike > 0.4);
    node_adapters_destroy(a);
}

/* Beyond the limit of followed adapters the least popular are dropped. */
static void followed_adapters_are_limited(void **state)
{
    (void)state;
    struct node_adapters *a = make(2);
    for (unsigned i = 0; i < 20; i++)
        node_adapters_asked(a, 7, i);
    for (uint32_t i = 0; i < 10 * NODE_ADAPTERS_MAX; i++)
        node_adapters_asked(a, 1000 + i, 100);
    node_adapters_tick(a, 2, 100);
    once(a, 7, 110);
    once(a, 8, 120);
    assert_true(node_adapters_need(a, K, 9, 130).wanted > 0.9);
    node_adapters_destroy(a);
}

static void the_load_time_is_learned(void **state)
{
    (void)state;
    struct node_adapters *a = make(2);
    double believed_s = node_adapters_load_s(a, K);
    node_adapters_took(a, K, true, 60); /* a single stall says nothing */
    assert_true(node_adapters_load_s(a, K) == believed_s);
    for (unsigned i = 0; i < 8; i++) {
        node_adapters_took(a, K, true, 2.1);
        node_adapters_took(a, K, false, 0.1);
    }
    assert_true(fabs(node_adapters_load_s(a, K) - 2) < 0.01);
    node_adapters_took(a, K, true, 600);
    assert_true(fabs(node_adapters_load_s(a, K) - 2) < 0.01);
    once(a, 1, 10);
    node_adapters_tick(a, 2, 20);
    assert_true(fabs(node_adapters_load_s(a, K + 1) - 2) < 0.01); /* like the fleet */
    for (unsigned i = 0; i < 9; i++)
        node_adapters_took(a, K, true, 0);
    assert_true(node_adapters_load_s(a, K) == 0);
    node_adapters_destroy(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_recently_used_adapter_is_evicted),
        cmocka_unit_test(an_adapter_in_use_is_not_evicted),
        cmocka_unit_test(the_engine_reports_its_adapter_slots),
        cmocka_unit_test(popular_adapters_keep_their_slots),
        cmocka_unit_test(followed_adapters_are_limited),
        cmocka_unit_test(the_load_time_is_learned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
