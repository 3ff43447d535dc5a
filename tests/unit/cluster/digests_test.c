#include "tests/lib/test.h"

#include <stdio.h>

#include "node/cluster/digests.h"

#define CLASSES "\"registry\":\"01\",\"reports\":\"03\""

static bool equal(const char *text)
{
    return node_digests_differ(slice_of_cstr(text)) == 0;
}

static void test_equal(void **state)
{
    (void)state;
    assert_true(equal("{\"a\":{" CLASSES ",\"floor\":5,\"index\":[]}}"));
    assert_true(equal("{\"a\":{" CLASSES ",\"floor\":5,\"index\":[{\"generation\":7,\"digest\":"
                      "\"ab\"}]},\"b\":{\"index\":[{\"digest\":\"ab\",\"entries\":{\"x\":[1]},"
                      "\"generation\":7}],\"more\":[{\"a\":\"b\"}]," CLASSES "}}"));
    /* A router of an older version sends a former class. */
    assert_true(equal("{\"a\":{" CLASSES ",\"index\":[]},"
                      "\"b\":{" CLASSES ",\"log\":\"09\",\"index\":[]}}"));
}

static void test_each_class_counts(void **state)
{
    (void)state;
    static const char *const others[] = {
        "\"registry\":\"09\",\"reports\":\"03\",\"index\":[]",
        "\"registry\":\"01\",\"reports\":\"09\",\"index\":[]",
        "\"registry\":\"01\",\"index\":[]",
        "\"registry\":\"01\",\"reports\":\"03\"",
        CLASSES ",\"index\":[{\"generation\":1,\"digest\":\"1\"}]", /* NOLINT: one text */
        "\"error\":\"timeout\"",
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        char text[512];
        (void)snprintf(text, sizeof text, "{\"a\":{" CLASSES ",\"index\":[]},\"b\":{%s}}",
                       others[i]);
        assert_false(equal(text));
        (void)snprintf(text, sizeof text, "{\"b\":{%s},\"a\":{" CLASSES ",\"index\":[]}}",
                       others[i]);
        assert_false(equal(text));
    }
}

static void test_differing_classes_are_named(void **state)
{
    (void)state;
    static const char format[] =
        "{\"a\":{" CLASSES ",\"index\":[]},\"b\":{\"registry\":\"%s\","
        "\"reports\":\"%s\",\"index\":[{\"generation\":4,\"digest\":\"%s\"}]}}";
    char text[512];
    (void)snprintf(text, sizeof text, format, "01", "03", "5");
    assert_int_equal(node_digests_differ(slice_of_cstr(text)), 1 << NODE_DIGEST_INDEX);
    (void)snprintf(text, sizeof text, format, "01", "04", "0");
    assert_int_equal(node_digests_differ(slice_of_cstr(text)), 1 << NODE_DIGEST_REPORTS);
    (void)snprintf(text, sizeof text, format, "x", "04", "0");
    assert_int_equal(node_digests_differ(slice_of_cstr(text)),
                     1 << NODE_DIGEST_REPORTS | 1 << NODE_DIGEST_REGISTRY);
}

/* A router without knowledge of others has the same state as any other such router. */
static void test_a_joining_router_is_not_equal(void **state)
{
    (void)state;
    static const char format[] = "{\"a\":{\"ready\":%s," CLASSES ",\"index\":[]},"
                                 "\"b\":{" CLASSES ",\"index\":[],\"ready\":%s}}";
    char text[512];
    (void)snprintf(text, sizeof text, format, "true", "true");
    assert_true(equal(text));
    (void)snprintf(text, sizeof text, format, "true", "false");
    assert_int_equal(node_digests_differ(slice_of_cstr(text)), NODE_DIGESTS_JOINING);
    (void)snprintf(text, sizeof text, format, "false", "true");
    assert_int_equal(node_digests_differ(slice_of_cstr(text)), NODE_DIGESTS_JOINING);
}

/* Below the greatest floor nothing counts as different. An empty generation may be listed or
 * not. */
static void test_floors(void **state)
{
    (void)state;
    static const char format[] =
        "{\"a\":{" CLASSES ",\"floor\":%d,\"index\":[{\"generation\":4,\"digest\":\"aa\"},"
        "{\"generation\":5,\"digest\":\"bb\"},{\"generation\":6,\"digest\":\"000\"}]},"
        "\"b\":{" CLASSES ",\"floor\":3,\"index\":[{\"generation\":5,\"digest\":\"bb\"}]}}";
    char text[512];
    (void)snprintf(text, sizeof text, format, 5);
    assert_true(equal(text));
    (void)snprintf(text, sizeof text, format, 4);
    assert_false(equal(text));
}

/* Each router has dropped everything the other keeps. Two such routers once counted as equal. */
static void test_disjoint_generations_are_not_comparable(void **state)
{
    (void)state;
    static const char format[] = "{\"a\":{" CLASSES ",\"floor\":%d,\"now\":9,\"index\":[]},"
                                 "\"b\":{" CLASSES ",\"floor\":2,\"now\":%d,\"index\":[]}}";
    char text[512];
    (void)snprintf(text, sizeof text, format, 8, 7);
    assert_true(equal(text));
    (void)snprintf(text, sizeof text, format, 8, 6);
    assert_int_equal(node_digests_differ(slice_of_cstr(text)), NODE_DIGESTS_INCOMPARABLE);
}

static void test_malformed_digests_are_not_equal(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "{",
                                        "{}",
                                        "[]",
                                        "7",
                                        "{\"a\":1}",
                                        "{\"a\":{\"reports\":",
                                        "{\"a\":{" CLASSES ",\"index\":[]}", /* NOLINT: one text */
                                        "nonsense"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_false(equal(texts[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_each_class_counts),
        cmocka_unit_test(test_differing_classes_are_named),
        cmocka_unit_test(test_a_joining_router_is_not_equal),
        cmocka_unit_test(test_floors),
        cmocka_unit_test(test_disjoint_generations_are_not_comparable),
        cmocka_unit_test(test_malformed_digests_are_not_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
