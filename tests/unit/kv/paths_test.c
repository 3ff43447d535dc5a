#include "node/kv/paths.h"

#include "tests/lib/test.h"

#include "base/check.h"
#include "base/checkpoint.h"

/* Prompts are texts of letters; a letter is a block of tokens, and four of them are 256 bytes. */
enum { BLOCK = 16, LETTER_BYTES = 64, POINT_LETTERS = 4, ANCHORS = 64 };

static struct hash_secret secret;
static struct kv_tree *tree;
static struct kv_paths *paths;
static struct kv_anchor_user listener;
static struct {
    uint64_t id, chain;
} anchors[ANCHORS];
static unsigned anchor_count;

static void on_anchored(void *context, uint64_t id, uint8_t code, uint64_t chain)
{
    (void)context;
    (void)code;
    for (unsigned i = 0; i < anchor_count; i++) {
        if (anchors[i].id == id) {
            anchors[i].chain = chain;
            return;
        }
    }
    assert_true(anchor_count < ANCHORS);
    anchors[anchor_count].id = id;
    anchors[anchor_count++].chain = chain;
}

static void begin(uint32_t points_max)
{
    hash_secret_from_seed(&secret, 1);
    anchor_count = 0;
    assert_int_equal(kv_tree_create(&tree, NULL, &secret, 1000), 0);
    assert_int_equal(kv_paths_create(&paths, points_max), 0);
    listener = (struct kv_anchor_user){.anchored = on_anchored};
    kv_paths_listen(paths, &listener);
}

static void end(void)
{
    kv_paths_check(paths);
    kv_tree_check(tree);
    kv_paths_unlisten(paths, &listener);
    kv_paths_destroy(paths);
    kv_tree_destroy(tree);
}

static uint64_t id_of(const char *text, size_t len)
{
    return hash64(&secret, text, len) & 0xffffffffffff;
}

static uint64_t chain_of(const char *text, size_t len)
{
    uint64_t chain = kv_chain_root(&secret, BLOCK, 0);
    for (size_t i = 0; i < len; i++)
        chain = kv_chain(&secret, chain, (uint64_t)(unsigned char)text[i] + 1);
    return chain;
}

static void store(const char *text)
{
    uint64_t hashes[64], digests[64];
    size_t len = strlen(text);
    for (size_t i = 0; i < len; i++) {
        hashes[i] = id_of(text, i + 1);
        digests[i] = (uint64_t)(unsigned char)text[i] + 1;
    }
    struct kv_event e = {.change = KV_STORED,
                         .group = KV_GROUP_NONE,
                         .block_tokens = BLOCK,
                         .count = (uint32_t)len,
                         .hashes = hashes,
                         .digests = digests};
    kv_tree_apply(tree, &e);
}

/* Begins like a late reader: the blocks before `from` were cached already. */
static void begin_late(const char *text, uint32_t from)
{
    uint64_t hashes[64], digests[64];
    size_t len = strlen(text);
    kv_tree_destroy(tree);
    assert_int_equal(kv_tree_create(&tree, NULL, &secret, 1000), 0);
    for (size_t i = from; i < len; i++) {
        hashes[i - from] = id_of(text, i + 1);
        digests[i - from] = (uint64_t)(unsigned char)text[i] + 1;
    }
    struct kv_event e = {.change = KV_STORED,
                         .group = KV_GROUP_NONE,
                         .block_tokens = BLOCK,
                         .count = (uint32_t)len - from,
                         .hashes = hashes,
                         .digests = digests,
                         .has_parent = true,
                         .parent = id_of(text, from)};
    kv_tree_clock(tree, 1);
    kv_tree_apply(tree, &e);
    const struct kv_fronts fronts = {1, {{from, chain_of(text, from), digests[0]}}};
    assert_true(kv_tree_fronts(tree, &fronts, 0));
}

static unsigned points_of(const char *text, uint64_t *ids, uint8_t *codes)
{
    unsigned count = (unsigned)strlen(text) / POINT_LETTERS;
    for (unsigned i = 0; i < count; i++) {
        ids[i] = id_of(text, (size_t)(i + 1) * POINT_LETTERS);
        codes[i] = checkpoint_code(i);
    }
    return count;
}

static bool join(const char *text)
{
    uint64_t ids[16];
    uint8_t codes[16];
    unsigned count = points_of(text, ids, codes);
    return kv_paths_join(paths, 0, ids, codes, count);
}

