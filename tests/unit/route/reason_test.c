#include "node/route/reason.h"

#include "base/check.h"
#include "node/route/policy.h"
#include "tests/lib/test.h"

static void test_reasons(void **state)
{
    (void)state;
    struct node_candidate c[3] = {0};
    assert_int_equal(node_reason_of(c, 1, 0), NODE_REASON_ONLY);
    assert_int_equal(node_reason_of(c, 3, 1), NODE_REASON_COLD);
    c[0].cached_tokens = c[1].cached_tokens = 64;
    assert_int_equal(node_reason_of(c, 3, 1), NODE_REASON_CACHED);
    assert_int_equal(node_reason_of(c, 3, 2), NODE_REASON_CHEAPER);
    c[2].cached_tokens = 65;
    assert_int_equal(node_reason_of(c, 3, 1), NODE_REASON_CHEAPER);
    c[2].is_due = true;
    assert_int_equal(node_reason_of(c, 3, 2), NODE_REASON_DUE);
    assert_int_equal(node_reason_of(c, 3, 1), NODE_REASON_CHEAPER);
    assert_string_equal(node_reason_text(NODE_REASON_CACHED), "cached");
    for (unsigned i = 0; i < NODE_REASONS; i++)
        assert_non_null(node_reason_text((enum node_reason)i));
}

static void says(const struct node_reason_facts *f, const char *expected)
{
    char words[NODE_REASON_WORDS_BYTES];
    assert_string_equal(node_reason_words(f, words), expected);
}

/* A line of /decisions about a choice among three; each reason has words. */
static void test_each_reason_has_a_text(void **state)
{
    (void)state;
    struct node_candidate a = {.cached_tokens = 4900, .cost = {.queue_s = 0.01, .total_s = 0.02}},
                          b = {.cached_tokens = 1200, .cost = {.queue_s = 0.14, .total_s = 0.15}},
                          c = {.cost = {.total_s = 0.05}};
    struct node_reason_facts f = {.prompt_tokens = 5210,
                                  .has_costs = true,
                                  .displaced_weight = 2,
                                  .chosen = {&a, SLICE("a:1")},
                                  .most = {&b, SLICE("b:2")},
                                  .next = {&c, SLICE("c:3")}};
    f.reason = NODE_REASON_CACHED;
    says(&f, "holds 4900 of 5210 prompt tokens; b:2 is next with 1200");
    b.cached_tokens = 4900;
    says(&f, "holds 4900 of 5210 prompt tokens; b:2 holds as much, but more prompts wait there "
             "(+0.130 s)");
    f.most.candidate = &c;
    says(&f, "holds 4900 of 5210 prompt tokens; no other holds any");
    f.reason = NODE_REASON_CHEAPER;
    f.attempt = 2;
    f.most.candidate = &b;
    a.cached_tokens = 0;
    b.cost = (struct node_cost){.displaced_s = 0.1, .total_s = 0.22};
    says(&f, "attempt 2: holds 0 of 5210 prompt tokens; b:2 holds 4900, but the prompt would evict "
             "there what others need (+0.200 s)");
    f.attempt = 1;
    b.cost = (struct node_cost){.queue_s = 0.01, .total_s = 0.12};
    says(&f, "holds 0 of 5210 prompt tokens; b:2 holds 4900, but more answers are running there "
             "(+0.100 s)");
    b.cost = a.cost;
    says(&f, "holds 0 of 5210 prompt tokens; b:2 holds 4900, but costs about the same");
    f.most.candidate = NULL;
    says(&f, "holds 0 of 5210 prompt tokens; another holds more and is busier");
    f.reason = NODE_REASON_COLD;
    says(&f, "no replica holds any of 5210 prompt tokens; costs 0.020 s here, 0.050 s at c:3");
    f.has_costs = false; /* a policy without costs */
    says(&f, "no replica holds any of 5210 prompt tokens");
    static const enum node_reason plain[] = {NODE_REASON_LOAD, NODE_REASON_MAKER, NODE_REASON_ONLY,
                                             NODE_REASON_DUE};
    for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
        char words[NODE_REASON_WORDS_BYTES];
        enum node_reason read;
        f.reason = plain[i];
        assert_true(strlen(node_reason_words(&f, words)) > 10);
        assert_true(node_reason_parse(slice_of_cstr(node_reason_text(plain[i])), &read));
        assert_int_equal(read, plain[i]);
    }
    assert_false(node_reason_parse(SLICE("hot"), &f.reason));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reasons),
                                       cmocka_unit_test(test_each_reason_has_a_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
