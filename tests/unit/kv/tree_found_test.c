/* Evidence from answers about a tree. */
#include "node/kv/tree_internal.h"
#include "tests/unit/kv/tree_world.h"

static void test_a_found_prefix_is_certain(void **state)
{
    (void)state;
    begin(100);
    store("abc", 0);
    store("abc", 0);
    drop("abc");
    drop("ab");
    assert_held("abc", 1, 3);
    assert_true(kv_tree_found(tree, place_of("abc"), 2, 0));
    assert_held("abc", 2, 3);
    assert_true(kv_tree_found(tree, place_of("abc"), 3, 0));
    assert_held("abc", 3, 3);
    store("abcd", 3);
    drop("a"), drop("a");
    assert_held("abcd", 0, 0);
    assert_false(kv_tree_found(tree, place_of("abcd"), 4, 0)); /* the events said otherwise */
    assert_held("abcd", 0, 0);
    kv_tree_doubt(tree); /* a missed message may have stored it */
    assert_true(kv_tree_found(tree, place_of("abcd"), 4, 0));
    assert_held("abcd", 4, 4);
    end();
}

/* An answer is no evidence about events during the request. */
static void test_only_blocks_cached_throughout_count(void **state)
{
    (void)state;
    begin(100);
    kv_tree_clock(tree, 1000);
    store("abcd", 0);
    assert_int_equal(kv_tree_stood(tree, place_of("abcd"), 999), 0);
    assert_int_equal(kv_tree_stood(tree, place_of("abcd"), 1000), 4);
    kv_tree_clock(tree, 2000);
    store("abcd", 0); /* another copy: the block was cached before */
    assert_int_equal(kv_tree_stood(tree, place_of("abcd"), 1500), 4);
    kv_tree_clock(tree, 3000);
    drop("abcd");
    assert_int_equal(kv_tree_stood(tree, place_of("abcd"), 4000), 3);
    assert_int_equal(kv_tree_stood(tree, place_of("abc"), 2000), 3);
    drop("ab");
    assert_int_equal(kv_tree_stood(tree, place_of("abc"), 2000), 1);
    kv_tree_doubt(tree);
    assert_int_equal(kv_tree_stood(tree, place_of("abc"), 4000), 0);
    assert_true(kv_tree_found(tree, place_of("abc"), 3, 2999)); /* b may have gone later */
    assert_int_equal(kv_tree_stood(tree, place_of("abc"), 4000), 1);
    assert_true(kv_tree_found(tree, place_of("abc"), 3, 3000));
    assert_int_equal(kv_tree_stood(tree, place_of("abc"), 4000), 3);
    end();
}

/* --- a reader that joined late --- */

static struct kv_front front_of(const char *prompt, uint32_t blocks)
{
    uint64_t digest = (uint64_t)(unsigned char)prompt[blocks] + 1;
    return (struct kv_front){blocks, chain_of(prompt, blocks), digest};
}

/* An answer found `cached` blocks, and prompts part behind `fork` blocks (0: no fork is known). */
static bool fronts(const char *prompt, uint32_t cached, uint32_t fork, uint64_t since_ms)
{
    struct kv_fronts f = {1, {front_of(prompt, cached)}};
    if (fork > 0)
        f.at[f.count++] = front_of(prompt, fork);
    bool came = kv_tree_fronts(tree, &f, since_ms);
    kv_tree_check(tree);
    return came;
}

static void begin_late(void)
{
    begin(100);
    kv_tree_doubt(tree);
    kv_tree_clock(tree, 1000);
}

static void test_an_answer_places_blocks_after_a_known_prefix(void **state)
{
    (void)state;
    begin_late();
    store("sysab", 3);
    store("syscd", 3); /* another conversation with the same system text */
    assert_int_equal(kv_tree_find(tree, chain_of("sysab", 5)).depth, 0);
    assert_true(fronts("sysab", 3, 0, 900));
    assert_int_equal(kv_tree_find(tree, chain_of("sysab", 5)).depth, 5);
    assert_int_equal(kv_tree_reach(tree, chain_of("sysab", 5)), KV_THERE);
    assert_int_equal(kv_tree_reach(tree, chain_of("syscd", 5)), KV_THERE);
    kv_tree_settle(tree);
    drop("sysab");
    assert_int_equal(kv_tree_reach(tree, chain_of("sysab", 5)), KV_UNSURE); /* a second copy? */
    drop("sys"); /* the block stored before the reader began */
    assert_int_equal(kv_tree_reach(tree, chain_of("sysa", 4)), KV_GONE);
    store("sys", 0);
    assert_int_equal(kv_tree_reach(tree, chain_of("sysa", 4)), KV_THERE);
    drop("s"); /* now "s" is in front of the block */
    assert_int_equal(kv_tree_reach(tree, chain_of("sysa", 4)), KV_GONE);
    end();
}