static int tie(const char *text, unsigned tokens)
{
    size_t len = strlen(text), whole = len / POINT_LETTERS * POINT_LETTERS;
    struct kv_tree_place place = kv_tree_find(tree, chain_of(text, tokens / BLOCK));
    assert_true(place.depth > 0);
    int anchored = kv_paths_tie(paths, &listener, id_of(text, whole),
                                (uint32_t)(len - whole) * LETTER_BYTES, tokens, BLOCK, tree, place);
    kv_paths_check(paths);
    return anchored;
}

/* Ties a prompt with the blocks of `block_text`, ending `letters` letters behind that text's last
 * checkpoint. */
static int tie_behind(const char *text, unsigned letters, const char *block_text)
{
    size_t len = strlen(block_text);
    struct kv_tree_place place = kv_tree_find(tree, chain_of(block_text, len));
    assert_true(place.depth > 0);
    return kv_paths_tie(paths, &listener, id_of(text, strlen(text)), letters * LETTER_BYTES,
                        (uint32_t)len * BLOCK, BLOCK, tree, place);
}

/* The checkpoint behind `letters` letters of `text` must be behind `blocks` blocks of
 * `block_text`. */
static void assert_anchor_is(const char *text, unsigned letters, const char *block_text,
                             unsigned blocks)
{
    for (unsigned i = 0; i < anchor_count; i++) {
        if (anchors[i].id == id_of(text, letters)) {
            assert_true(anchors[i].chain == chain_of(block_text, blocks));
            return;
        }
    }
    fail_msg("no anchor at %u letters of %s", letters, text);
}

static void assert_anchor(const char *text, unsigned letters, unsigned blocks)
{
    assert_anchor_is(text, letters, text, blocks);
}

static void test_checkpoints_are_anchored_at_their_bytes(void **state)
{
    (void)state;
    begin(1000);
    store("abcdefghij");
    assert_int_equal(tie("abcdefghij", 10 * BLOCK), ERR_NOT_FOUND);
    assert_true(join("abcdefghij"));
    assert_int_equal(tie("abcdefghij", 10 * BLOCK + 3), 2);
    assert_anchor("abcdefghij", 4, 4);
    assert_anchor("abcdefghij", 8, 10); /* the last checkpoint moves with the whole prompt */
    assert_int_equal(tie("abcdefghij", 10 * BLOCK + 3), 0);
    assert_int_equal(kv_paths_stats(paths).anchors, 2);
    /* The next turn begins where this turn ended. */
    store("abcdefghijklmnop");
    assert_true(join("abcdefghijklmnop"));
    assert_int_equal(tie("abcdefghijklmnop", 16 * BLOCK), 2);
    assert_anchor("abcdefghijklmnop", 12, 12);
    assert_anchor("abcdefghijklmnop", 16, 16);
    end();
}

/* The four shared letters of the text are two blocks. At first the share of the bytes places the
 * anchor; another prompt shows that the place is too far on. */
static void test_an_anchor_moves_to_the_fork_of_prompts(void **state)
{
    (void)state;
    begin(1000);
    store("abXXXXXX");
    store("abYYYYYY");
    assert_true(join("tttthhhh"));
    assert_true(join("ttttkkkk"));
    struct kv_tree_place one = kv_tree_find(tree, chain_of("abXXXXXX", 8));
    struct kv_tree_place two = kv_tree_find(tree, chain_of("abYYYYYY", 8));
    assert_int_equal(
        kv_paths_tie(paths, &listener, id_of("tttthhhh", 8), 0, 8 * BLOCK, BLOCK, tree, one), 2);
    assert_anchor_is("tttt", 4, "abXX", 4);
    assert_int_equal(
        kv_paths_tie(paths, &listener, id_of("ttttkkkk", 8), 0, 8 * BLOCK, BLOCK, tree, two), 2);
    assert_anchor_is("tttt", 4, "ab", 2);
    assert_anchor_is("ttttkkkk", 8, "abYYYYYY", 8);
    assert_int_equal(kv_paths_stats(paths).moved, 1);
    end();
}

/* Two prompts with different texts end behind the same checkpoint. The checkpoint moves back to
 * their common part, and a third prompt changes nothing. */
