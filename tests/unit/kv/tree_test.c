#include "node/kv/tree_internal.h"
#include "tests/unit/kv/tree_world.h"

#include "base/check.h"

static void test_a_prefix_ends_at_the_first_missing_block(void **state)
{
    (void)state;
    begin(100);
    store("abc", 0);
    store("abcde", 3);
    assert_held("abcde", 5, 5);
    assert_held("abc", 3, 3);
    assert_held("abx", 0, 2); /* the last block, x, was never stored */
    drop("abcd");
    assert_held("abcde", 3, 3);
    assert_held("abc", 3, 3);
    store("abcd", 3); /* the block behind is back */
    assert_held("abcde", 5, 5);
    drop("a");
    assert_held("abcde", 0, 0);
    store("a", 0);
    assert_held("abcde", 5, 5);
    end();
}

static void test_a_block_is_removed_with_its_last_copy(void **state)
{
    (void)state;
    begin(100);
    store("ab", 0);
    store("ab", 0); /* a copy, or a repetition */
    drop("ab");
    assert_held("ab", 1, 2);
    drop("ab");
    assert_held("ab", 0, 1); /* unknown again */
    drop("a");
    assert_int_equal(kv_tree_stats(tree).unknown, 0);
    assert_int_equal(kv_tree_stats(tree).blocks, 1); /* the other copy of block a */
    drop("a");
    assert_int_equal(kv_tree_stats(tree).blocks, 0);
    drop("a");
    assert_int_equal(kv_tree_stats(tree).unknown, 1);
    end();
}

static void test_missed_events_make_all_blocks_unsure(void **state)
{
    (void)state;
    begin(100);
    store("abc", 0);
    kv_tree_doubt(tree);
    assert_false(kv_tree_stats(tree).whole);
    assert_held("abc", 0, 3);
    assert_held("xyz", 0, 3);
    store("xyz", 0); /* may be a second copy */
    assert_held("xyz", 3, 3);
    drop("xyz");
    assert_held("xyz", 2, 3);
    kv_tree_settle(tree);
    store("uvw", 0);
    drop("uvw");
    assert_held("uvw", 0, 3); /* unknown: perhaps cached from before */
    struct kv_event all = event_of(KV_CLEARED);
    kv_tree_apply(tree, &all);
    assert_true(kv_tree_stats(tree).whole);
    assert_held("abc", 0, 2);
    end();
}

static void test_blocks_behind_an_unknown_parent(void **state)
{
    (void)state;
    begin(100);
    kv_tree_doubt(tree);
    store("abcd", 2);
    assert_int_equal(kv_tree_stats(tree).unplaced, 2);
    assert_held("abcd", 0, 4);
    store("ab", 0); /* now "cd" has a place */
    assert_held("abcd", 4, 4);
    assert_int_equal(kv_tree_stats(tree).blocks, 4);
    end();
}

static void test_no_block_is_its_own_ancestor(void **state)
{
    (void)state;
    begin(100);
    struct kv_event e = event_of(KV_STORED);
    const uint64_t digests[] = {1, 2};
    for (unsigned round = 0; round < 3; round++) {
        const uint64_t hashes[] = {7 + round, 8}, parents[] = {8, 7};
        e.has_parent = true;
        for (unsigned i = 0; i < 2; i++) {
            e.parent = parents[i];
            e.count = 1;
            e.hashes = &hashes[i];
            e.digests = &digests[i];
            kv_tree_apply(tree, &e);
            kv_tree_check(tree);
        }
        e.parent = 9, e.count = 2; /* the same hash twice */
        const uint64_t same[] = {9, 9};
        e.hashes = same, e.digests = digests;
        kv_tree_apply(tree, &e);
        kv_tree_check(tree);
    }
    end();
}

static void test_tiers(void **state)
{
    (void)state;
    begin(100);
    struct kv_event host = event_of(KV_STORED), gpu = host;
    host.medium = KV_HOST;
    store("abc", 0);
    store_like(host, "abc", 0);
    drop_like(gpu, "abc"); /* the host still has it */
    assert_held("abc", 3, 3);
    assert_int_equal(held("abc").slowest, KV_HOST);
    assert_int_equal(held("ab").slowest, KV_GPU);
    struct kv_event all = event_of(KV_CLEARED);
    kv_tree_apply(tree, &all);
    kv_tree_check(tree);
    assert_held("abc", 0, 3); /* no event says the host was cleared, too */
    drop_like(host, "abc"), drop_like(host, "ab"), drop_like(host, "a");
    assert_int_equal(kv_tree_stats(tree).blocks, 0);
    end();
}

