/* Engines count the last use of a prompt's blocks from the end of the answer: until then the blocks
 * are in use. Counted from the choice, prompts of long answers would be believed gone too early. */
#include "tests/lib/router_help.h"

enum { ANSWER_MS = 60000 };

static unsigned cached_at(struct node_router *r, const struct chain *chain, unsigned replica,
                          uint64_t now_ms)
{
    struct node_request request = request_of(chain);
    json_t *root = explain(r, &request, now_ms);
    double tokens = explained(root, replica, "cached_tokens");
    json_decref(root);
    return (unsigned)tokens;
}

/* A long answer, during which others fill the cache: more has no room. */
static struct node_decision long_answer(struct node_router *r, bool begins)
{
    struct node_decision first = choose(r, prompt(1, 20000), START_MS);
    if (begins)
        node_router_first_byte(r, first.booking, START_MS + 2000);
    for (unsigned i = 0; i < 5; i++) {
        uint64_t now = START_MS + 20000 + i * 5000ull;
        done(r, choose(r, prompt(100 + i, 20000), now), now + 2500);
    }
    return first;
}

static void last_use_is_the_end_of_the_answer(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    struct node_decision first = long_answer(r, true);
    uint64_t now = START_MS + ANSWER_MS;
    assert_true(cached_at(r, prompt(1, 20000), 0, now) < 1000);
    unsigned oldest = cached_at(r, prompt(100, 20000), 0, now);
    node_router_used(r, first.booking, prompt(1, 20000), now);
    node_router_finish(r, first.booking, NODE_OUTCOME_OK, &no_usage, now);
    assert_true(cached_at(r, prompt(1, 20000), 0, now + 1000) > 19000);
    assert_true(cached_at(r, prompt(100, 20000), 0, now + 1000) < oldest); /* evicted */
    node_router_check(r);
    alone_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(last_use_is_the_end_of_the_answer),
    };
    return cmocka_run_group_tests_name("route/last_use", tests, NULL, NULL);
}