static void test_the_last_checkpoint_of_two_prompts(void **state)
{
    (void)state;
    begin(1000);
    store("abcdefgh");
    store("abcdefXY");
    store("abcdefZZ");
    assert_true(join("abcd"));
    assert_int_equal(tie_behind("abcd", 4, "abcdefgh"), 1);
    assert_anchor_is("abcd", 4, "abcdefgh", 8);
    assert_int_equal(tie_behind("abcd", 4, "abcdefXY"), 1);
    assert_anchor_is("abcd", 4, "abcdef", 6);
    assert_int_equal(tie_behind("abcd", 4, "abcdefZZ"), 0);
    assert_int_equal(kv_paths_stats(paths).moved, 1);
    /* The prompt's own text keeps the place, and so does the text behind. */
    store("abcdefXYijklmnop");
    assert_true(join("abcdefXYijklmnop"));
    assert_true(tie("abcdefXYijklmnop", 16 * BLOCK) > 0);
    assert_anchor("abcdefXYijklmnop", 8, 8);
    end();
}

/* A prompt's last checkpoint is at the end of the whole prompt, so behind those of longer texts. */
static void test_prompts_part_in_front_of_a_whole_prompt(void **state)
{
    (void)state;
    begin(1000);
    store("ssssabcdefghijkl");
    store("ssssaZZZZZZZZZZZ");
    assert_true(join("ssssabcdefghijkl") && join("ssssabcdefghXXXX"));
    assert_int_equal(tie_behind("ssss", 0, "ssss"), 1);
    assert_int_equal(tie_behind("ssssabcd", 8, "ssssabcdefghijkl"), 1);
    assert_true(tie("ssssabcdefghijkl", 16 * BLOCK) > 0);
    assert_anchor_is("ssssabcd", 8, "ssssabcdefghijkl", 16);
    assert_anchor("ssssabcdefgh", 12, 12);
    assert_true(tie_behind("ssssabcdefghXXXX", 0, "ssssaZZZZZZZZZZZ") > 0);
    assert_int_equal(kv_paths_stats(paths).moved, 2);
    assert_anchor("ssss", 4, 4);
    assert_anchor_is("ssssabcd", 8, "ssss", 4);
    end();
}

static void test_a_text_fits_only_its_known_blocks(void **state)
{
    (void)state;
    begin(1000);
    store("abcdefghijklmnop");
    store("abcdXfghijklmnop");
    assert_true(join("abcdefghijklmnop"));
    assert_true(tie("abcdefghijklmnop", 16 * BLOCK) > 0);
    struct kv_tree_place own = kv_tree_find(tree, chain_of("abcdefghijklmnop", 16));
    struct kv_tree_place other = kv_tree_find(tree, chain_of("abcdXfghijklmnop", 16));
    assert_true(kv_paths_fits(paths, id_of("abcdefghijklmnop", 16), tree, own));
    assert_false(kv_paths_fits(paths, id_of("abcdefghijklmnop", 16), tree, other));
    assert_true(kv_paths_fits(paths, 12345, tree, other)); /* 12345 is unknown to the tree */
    end();
}

/* An engine loses credit: anchors reported by others too, or only by others, stay. */
static void test_a_distrusted_engines_anchors_are_withdrawn(void **state)
{
    (void)state;
    struct kv_anchor_user other = {.anchored = on_anchored};
    begin(1000);
    kv_paths_listen(paths, &other);
    store("abcdefgh");
    store("klmnopqr");
    assert_true(join("abcdefgh"));
    assert_true(join("klmnopqr"));
    assert_int_equal(tie("abcdefgh", 8 * BLOCK), 2);
    assert_int_equal(tie("klmnopqr", 8 * BLOCK), 2);
    struct kv_tree_place place = kv_tree_find(tree, chain_of("klmnopqr", 8));
    assert_int_equal(
        kv_paths_tie(paths, &other, id_of("klmnopqr", 8), 0, 8 * BLOCK, BLOCK, tree, place), 0);
    kv_paths_disown(paths, &listener);
    kv_paths_check(paths);
    assert_int_equal(kv_paths_anchored(paths, id_of("abcdefgh", 8)), 0);
    assert_int_equal(kv_paths_anchored(paths, id_of("klmnopqr", 8)), id_of("klmnopqr", 8));
    kv_paths_disown(paths, &other);
    assert_int_equal(kv_paths_anchored(paths, id_of("klmnopqr", 8)), id_of("klmnopqr", 8));
    kv_paths_unlisten(paths, &other);
    end();
}

/* All chains have the same block size. */
static void test_ties_with_another_block_size_are_skipped(void **state)
{
    (void)state;
    begin(1000);
    store("abcdefgh");
    assert_true(join("abcdefgh"));
    assert_int_equal(tie("abcdefgh", 8 * BLOCK), 2);
    struct kv_tree_place place = kv_tree_find(tree, chain_of("abcdefgh", 4));
    assert_int_equal(
        kv_paths_tie(paths, &listener, id_of("abcdefgh", 8), 0, 8 * BLOCK, 2 * BLOCK, tree, place),
        ERR_RANGE);
    assert_int_equal(kv_paths_size(paths), BLOCK);
    end();
}

