/* Model aliases: accepted settings, refused settings, and the resulting routes. */
#include "node/settings/aliases.h"

#include <stdlib.h>

#include "base/err.h"
#include "tests/lib/test.h"

static struct node_aliases made;
static struct node_alias_fault fault;

static int make(unsigned count, const char *const *entries)
{
    struct node_strings list = {.at = (char **)entries, .count = count};
    for (unsigned i = 0; i < count; i++)
        assert_null(node_alias_wrong(slice_of_cstr(entries[i])));
    return node_aliases_make(&made, &list, &fault);
}
#define MAKE(...)                                                                                  \
    make(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *), (const char *[]){__VA_ARGS__})

static struct node_alias *alias(const char *name)
{
    struct node_alias *a = node_alias_find(&made, slice_of_cstr(name));
    assert_non_null(a);
    return a;
}

static void names_splits_and_fallbacks(void **state)
{
    (void)state;
    assert_int_equal(MAKE("gpt-4o=llama-70b:90", "llama-70b-v2:10 > qwen-32b", "small=a/b:7b",
                          "even=a", "b", "b2=x>y>z"),
                     0);
    assert_int_equal(made.count, 4);
    assert_true(made.splits);
    assert_null(node_alias_find(&made, SLICE("gpt-4")));
    const struct node_alias *a = alias("gpt-4o");
    assert_int_equal(a->count, 3);
    assert_int_equal(a->sides, 2);
    assert_int_equal(a->weight, 100);
    assert_slice_equal(a->targets[1].model, "llama-70b-v2");
    assert_slice_equal(a->targets[2].model, "qwen-32b");
    assert_slice_equal(alias("small")->targets[0].model, "a/b:7b"); /* no weight */
    assert_int_equal(alias("even")->weight, 2);
    assert_int_equal(alias("b2")->count, 3);
    node_aliases_free(&made);
    assert_int_equal(MAKE("one=a>b"), 0);
    assert_false(made.splits);
    node_aliases_free(&made);
    assert_int_equal(make(0, NULL), 0);
    assert_null(node_alias_find(&made, SLICE("a")));
}

static void malformed_entries_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *entry, *said;
    } bad[] = {
        {"gpt-4o=", "want names of letters"},
        {"=llama", "want names of letters"},
        {"gpt 4o=llama", "want names of letters"},
        {"gpt-4o=ll\"ama", "want names of letters"},
        {"gpt-4o=a=b", "want names of letters"},
        {"gpt-4o=l\xc3\xa4ma", "want names of letters"},
        {"gpt-4o=llama:0", "want a weight from 1 to 1000000"},
        {"gpt-4o=llama:1000001", "want a weight from 1 to 1000000"},
        {"gpt-4o=llama:99999999999999999999", "want a weight from 1 to 1000000"},
        {"gpt-4o=llama>", "want a model behind >"},
        {"gpt-4o=llama>>qwen", "want names of letters"},
        {"gpt-4o=llama>qwen:10", "want no weight behind >"},
        {"gpt-4o=llama>qwen:0", "want no weight behind >"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *said = node_alias_wrong(slice_of_cstr(bad[i].entry));
        if (said == NULL || strstr(said, bad[i].said) != said)
            fail_msg("%s: %s", bad[i].entry, said == NULL ? "nothing" : said);
    }
}

static void refused(int err, unsigned entry, const char *said)
{
    assert_int_equal(err, ERR_RANGE);
    assert_int_equal(fault.entry, entry);
    if (strstr(fault.reason, said) == NULL)
        fail_msg("%s in: %s", said, fault.reason);
    assert_int_equal(made.count, 0);
}

static void conflicting_entries_are_refused(void **state)
{
    (void)state;
    refused(MAKE("llama"), 0, "want the alias before its first model, such as gpt-4o=llama");
    refused(MAKE("x=a", "a=a"), 1, "a names itself");
    refused(MAKE("x=a>b>x"), 0, "x names itself");
    refused(MAKE("x=a", "y=x"), 1, "x is an alias itself");
    refused(MAKE("x=y", "y=x"), 0, "y is an alias itself");
    refused(MAKE("x=a", "y=b>x"), 1, "x is an alias itself");
    refused(MAKE("x=a", "z=c", "x=b"), 2, "x is there twice");
    refused(MAKE("x=a:1", "a:2"), 1, "x has the model a twice");
    refused(MAKE("x=a:90", "b"), 1, "want a weight for each model of x or for none");
    refused(MAKE("x=a", "b:10"), 1, "want a weight for each model of x or for none");
    refused(MAKE("x=a>c", "b"), 1, "x has fallbacks already");
    refused(MAKE("x=a>b>c>d>e>f>g>h>i>j>k>l>m>n>o>p>q"), 0, "x has more than 16 models");
}

static void shares_follow_weights_and_fallbacks_come_last(void **state)
{
    (void)state;
    assert_int_equal(MAKE("x=a:90", "b:9", "c:1>d>e"), 0);
    unsigned first[5] = {0};
    for (uint64_t hash = 0; hash < 1000; hash++) {
        uint8_t order[NODE_ALIAS_TARGETS_MAX];
        assert_int_equal(node_alias_order(alias("x"), hash, order), 5);
        assert_int_equal(order[3], 3);
        assert_int_equal(order[4], 4);
        assert_int_equal(order[0] + order[1] + order[2], 3);
        first[order[0]]++;
    }
    assert_int_equal(first[0], 900);
    assert_int_equal(first[1], 90);
    assert_int_equal(first[2], 10);
    node_aliases_free(&made);
}

static void counters_survive_a_change(void **state)
{
    (void)state;
    assert_int_equal(MAKE("x=a", "y=b>c"), 0);
    alias("y")->targets[1].requests = 7;
    alias("y")->targets[1].fallbacks = 3;
    struct node_aliases before = made;
    assert_int_equal(MAKE("y=c", "z=a"), 0);
    node_aliases_count_on(&made, &before);
    assert_int_equal(alias("y")->targets[0].requests, 7);
    assert_int_equal(alias("y")->targets[0].fallbacks, 3);
    assert_int_equal(alias("z")->targets[0].requests, 0);
    node_aliases_free(&before);
    node_aliases_free(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_splits_and_fallbacks),
        cmocka_unit_test(malformed_entries_are_refused),
        cmocka_unit_test(conflicting_entries_are_refused),
        cmocka_unit_test(shares_follow_weights_and_fallbacks_come_last),
        cmocka_unit_test(counters_survive_a_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
