#include "node/replica/usage.h"

#include "node/replica/limits.h"
#include "tests/lib/test.h"

static struct node_usage of(int64_t prompt, int64_t cached, int64_t completion, int64_t media)
{
    return (struct node_usage){prompt, cached, completion, {media}};
}

static void expect(struct node_usage u, bool good, struct node_usage cleaned)
{
    assert_int_equal(node_usage_clean(&u), good);
    assert_int_equal(u.prompt_tokens, cleaned.prompt_tokens);
    assert_int_equal(u.cached_tokens, cleaned.cached_tokens);
    assert_int_equal(u.completion_tokens, cleaned.completion_tokens);
    assert_int_equal(u.media_tokens[0], cleaned.media_tokens[0]);
    assert_true(node_usage_clean(&u)); /* clean already */
}

static void plausible_usage_is_kept(void **state)
{
    (void)state;
    expect(of(4052, 4052, 12, 100), true, of(4052, 4052, 12, 100));
    expect(of(0, 0, 0, 0), true, of(0, 0, 0, 0));
    expect(of(-1, -1, -1, -1), true, of(-1, -1, -1, -1));
    expect(of(-1, 4224, 12, 0), true, of(-1, 4224, 12, 0)); /* cached tokens of an unknown total */
    expect(of(NODE_USAGE_TOKENS_MAX, 0, 1, 0), true, of(NODE_USAGE_TOKENS_MAX, 0, 1, 0));
}

/* An engine counts a request's cached tokens again at each recomputation. */
static void cached_tokens_are_limited_to_the_prompt(void **state)
{
    (void)state;
    expect(of(4052, 4224, 12, 100), false, of(4052, 4052, 12, 100));
    expect(of(0, 1, 12, 0), false, of(0, 0, 12, 0));
    expect(of(100, 16, 12, 101), false, of(100, 16, 12, 0));
}

static void tokens_beyond_any_context_are_ignored(void **state)
{
    (void)state;
    const int64_t most = NODE_USAGE_TOKENS_MAX;
    expect(of(most + 1, 16, 12, 0), false, of(-1, 16, 12, 0));
    expect(of(-1, INT64_MAX, 12, 0), false, of(-1, -1, 12, 0));
    expect(of(100, 16, INT64_MAX, 0), false, of(100, 16, -1, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plausible_usage_is_kept),
        cmocka_unit_test(cached_tokens_are_limited_to_the_prompt),
        cmocka_unit_test(tokens_beyond_any_context_are_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