/* A later turn finds the new blocks, and knows the fork's place. */
static void test_a_later_turn_places_the_fork_of_prompts(void **state)
{
    (void)state;
    begin_late();
    store("sysab", 3);
    store("sysabcd", 5);
    assert_true(fronts("sysabcd", 5, 0, 900)); /* the block came, but the place is unknown */
    assert_int_equal(kv_tree_find(tree, chain_of("sysab", 5)).depth, 0);
    assert_true(fronts("sysabcd", 5, 2, 900)); /* not there */
    assert_int_equal(kv_tree_find(tree, chain_of("sysab", 5)).depth, 0);
    /* The fork is there, but others went on with other tokens. */
    struct kv_fronts other = {2, {front_of("sysabcd", 5), front_of("sysx", 3)}};
    assert_true(kv_tree_fronts(tree, &other, 900));
    assert_int_equal(kv_tree_find(tree, chain_of("sysab", 5)).depth, 0);
    assert_true(fronts("sysabcd", 5, 3, 900));
    assert_int_equal(kv_tree_find(tree, chain_of("sysabcd", 7)).depth, 7);
    assert_int_equal(kv_tree_reach(tree, chain_of("sysabcd", 7)), KV_THERE);
    assert_true(fronts("sysabcd", 5, 3, 900)); /* again: the block has a place */
    end();
}

static void test_a_wrong_answer_places_no_blocks(void **state)
{
    (void)state;
    begin_late();
    store("sysab", 3);
    assert_false(fronts("sysab", 3, 0, 1100)); /* no block came since then */
    assert_false(fronts("sysxy", 3, 0, 900));  /* other tokens */
    assert_true(fronts("sysab", 4, 0, 900));   /* the prompt's first new block */
    assert_int_equal(kv_tree_find(tree, chain_of("sysab", 5)).depth, 0);
    uint64_t hashes[] = {1, 2, 3}, digests[] = {'s' + 1, 'y' + 1, 's' + 1};
    struct kv_event e = event_of(KV_STORED); /* the chain already belongs to another block */
    e.count = 3;
    e.hashes = hashes;
    e.digests = digests;
    kv_tree_apply(tree, &e);
    assert_true(fronts("sysab", 3, 0, 900));
    assert_int_equal(kv_tree_find(tree, chain_of("sysab", 5)).depth, 0);
    const struct kv_fronts none = {.count = 0};
    assert_false(kv_tree_fronts(tree, &none, 0));
    end();
}

static void test_a_reported_place_is_kept(void **state)
{
    struct buf kept = {0};
    (void)state;
    begin_late();
    store("sysab", 3);
    assert_true(fronts("sysab", 3, 0, 900));
    assert_int_equal(kv_tree_keep(tree, &kept), 0);
    kv_tree_destroy(tree);
    assert_int_equal(kv_tree_create(&tree, NULL, &secret, 100), 0);
    assert_true(kv_tree_recall(tree, buf_slice(&kept)));
    kv_tree_check(tree);
    assert_int_equal(kv_tree_reach(tree, chain_of("sysab", 5)), KV_THERE);
    buf_free(&kept);
    end();
}

/* No copy was cached, because the request had to compute the block. */
static void test_a_computed_block_has_no_other_copy(void **state)
{
    (void)state;
    begin_late();
    store("abcd", 0);
    drop("abcd");
    assert_held("abcd", 3, 4); /* perhaps there is another copy */
    store("abcdef", 3);
    kv_tree_computed(tree, place_of("abcdef"), 3, 1001); /* not computed since 1001 */
    drop("abcdef");
    assert_held("abcdef", 5, 6);
    store("abcdef", 3);
    kv_tree_computed(tree, place_of("abcdef"), 3, 900);
    drop("abcdef");
    assert_held("abcde", 5, 5);
    assert_int_equal(kv_tree_reach(tree, chain_of("abcdef", 6)), KV_UNSURE); /* unknown block */
    /* From a prompt's beginning on, a second store may be a mere repetition. */
    store("xy", 0);
    store("xy", 0);
    kv_tree_computed(tree, place_of("xy"), 0, 900);
    drop("xy");
    assert_held("xy", 1, 2);
    store("z", 0);
    kv_tree_computed(tree, place_of("z"), 0, 900);
    drop("z");
    assert_int_equal(kv_tree_find(tree, chain_of("z", 1)).depth, 0);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_found_prefix_is_certain),
        cmocka_unit_test(test_only_blocks_cached_throughout_count),
        cmocka_unit_test(test_an_answer_places_blocks_after_a_known_prefix),
        cmocka_unit_test(test_a_later_turn_places_the_fork_of_prompts),
        cmocka_unit_test(test_a_wrong_answer_places_no_blocks),
        cmocka_unit_test(test_a_reported_place_is_kept),
        cmocka_unit_test(test_a_computed_block_has_no_other_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
