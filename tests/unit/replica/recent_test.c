#include "node/replica/recent.h"

#include "base/check.h"
#include "base/checkpoint.h"
#include "base/hash.h"
#include "base/prng.h"
#include "tests/lib/test.h"

/* `shared` blocks of one prompt's start, then its own. */
static const struct chain *prompt(uint64_t seed, unsigned blocks, uint64_t of, unsigned shared)
{
    static struct chain chain;
    chain = (struct chain){.bytes = blocks * 256ull};
    for (unsigned i = 0; i < CHECKPOINT_MAX && checkpoint_blocks(i) <= blocks; i++) {
        uint64_t from = checkpoint_blocks(i) <= shared ? of : seed;
        chain.points[chain.length++] = (struct chain_point){
            .id = hash_mix(from * 1000003 + i + 1),
            .blocks = checkpoint_blocks(i),
            .code = checkpoint_code(i),
        };
    }
    return &chain;
}

static void assert_depth(const struct node_recent *r, const struct chain *chain, unsigned points,
                         double from, double to)
{
    struct node_recent_part part;
    assert_int_equal(node_recent_parts(r, chain, &part, 1), 1);
    assert_int_equal(part.end, points);
    assert_true(part.from == from && part.to == to);
    node_recent_check(r);
}

static void depth_is_what_was_used_since(void **state)
{
    (void)state;
    struct node_recent *r = node_recent_create();
    uint32_t first = node_recent_begin(r, prompt(1, 10, 0, 0), 0.5);
    node_recent_end(r, first, 2);
    assert_depth(r, prompt(1, 10, 0, 0), 10, 0, 10);
    uint32_t second = node_recent_begin(r, prompt(2, 6, 0, 0), 0);
    assert_depth(r, prompt(1, 10, 0, 0), 10, 6, 16);
    node_recent_end(r, second, 3); /* its answer is in the cache too */
    assert_depth(r, prompt(1, 10, 0, 0), 10, 9, 19);
    assert_true(node_recent_blocks(r) == 21.5);
    /* It goes on: what it had is the newest, and the answer is a part of the new prompt. */
    node_recent_end(r, node_recent_begin(r, prompt(3, 14, 1, 10), 0), 1);
    assert_true(node_recent_blocks(r) == 24);
    assert_depth(r, prompt(2, 6, 0, 0), 6, 15, 21);
    assert_depth(r, prompt(4, 30, 1, 10), 10, 0, 10);
    struct node_recent_part part;
    assert_int_equal(node_recent_parts(r, prompt(5, 8, 0, 0), &part, 1), 0);
    node_recent_destroy(r);
}

static void last_use_is_the_end(void **state)
{
    (void)state;
    struct node_recent *r = node_recent_create();
    uint32_t slow = node_recent_begin(r, prompt(1, 10, 0, 0), 0);
    for (uint64_t i = 2; i < 6; i++)
        node_recent_end(r, node_recent_begin(r, prompt(i, 10, 0, 0), 0), 0);
    assert_depth(r, prompt(1, 10, 0, 0), 10, 40, 50);
    node_recent_end(r, slow, 0);
    assert_depth(r, prompt(1, 10, 0, 0), 10, 0, 10);
    assert_depth(r, prompt(5, 10, 0, 0), 10, 10, 20);
    node_recent_destroy(r);
}

/* The system prompt that it shares with others is there all the same. */
static void what_was_refused_is_not_there(void **state)
{
    (void)state;
    struct node_recent *r = node_recent_create();
    node_recent_end(r, node_recent_begin(r, prompt(1, 4, 0, 0), 0), 0);
    node_recent_refuse(r, node_recent_begin(r, prompt(2, 400, 1, 4), 0.5));
    assert_depth(r, prompt(2, 400, 1, 4), 4, 0, 4);
    assert_true(node_recent_blocks(r) == 4);
    node_recent_clear(r);
    node_recent_refuse(r, 257); /* of before */
    assert_true(node_recent_blocks(r) == 0);
    node_recent_check(r);
    node_recent_destroy(r);
}

/* As many uses and checkpoints as ever: the old ones are forgotten, and all adds up. */
static void it_is_bounded(void **state)
{
    (void)state;
    struct node_recent *r = node_recent_create();
    struct prng prng;
    prng_seed(&prng, 5);
    for (unsigned i = 0; i < 5000; i++) {
        unsigned blocks = 1 + (unsigned)prng_below(&prng, i % 7 == 0 ? 20000 : 60);
        uint64_t of = i > 10 ? i - 1 - prng_below(&prng, 10) : 0;
        uint32_t use = node_recent_begin(r, prompt(i, blocks, of, blocks / 2), 0.5);
        if (prng_below(&prng, 10) == 0)
            node_recent_refuse(r, use);
        else if (prng_below(&prng, 3) > 0)
            node_recent_end(r, use, 1);
        node_recent_check(r);
        assert_true(node_recent_blocks(r) > 0);
    }
    node_recent_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(depth_is_what_was_used_since),
        cmocka_unit_test(last_use_is_the_end),
        cmocka_unit_test(what_was_refused_is_not_there),
        cmocka_unit_test(it_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