/* Other engines fill and empty the pool, too: the pool's events prove nothing about the GPU. */
static void test_a_shared_pool_proves_nothing_about_the_gpu(void **state)
{
    (void)state;
    begin(100);
    struct kv_event pool = event_of(KV_STORED), gpu = pool;
    pool.medium = KV_HOST;
    pool.remote = true;
    store("abc", 0);
    assert_false(kv_tree_has_pool(tree));
    store_like(pool, "abc", 0);
    assert_true(kv_tree_has_pool(tree) && !kv_tree_has_tiers(tree));
    drop_like(pool, "abc"); /* another engine's removal */
    assert_held("abc", 3, 3);
    drop_like(gpu, "ab");
    assert_held("abc", 1, 1);
    kv_tree_clear(tree);
    assert_true(kv_tree_has_pool(tree));
    end();
}

static struct kv_event of_group(uint16_t number, enum kv_kind kind, uint32_t window)
{
    struct kv_event e = event_of(KV_STORED);
    e.group = number;
    e.kind = kind;
    e.window = window;
    return e;
}

static void test_all_groups_must_serve_a_prefix(void **state)
{
    (void)state;
    begin(100);
    struct kv_event window = of_group(0, KV_WINDOW, 2 * BLOCK), full = of_group(1, KV_ATTENTION, 0),
                    mamba = of_group(2, KV_STATE, 0), other = of_group(3, KV_IGNORED, 0);
    store_like(window, "abcdef", 0);
    store_like(full, "abcdef", 0);
    assert_held("abcdef", 6, 6);
    drop_like(window, "a"), drop_like(window, "ab"), drop_like(window, "abc");
    assert_held("abcdef", 6, 6); /* the last two are cached */
    assert_held("abcd", 0, 0);   /* a shorter prompt's are not */
    drop_like(window, "abcdef");
    assert_held("abcdef", 5, 5);
    store_like(mamba, "abcd", 0);
    drop_like(mamba, "abc");
    assert_held("abcdef", 0, 0); /* a state after four blocks, the window after five */
    store_like(window, "abcd", 2);
    assert_held("abcdef", 4, 4);
    store_like(other, "a", 0), drop_like(other, "a");
    assert_held("abcdef", 4, 4);
    struct kv_event strange = of_group(99, KV_ATTENTION, 0);
    store_like(strange, "abc", 0);
    assert_int_equal(kv_tree_stats(tree).unknown, 3);
    end();
}

/* The first block stays gone, though the engine found all four. */
static void test_found_blocks_count_behind_removed_blocks(void **state)
{
    (void)state;
    begin(100);
    store("abcd", 0);
    kv_tree_doubt(tree);
    kv_tree_clock(tree, 1000);
    drop("abc");
    drop("abc");
    kv_tree_clock(tree, 5000);
    drop("a");
    struct kv_tree_place place = kv_tree_find(tree, chain_of("abcd", 4));
    assert_true(kv_tree_found(tree, place, 4, 3000));
    kv_tree_check(tree);
    assert_int_equal(kv_tree_reach(tree, chain_of("abc", 3)), KV_UNSURE);
    end();
}

/* --- hostile feeds --------------------------------------------------------------------------- */

/* The input for which hash_mix() gives `mixed`: hash_mix() is splitmix64's, which has an
 * inverse. */
static uint64_t unmixed(uint64_t mixed)
{
    mixed = (mixed ^ mixed >> 31 ^ mixed >> 62) * 0x319642b2d24d8ec3;
    mixed = (mixed ^ mixed >> 27 ^ mixed >> 54) * 0x96de1b173f119089;
    return mixed ^ mixed >> 30 ^ mixed >> 60;
}

static void test_an_engine_cannot_choose_hash_table_slots(void **state)
{
    (void)state;
    enum { COUNT = 1000, PLACES = 1024 };
    unsigned hits[PLACES] = {0}, most = 0;
    begin(PLACES);
    for (uint64_t i = 0; i < COUNT; i++) {
        uint64_t hash = unmixed(i);
        assert_int_equal(hash_mix(hash), i);
        unsigned place = kv_tree_place_of(tree, hash);
        most = ++hits[place] > most ? hits[place] : most;
    }
    assert_in_range(most, 1, 16);
    end();
}

