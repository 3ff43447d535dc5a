/* Models with several groups of layers. After each event of a random feed, each block's reach, as
 * kept and as reported, is compared with the whole tree's result for all prompts behind the
 * block. */
#include "tests/lib/kv_held.h"

#include "tests/lib/test.h"

#include "base/check.h"
#include "base/prng.h"

enum {
    BLOCK = 16,
    LETTERS = 2,
    DEPTH = 7,
    PROMPTS = (1 << (DEPTH + 1)) - 1, /* numbered as in a binary heap */
    BLOCKS_MAX = 1000,
    STEPS = 600,
};

static struct hash_secret secret;
static struct kv_tree *tree;
static uint64_t chain_of[PROMPTS];
static enum kv_reach told[PROMPTS];

static void on_reached(void *context, uint64_t chain, enum kv_reach now)
{
    (void)context;
    for (unsigned p = 1; p < PROMPTS; p++) {
        if (chain_of[p] == chain)
            told[p] = now;
    }
}

static const struct kv_tree_user user = {on_reached, NULL};

static unsigned parent_of(unsigned p)
{
    return (p - 1) / LETTERS;
}

static uint64_t letter_of(unsigned p)
{
    return (p - 1) % LETTERS + 1;
}

static unsigned depth_of(unsigned p)
{
    return p == 0 ? 0 : depth_of(parent_of(p)) + 1;
}

static uint64_t hash_of(unsigned p)
{
    return 1000 + p;
}

static void begin(void)
{
    hash_secret_from_seed(&secret, 1);
    assert_int_equal(kv_tree_create(&tree, &user, &secret, BLOCKS_MAX), 0);
    kv_tree_clear(tree);
    memset(told, 0, sizeof told);
    chain_of[0] = kv_chain_root(&secret, BLOCK, 0);
    for (unsigned p = 1; p < PROMPTS; p++)
        chain_of[p] = kv_chain(&secret, chain_of[parent_of(p)], letter_of(p));
}

static void end(void)
{
    kv_tree_check(tree);
    kv_tree_destroy(tree);
}

struct kind {
    enum kv_kind kind;
    uint32_t window, block;
};

static struct kv_event event_of(const struct kind *kinds, unsigned group)
{
    return (struct kv_event){.group = (uint16_t)group,
                             .kind = kinds[group].kind,
                             .window = kinds[group].window * BLOCK,
                             .block_tokens = kinds[group].block};
}

/* The blocks of a prompt from number `from` on. */
static void store(const struct kind *kinds, unsigned group, unsigned p, unsigned from)
{
    struct kv_event e = event_of(kinds, group);
    uint64_t hashes[DEPTH], digests[DEPTH];
    unsigned depth = depth_of(p);
    e.change = KV_STORED;
    e.count = depth - from;
    e.hashes = hashes;
    e.digests = digests;
    for (unsigned i = e.count; i-- > 0; p = parent_of(p)) {
        hashes[i] = hash_of(p);
        digests[i] = letter_of(p);
    }
    e.has_parent = from > 0;
    e.parent = hash_of(p);
    kv_tree_apply(tree, &e);
}

/* Stores blocks as vLLM 0.32 reports a sliding window: only the last of the computed blocks, behind
 * the block before all computed blocks. */
static void store_last(const struct kind *kinds, unsigned group, unsigned p, unsigned from)
{
    struct kv_event e = event_of(kinds, group);
    uint64_t hashes[DEPTH];
    unsigned depth = depth_of(p);
    e.change = KV_STORED;
    e.count = depth - from < kinds[group].window ? depth - from : kinds[group].window;
    e.hashes = hashes;
    unsigned i = e.count;
    for (; i-- > 0; p = parent_of(p))
        hashes[i] = hash_of(p);
    while (depth_of(p) > from)
        p = parent_of(p);
    e.has_parent = from > 0;
    e.parent = hash_of(p);
    kv_tree_apply(tree, &e);
}

static void drop(const struct kind *kinds, unsigned group, unsigned p)
{
    struct kv_event e = event_of(kinds, group);
    uint64_t hash = hash_of(p);
    e.change = KV_REMOVED;
    e.count = 1;
    e.hashes = &hash;
    kv_tree_apply(tree, &e);
}

static bool is_known(unsigned p)
{
    return kv_tree_find(tree, chain_of[p]).depth > 0;
}

/* The reach of prompt `p`, by the whole tree; then the best reach of all longer prompts. */
static enum kv_reach serves(unsigned p)
{
    unsigned depth = depth_of(p);
    struct kv_held held = kv_tree_held(tree, chain_of[p], depth);
    return held.surely == depth ? KV_THERE : held.perhaps == depth ? KV_UNSURE : KV_GONE;
}

static enum kv_reach best(unsigned p)
{
    enum kv_reach found = is_known(p) ? serves(p) : KV_GONE;
    for (unsigned i = 1; i <= LETTERS && p * LETTERS + i < PROMPTS; i++) {
        enum kv_reach behind = best(p * LETTERS + i);
        found = behind > found ? behind : found;
    }
    return found;
}

static void check(void)
{
    kv_tree_check(tree);
    for (unsigned p = 1; p < PROMPTS; p++) {
        if (!is_known(p))
            continue;
        assert_int_equal(kv_tree_reach(tree, chain_of[p]), best(p));
        assert_int_equal(kv_tree_reach(tree, chain_of[p]), told[p]);
    }
}