/* The anchors go with the size, the checkpoints stay: ties continue from there. */
static void test_another_block_size_drops_the_anchors(void **state)
{
    struct kv_tree_place place;
    (void)state;
    begin(1000);
    store("abcdefgh");
    assert_true(join("abcdefgh"));
    kv_paths_choose(paths, BLOCK);
    assert_int_equal(tie("abcdefgh", 8 * BLOCK), 2);
    kv_paths_choose(paths, BLOCK); /* unchanged */
    assert_int_equal(kv_paths_stats(paths).anchors, 2);
    kv_paths_choose(paths, 2 * BLOCK);
    kv_paths_check(paths);
    assert_int_equal(kv_paths_size(paths), 2 * BLOCK);
    assert_int_equal(kv_paths_stats(paths).anchors, 0);
    assert_int_equal(kv_paths_anchored(paths, id_of("abcdefgh", 8)), 0);
    place = kv_tree_find(tree, chain_of("abcdefgh", 4));
    assert_int_equal(
        kv_paths_tie(paths, &listener, id_of("abcdefgh", 8), 0, 8 * BLOCK, 2 * BLOCK, tree, place),
        2);
    kv_paths_check(paths);
    assert_anchor("abcdefgh", 8, 4);
    end();
}

/* Another size begins with the same checkpoints, and has separate anchors. */
static void test_a_copy_for_another_block_size(void **state)
{
    struct kv_paths *copy;
    struct buf kept = {0};
    uint32_t cursor = 0;
    (void)state;
    begin(1000);
    store("abcdefgh");
    assert_true(join("abcdefgh"));
    assert_int_equal(tie("abcdefgh", 8 * BLOCK), 2);
    assert_int_equal(kv_paths_copy(&copy, paths), 0);
    kv_paths_check(copy);
    assert_true(kv_paths_size(copy) == 0 && !kv_paths_is_used(copy) && kv_paths_is_used(paths));
    assert_int_equal(kv_paths_stats(copy).points, 2);
    assert_int_equal(kv_paths_stats(copy).anchors, 0);
    struct kv_tree_place place = kv_tree_find(tree, chain_of("abcdefgh", 4));
    assert_int_equal(
        kv_paths_tie(copy, &listener, id_of("abcdefgh", 8), 0, 8 * BLOCK, 2 * BLOCK, tree, place),
        2);
    kv_paths_check(copy);
    /* If an earlier life kept anchors of the same size, existing points get them. */
    assert_int_equal(kv_paths_keep(copy, &cursor, &kept), 1);
    assert_int_equal(kv_paths_kept_size(buf_slice(&kept)), 2 * BLOCK);
    assert_int_equal(kv_paths_kept_size(SLICE("no")), 0);
    kv_paths_destroy(copy);
    assert_int_equal(kv_paths_copy(&copy, paths), 0);
    assert_false(kv_paths_recall(copy, buf_slice(&kept)));
    kv_paths_check(copy);
    assert_int_equal(kv_paths_stats(copy).anchors, 2);
    assert_int_equal(kv_paths_stats(paths).anchors, 2);
    kv_paths_destroy(copy);
    buf_free(&kept);
    end();
}

static void test_the_ends_of_old_prompts_are_evicted(void **state)
{
    char text[] = "aaaabbbbccccdddd";
    (void)state;
    begin(KV_PATH_LENGTH_MAX + 1);
    for (unsigned i = 0; i < 1000; i++) {
        text[4] = (char)('a' + i % 26);
        text[5] = (char)('a' + i / 26 % 26);
        text[6] = (char)('a' + i / 676);
        assert_true(join(text));
    }
    kv_paths_check(paths);
    struct kv_paths_stats s = kv_paths_stats(paths);
    assert_int_equal(s.points, KV_PATH_LENGTH_MAX + 1);
    assert_true(s.dropped > 0);
    uint64_t id = id_of("not known", 9);
    uint8_t code = 0;
    assert_false(kv_paths_join(paths, id, &id, &code, 1));
    assert_int_equal(kv_paths_stats(paths).orphans, 1);
    end();
}

static void on_counted(void *context, uint64_t id, uint8_t code, uint64_t chain)
{
    (void)code;
    unsigned *count = context;
    for (unsigned i = 0; i < anchor_count; i++)
        *count += anchors[i].id == id && anchors[i].chain == chain;
}