/* For each repetition all blocks behind must be examined, because the depth is unknown. */
static void test_a_repeated_block_in_an_event_is_charged(void **state)
{
    (void)state;
    enum { TIMES = 1000 };
    uint64_t hashes[TIMES];
    begin(2 * TIMES);
    struct kv_event e = event_of(KV_STORED);
    e.has_parent = true;
    e.parent = 5;
    e.count = TIMES;
    e.hashes = hashes;
    for (unsigned i = 0; i < TIMES; i++)
        hashes[i] = 100 + i;
    kv_tree_apply(tree, &e);
    kv_tree_check(tree);
    for (unsigned i = 0; i + 1 < TIMES; i++)
        hashes[i] = 100;
    hashes[TIMES - 1] = 7;
    kv_tree_allow(tree, 3 * TIMES);
    kv_tree_apply(tree, &e);
    assert_true(kv_tree_is_tired(tree));
    assert_int_equal(kv_tree_stats(tree).blocks, TIMES + 1); /* ended before the last hash */
    kv_tree_check(tree);
    kv_tree_clear(tree);
    kv_tree_allow(tree, UINT64_MAX);
    store("abc", 0);
    assert_held("abc", 3, 3);
    end();
}

/* All blocks are in the same place of the table of chains, and the first block is at the end. */
static void test_many_blocks_with_equal_tokens_are_charged(void **state)
{
    (void)state;
    enum { TIMES = 1000 };
    uint64_t hashes[TIMES], digest = 1;
    begin(TIMES);
    struct kv_event e = event_of(KV_STORED);
    e.count = 1;
    e.digests = &digest;
    for (unsigned i = 0; i < TIMES; i++) {
        hashes[i] = 100 + i;
        e.hashes = &hashes[i];
        kv_tree_apply(tree, &e);
    }
    kv_tree_allow(tree, 10 * TIMES);
    e = event_of(KV_REMOVED);
    e.count = TIMES;
    e.hashes = hashes;
    kv_tree_apply(tree, &e);
    assert_true(kv_tree_is_tired(tree));
    assert_in_range(kv_tree_stats(tree).blocks, TIMES - 12, TIMES - 9);
    end();
}

static void test_clears_are_charged_by_their_blocks(void **state)
{
    (void)state;
    struct kv_event host = event_of(KV_STORED), clear = event_of(KV_CLEARED);
    host.medium = KV_HOST;
    begin(1000);
    store("abcdefghijklmnop", 0);
    kv_tree_allow(tree, 10);
    for (unsigned i = 0; i < 100; i++)
        kv_tree_apply(tree, &clear); /* nothing is left after the first clear */
    assert_false(kv_tree_is_tired(tree));
    kv_tree_check(tree);
    store("abcdefghijklmnop", 0);
    assert_held("abcdefghijklmnop", 16, 16);
    store_like(host, "abcdefghijklmnop", 0);
    kv_tree_allow(tree, 100);
    kv_tree_apply(tree, &clear);
    assert_false(kv_tree_is_tired(tree));
    for (unsigned i = 0; i < 100; i++)
        kv_tree_apply(tree, &clear); /* the host's blocks are examined each time */
    assert_true(kv_tree_is_tired(tree));
    end();
}

static void test_a_full_tree(void **state)
{
    (void)state;
    begin(4);
    store("abcdef", 0);
    assert_int_equal(kv_tree_stats(tree).full, 2);
    assert_false(kv_tree_stats(tree).whole);
    assert_held("abcd", 4, 4);
    assert_held("abcdef", 0, 6);
    store("xyz", 2); /* the block before has no room either */
    assert_int_equal(kv_tree_stats(tree).full, 3);
    drop("abcd");
    store("x", 0);
    assert_held("x", 1, 1);
    end();
}

/* --- to keep --- */

/* The next life's tree. */
static bool recall(struct slice kept, uint32_t blocks_max)
{
    kv_tree_destroy(tree);
    assert_int_equal(kv_tree_create(&tree, NULL, &secret, blocks_max), 0);
    bool known = kv_tree_recall(tree, kept);
    kv_tree_check(tree);
    return known;
}

static void make_mixed(void)
{
    store("abc", 0);
    store("abcdef", 3);
    store("abxyz", 2);
    store("abc", 0); /* again, or a second copy */
    drop("abcd");    /* kept for the blocks behind */
    store("klm", 2); /* behind an unknown block */
    drop("abxyz");
    struct kv_event host = event_of(KV_STORED);
    host.medium = KV_HOST;
    store_like(host, "abcde", 4);
    store("q", 0), drop("q"); /* a free place */
}