static void forget(void)
{
    struct kv_event all = {.change = KV_CLEARED, .group = KV_GROUP_NONE};
    kv_tree_apply(tree, &all);
    memset(told, 0, sizeof told);
}

static void doubt(void)
{
    kv_tree_doubt(tree);
    for (unsigned p = 0; p < PROMPTS; p++)
        told[p] = told[p] == KV_THERE ? KV_UNSURE : told[p];
}

static void step(struct prng *drawn, const struct kind *kinds, unsigned groups)
{
    unsigned what = (unsigned)prng_below(drawn, 100), group = (unsigned)prng_below(drawn, groups);
    unsigned p = 1 + (unsigned)prng_below(drawn, PROMPTS - 1);
    if (what == 0)
        forget();
    else if (what == 1)
        doubt();
    else if (what < 40)
        store(kinds, group, p, (unsigned)prng_below(drawn, depth_of(p)));
    else if (what < 60) /* as a request does */
        for (unsigned g = 0; g < groups; g++)
            (kinds[g].kind == KV_WINDOW ? store_last : store)(kinds, g, p, 0);
    else
        drop(kinds, group, p);
}

static void play(const struct kind *kinds, unsigned groups, uint64_t seed)
{
    struct prng drawn;
    prng_seed(&drawn, seed);
    begin();
    for (unsigned i = 0; i < STEPS; i++) {
        step(&drawn, kinds, groups);
        check();
    }
    end();
}

static void test_windows_and_states(void **state)
{
    (void)state;
    const struct kind kinds[] = {
        {KV_WINDOW, 2, BLOCK}, {KV_ATTENTION, 0, BLOCK}, {KV_STATE, 0, BLOCK}};
    play(kinds, 3, 1);
    play(kinds, 2, 2);
    play(kinds + 1, 2, 3);
}

static void test_two_attention_groups_and_an_ignored_group(void **state)
{
    (void)state;
    const struct kind kinds[] = {
        {KV_ATTENTION, 0, BLOCK}, {KV_ATTENTION, 0, BLOCK}, {KV_IGNORED, 0, BLOCK}};
    play(kinds, 3, 4);
}

static void test_groups_with_other_block_sizes_are_unsure(void **state)
{
    (void)state;
    const struct kind kinds[] = {{KV_ATTENTION, 0, BLOCK}, {KV_STATE, 0, 4 * BLOCK}};
    play(kinds, 2, 5);
    begin();
    store(kinds, 0, 6, 0);
    assert_int_equal(kv_tree_reach(tree, chain_of[6]), KV_THERE);
    store(kinds, 1, 1, 0); /* the second group appears */
    assert_int_equal(kv_tree_reach(tree, chain_of[6]), KV_UNSURE);
    drop(kinds, 0, 6);
    assert_int_equal(kv_tree_reach(tree, chain_of[6]), KV_GONE);
    end();
}

/* The next turn computes the second half: the window's blocks are behind no known block. */
static void test_a_window_stored_by_its_last_blocks(void **state)
{
    (void)state;
    const struct kind kinds[] = {{KV_WINDOW, 2, BLOCK}, {KV_ATTENTION, 0, BLOCK}};
    unsigned path[DEPTH + 1] = {0};
    begin();
    for (unsigned d = 1; d <= DEPTH; d++)
        path[d] = path[d - 1] * LETTERS + 1;
    store_last(kinds, 0, path[3], 0);
    store(kinds, 1, path[3], 0);
    store_last(kinds, 0, path[7], 3);
    store(kinds, 1, path[7], 3);
    check();
    for (unsigned d = 1; d <= DEPTH; d++)
        assert_int_equal(serves(path[d]), d == 3 || d == 7 ? KV_THERE : KV_GONE);
    end();
}

/* The conversation's end is kept, but the middle's windows are not. The next turn finds the whole
 * prompt; another conversation with the same beginning would not. */
static void test_a_sliding_window_that_moves_on(void **state)
{
    (void)state;
    const struct kind kinds[] = {{KV_ATTENTION, 0, BLOCK}, {KV_WINDOW, 2, BLOCK}};
    unsigned path[DEPTH + 1] = {0};
    begin();
    for (unsigned d = 1; d <= DEPTH; d++)
        path[d] = path[d - 1] * LETTERS + 1;
    store(kinds, 0, path[DEPTH], 0);
    store(kinds, 1, path[DEPTH], 0);
    for (unsigned d = 1; d <= DEPTH - 2; d++)
        drop(kinds, 1, path[d]);
    for (unsigned d = 1; d <= DEPTH; d++)
        assert_int_equal(kv_tree_reach(tree, chain_of[path[d]]), KV_THERE);
    assert_int_equal(serves(path[3]), KV_GONE);
    drop(kinds, 1, path[DEPTH]); /* without a window's last block all is lost */
    for (unsigned d = 1; d <= DEPTH; d++)
        assert_int_equal(kv_tree_reach(tree, chain_of[path[d]]), KV_GONE);
    check();
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows_and_states),
        cmocka_unit_test(test_two_attention_groups_and_an_ignored_group),
        cmocka_unit_test(test_groups_with_other_block_sizes_are_unsure),
        cmocka_unit_test(test_a_window_stored_by_its_last_blocks),
        cmocka_unit_test(test_a_sliding_window_that_moves_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