static void test_anchors_survive_a_restart(void **state)
{
    (void)state;
    static const char one[] = "abcdefghijklmnop", other[] = "abcdefghijkLMNOP";
    struct buf kept = {0};
    uint32_t cursor = 0;
    unsigned same = 0;
    begin(1000);
    store(one), store(other);
    assert_true(join(one) && join(other));
    assert_true(tie(one, 16 * BLOCK) > 0 && tie(other, 16 * BLOCK) > 0);
    struct kv_paths_stats before = kv_paths_stats(paths);
    assert_int_equal(kv_paths_keep(paths, &cursor, &kept), 1);
    size_t len = kept.len;
    assert_int_equal(kv_paths_keep(paths, &cursor, &kept), 0);
    assert_int_equal(kept.len, len);
    struct kv_paths *past = paths;
    assert_int_equal(kv_paths_create(&paths, 1000), 0);
    /* The last points have no place without the points before. */
    assert_false(kv_paths_recall(paths, slice_of(kept.at, 4)));
    assert_true(kv_paths_recall(paths, buf_slice(&kept)));
    assert_false(kv_paths_recall(paths, buf_slice(&kept))); /* nothing is new */
    kv_paths_check(paths);
    assert_int_equal(kv_paths_stats(paths).points, before.points);
    assert_int_equal(kv_paths_stats(paths).anchors, before.anchors);
    struct kv_anchor_user counts = {.anchored = on_counted, .context = &same};
    cursor = 0;
    kv_paths_walk(paths, &cursor, 1000, &counts);
    assert_int_equal(same, before.anchors);
    for (size_t i = 0; i < 2 * kept.len; i++) {
        size_t cut = i / 2;
        char flipped = i % 2 == 0 ? 1 : 64;
        kept.at[cut] = (char)(kept.at[cut] ^ flipped);
        struct kv_paths *next;
        assert_int_equal(kv_paths_create(&next, 1000), 0);
        (void)kv_paths_recall(next, slice_of(kept.at, cut));
        (void)kv_paths_recall(next, buf_slice(&kept));
        kv_paths_check(next);
        kv_paths_destroy(next);
        kept.at[cut] = (char)(kept.at[cut] ^ flipped);
    }
    kv_paths_destroy(paths);
    paths = past;
    buf_free(&kept);
    end();
}

/* Another engine's reader has placed the first checkpoints. The late reader keeps these places, and
 * adds those behind known blocks. */
static void test_a_tree_without_the_first_blocks(void **state)
{
    (void)state;
    static const char text[] = "aaaabbbbccccdddd";
    begin(1000);
    assert_true(join(text));
    store("aaaabbbb");
    assert_int_equal(tie("aaaabbbb", 8 * BLOCK), 2);
    begin_late(text, 10);
    struct kv_tree_place end_of = kv_tree_find(tree, chain_of(text, 16));
    assert_int_equal(end_of.depth, 16);
    assert_true(kv_paths_fits(paths, id_of(text, 16), tree, end_of));
    assert_int_equal(tie(text, 16 * BLOCK), 2);
    assert_int_equal(kv_paths_stats(paths).moved, 0);
    assert_anchor(text, 4, 4);
    assert_anchor(text, 8, 8);
    assert_anchor(text, 12, 12);
    assert_anchor(text, 16, 16);
    assert_int_equal(kv_paths_anchored(paths, id_of(text, 4)), id_of(text, 4));
    end();
    begin(1000); /* no reader has: the first checkpoints have no place */
    assert_true(join(text));
    begin_late(text, 10);
    assert_int_equal(tie(text, 16 * BLOCK), 2);
    assert_int_equal(kv_paths_anchored(paths, id_of(text, 8)), 0);
    assert_anchor(text, 12, 12);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checkpoints_are_anchored_at_their_bytes),
        cmocka_unit_test(test_an_anchor_moves_to_the_fork_of_prompts),
        cmocka_unit_test(test_the_last_checkpoint_of_two_prompts),
        cmocka_unit_test(test_prompts_part_in_front_of_a_whole_prompt),
        cmocka_unit_test(test_a_text_fits_only_its_known_blocks),
        cmocka_unit_test(test_a_distrusted_engines_anchors_are_withdrawn),
        cmocka_unit_test(test_ties_with_another_block_size_are_skipped),
        cmocka_unit_test(test_another_block_size_drops_the_anchors),
        cmocka_unit_test(test_a_copy_for_another_block_size),
        cmocka_unit_test(test_the_ends_of_old_prompts_are_evicted),
        cmocka_unit_test(test_a_tree_without_the_first_blocks),
        cmocka_unit_test(test_anchors_survive_a_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
