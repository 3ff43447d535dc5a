#include <stdio.h>

#include "node/route/affinity.h"
#include "tests/lib/test.h"

static struct slice id_of(char *text, size_t size, unsigned n)
{
    int len = snprintf(text, size, "resp_%08x", n);
    return slice_of(text, (size_t)len);
}

static void a_responses_replica_is_remembered(void **state)
{
    (void)state;
    struct hash_secret secret;
    hash_secret_from_seed(&secret, 7);
    struct node_affinity *a = NULL;
    assert_int_equal(node_affinity_create(&a, &secret, 1024), 0);
    assert_int_equal(node_affinity_get(a, SLICE("resp_1")), -1);
    node_affinity_put(a, SLICE("resp_1"), 3);
    assert_int_equal(node_affinity_get(a, SLICE("resp_1")), 3);
    assert_int_equal(node_affinity_evicted(a), 0);
    node_affinity_put(a, SLICE("resp_1"), 4); /* repeated: the newer entry counts */
    assert_int_equal(node_affinity_get(a, SLICE("resp_1")), 4);
    node_affinity_destroy(a);
}

static void the_oldest_entries_are_evicted(void **state)
{
    (void)state;
    struct hash_secret secret;
    hash_secret_from_seed(&secret, 7);
    struct node_affinity *a = NULL;
    assert_int_equal(node_affinity_create(&a, &secret, 1024), 0);
    char text[32];
    for (unsigned i = 0; i < 100000; i++)
        node_affinity_put(a, id_of(text, sizeof text, i), i % 16);
    for (unsigned i = 100000 - 100; i < 100000; i++)
        assert_int_equal(node_affinity_get(a, id_of(text, sizeof text, i)), (int)(i % 16));
    assert_int_equal(node_affinity_get(a, id_of(text, sizeof text, 0)), -1);
    assert_true(node_affinity_evicted(a) >= 100000 - 1024);
    node_affinity_destroy(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_responses_replica_is_remembered),
        cmocka_unit_test(the_oldest_entries_are_evicted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