static void test_a_tree_survives_a_restart(void **state)
{
    (void)state;
    static const char *const prompts[] = {"a",     "abc", "abcd", "abcdef", "abxy",
                                          "abxyz", "klm", "q",    "nobody"};
    struct kv_held before[ARRAY_LEN(prompts)];
    struct buf kept = {0};
    begin(100);
    make_mixed();
    struct kv_tree_stats stats = kv_tree_stats(tree);
    for (unsigned i = 0; i < ARRAY_LEN(prompts); i++)
        before[i] = held(prompts[i]);
    assert_int_equal(kv_tree_keep(tree, &kept), 0);
    assert_true(recall(buf_slice(&kept), 50));
    for (unsigned i = 0; i < ARRAY_LEN(prompts); i++)
        assert_held(prompts[i], before[i].surely, before[i].perhaps);
    assert_int_equal(kv_tree_stats(tree).blocks, stats.blocks);
    assert_int_equal(kv_tree_stats(tree).held, stats.held);
    assert_true(kv_tree_stats(tree).whole);
    assert_int_equal(kv_tree_block_tokens(tree), BLOCK);
    store("abcd", 3); /* the tree goes on from there */
    assert_held("abcdef", 6, 6);
    store("kl", 0); /* an unknown block returns */
    assert_held("klm", 3, 3);
    store("r", 0);
    assert_held("r", 1, 1);
    assert_false(recall(buf_slice(&kept), 5)); /* no room */
    assert_held("abc", 0, 3);
    buf_free(&kept);
    end();
}

enum { KEPT_HEAD = 272, KEPT_BLOCK = 32, KEPT_PARENT = 16 };

static void test_kept_trees_have_no_cycles_or_duplicates(void **state)
{
    (void)state;
    struct buf kept = {0};
    begin(100);
    store("yz", 1); /* block 0 has no place, and block 1 is behind block 0 */
    assert_int_equal(kv_tree_keep(tree, &kept), 0);
    assert_int_equal(kept.len, KEPT_HEAD + 2 * KEPT_BLOCK);
    uint32_t second = 1;
    memcpy(kept.at + KEPT_HEAD + KEPT_PARENT, &second, sizeof second);
    assert_true(recall(buf_slice(&kept), 100)); /* recalled without the link */
    drop("yz");
    assert_int_equal(kv_tree_stats(tree).blocks, 0);
    memcpy(kept.at + KEPT_HEAD, kept.at + KEPT_HEAD + KEPT_BLOCK, sizeof(uint64_t));
    assert_false(recall(buf_slice(&kept), 100));
    buf_free(&kept);
    end();
}

/* A checksum before this detects accidents; here nothing may break for any bytes. */
static void test_malformed_kept_trees_are_refused(void **state)
{
    (void)state;
    struct buf kept = {0};
    unsigned known = 0;
    begin(100);
    make_mixed();
    assert_int_equal(kv_tree_keep(tree, &kept), 0);
    for (size_t len = 0; len < kept.len; len++)
        assert_false(recall(slice_of(kept.at, len), 100));
    for (size_t i = 0; i < kept.len; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            kept.at[i] = (char)(kept.at[i] ^ 1 << bit);
            known += recall(buf_slice(&kept), 100);
            store("abcdefgh", 0);
            drop("abc");
            kept.at[i] = (char)(kept.at[i] ^ 1 << bit);
        }
    }
    assert_true(known > 0);
    assert_true(recall(buf_slice(&kept), 100));
    buf_free(&kept);
    end();
}

/* In doubt a removal leaves a block unsure, because a second copy may remain: the tree would fill
 * up. */
static void test_unsure_blocks_are_evicted_first(void **state)
{
    (void)state;
    begin(8);
    kv_tree_doubt(tree);
    store("ab", 0);
    drop("ab");
    assert_int_equal(kv_tree_make_room(tree), 1);
    assert_held("ab", 0, 2);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unsure_blocks_are_evicted_first),
        cmocka_unit_test(test_a_prefix_ends_at_the_first_missing_block),
        cmocka_unit_test(test_a_block_is_removed_with_its_last_copy),
        cmocka_unit_test(test_missed_events_make_all_blocks_unsure),
        cmocka_unit_test(test_blocks_behind_an_unknown_parent),
        cmocka_unit_test(test_no_block_is_its_own_ancestor),
        cmocka_unit_test(test_tiers),
        cmocka_unit_test(test_a_shared_pool_proves_nothing_about_the_gpu),
        cmocka_unit_test(test_all_groups_must_serve_a_prefix),
        cmocka_unit_test(test_found_blocks_count_behind_removed_blocks),
        cmocka_unit_test(test_an_engine_cannot_choose_hash_table_slots),
        cmocka_unit_test(test_a_repeated_block_in_an_event_is_charged),
        cmocka_unit_test(test_many_blocks_with_equal_tokens_are_charged),
        cmocka_unit_test(test_clears_are_charged_by_their_blocks),
        cmocka_unit_test(test_a_full_tree),
        cmocka_unit_test(test_a_tree_survives_a_restart),
        cmocka_unit_test(test_kept_trees_have_no_cycles_or_duplicates),
        cmocka_unit_test(test_malformed_kept_trees_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
