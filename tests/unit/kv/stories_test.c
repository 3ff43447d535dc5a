/* The owner of each block: requests as sent by agents, and an engine's stores for them. A letter is
 * a token, four are a block, and eight letters of text are a checkpoint. */
#include "node/kv/reader.h"

#include "tests/lib/test.h"

#include "base/checkpoint.h"
#include "base/hash.h"
#include "node/kv/asked.h"
#include "tests/lib/kv_messages.h"

enum { BLOCK = 4, POINT = 8, POINTS_MAX = 16, SEEN_MAX = 64 };

static struct hash_secret secret;
static struct kv_paths *paths;
static struct kv_reader *reader;
static uint64_t number, now_ms;

static struct seen {
    uint64_t id, chain;
} seen[SEEN_MAX];
static unsigned seen_count;

static bool on_gone(void *context, uint64_t id, uint8_t code)
{
    (void)context, (void)id, (void)code;
    return true;
}

static void on_present(void *context, uint64_t id, uint8_t code)
{
    (void)context, (void)id, (void)code;
}

static void on_replay(void *context, uint64_t from)
{
    (void)context, (void)from;
}

static void on_cleared(void *context)
{
    (void)context;
}

static struct kv_paths *on_paths(void *context, uint32_t block_tokens, uint64_t at_ms)
{
    (void)context, (void)block_tokens, (void)at_ms;
    return paths;
}

static const struct kv_reader_user user = {on_paths,   on_replay,  on_gone, on_present,
                                           on_cleared, on_cleared, NULL};

/* The last report on a checkpoint counts. */
static void on_anchored(void *context, uint64_t id, uint8_t code, uint64_t chain)
{
    (void)context, (void)code;
    unsigned at = 0;
    while (at < seen_count && seen[at].id != id)
        at++;
    assert_true(at < SEEN_MAX);
    seen[at] = (struct seen){id, chain};
    seen_count += at == seen_count;
}

static struct kv_anchor_user listener = {.anchored = on_anchored};

static int begin(void **state)
{
    (void)state;
    number = 0, now_ms = 1000, seen_count = 0;
    hash_secret_from_seed(&secret, 1);
    assert_int_equal(kv_paths_create(&paths, KV_PATH_LENGTH_MAX + 1), 0);
    kv_paths_listen(paths, &listener);
    assert_int_equal(kv_reader_create(&reader, &user, &secret, 1000, false), 0);
    kv_reader_speaks(reader, true);
    return 0;
}

static int end(void **state)
{
    (void)state;
    kv_reader_check(reader);
    kv_reader_destroy(reader);
    kv_paths_destroy(paths);
    buf_free(&kv_message);
    return 0;
}

/* --- the engine ------------------------------------------------------------------------------ */

static uint64_t hash_of(const char *text, size_t letters)
{
    return hash64(&secret, text, letters) >> 1;
}

/* Stores blocks `from` to `to` of `text`, in a separate message. */
static void stores(const char *text, unsigned from, unsigned to)
{
    msgpack_packer p = kv_message_begin(1);
    msgpack_pack_array(&p, 5);
    kv_message_text(&p, "BlockStored");
    msgpack_pack_array(&p, to - from);
    for (unsigned i = from + 1; i <= to; i++)
        msgpack_pack_uint64(&p, hash_of(text, (size_t)i * BLOCK));
    if (from > 0)
        msgpack_pack_uint64(&p, hash_of(text, (size_t)from * BLOCK));
    else
        msgpack_pack_nil(&p);
    msgpack_pack_array(&p, (size_t)(to - from) * BLOCK);
    for (unsigned i = from * BLOCK; i < to * BLOCK; i++)
        msgpack_pack_uint32(&p, (unsigned char)text[i]);
    msgpack_pack_uint32(&p, BLOCK);
    kv_reader_live(reader, number++, buf_slice(&kv_message), now_ms);
}

static void removes(const char *text, unsigned block)
{
    msgpack_packer p = kv_message_begin(1);
    msgpack_pack_array(&p, 2);
    kv_message_text(&p, "BlockRemoved");
    msgpack_pack_array(&p, 1);
    msgpack_pack_uint64(&p, hash_of(text, (size_t)block * BLOCK));
    kv_reader_live(reader, number++, buf_slice(&kv_message), now_ms);
}

/* --- the routers ----------------------------------------------------------------------------- */

static unsigned points_of(const char *prompt, uint64_t *ids)
{
    unsigned count = (unsigned)strlen(prompt) / POINT;
    assert_true(count <= POINTS_MAX);
    for (unsigned i = 0; i < count; i++)
        ids[i] = hash_of(prompt, (size_t)(i + 1) * POINT) & 0xffffffffffff;
    return count;
}

static void sent(const char *prompt)
{
    uint64_t ids[POINTS_MAX];
    uint8_t codes[POINTS_MAX] = {0}; /* each a block of text behind the last */
    unsigned count = points_of(prompt, ids);
    assert_true(kv_paths_join(paths, 0, ids, codes, count));
}

/* The request began 200 ms ago. */
static void answered(const char *prompt, uint32_t cached, uint32_t output)
{
    uint64_t ids[POINTS_MAX];
    unsigned count = points_of(prompt, ids);
    uint32_t letters = (uint32_t)strlen(prompt);
    struct kv_told told = {.end = ids[count - 1],
                           .tail_bytes = letters % POINT * CHECKPOINT_BLOCK_BYTES / POINT,
                           .sent_ms = now_ms - 200,
                           .ended_ms = now_ms,
                           .prompt_tokens = letters,
                           .cached_tokens = cached,
                           .output_tokens = output,
                           .well = true};
    kv_reader_told(reader, &told, now_ms);
}

/* Waiting answers are given up; the next requests have nothing to do with them. */
static void later(void)
{
    now_ms += KV_TOLD_WAIT_MS;
    kv_reader_tick(reader, now_ms);
    now_ms += 10000;
}

static uint64_t chain_of(const char *text, unsigned blocks)
{
    struct kv_asked a;
    kv_asked_begin(&a, &secret, BLOCK);
    for (unsigned i = 0; i < blocks * BLOCK; i++)
        kv_asked_token(&a, (unsigned char)text[i]);
    kv_asked_end(&a);
    return a.chain;
}

static bool is_on_its_way(const char *prompt, uint64_t chain)
{
    for (unsigned blocks = 1; blocks <= strlen(prompt) / BLOCK; blocks++) {
        if (chain_of(prompt, blocks) == chain)
            return true;
    }
    return false;
}

/* The number of the prompt's checkpoints with an anchor, which must be a block of the prompt. */
static unsigned anchored(const char *prompt)
{
    uint64_t ids[POINTS_MAX];
    unsigned count = points_of(prompt, ids), found = 0;
    for (unsigned i = 0; i < count; i++) {
        for (unsigned j = 0; j < seen_count; j++) {
            if (seen[j].id != ids[i])
                continue;
            assert_true(is_on_its_way(prompt, seen[j].chain));
            found++;
        }
    }
    return found;
}

static struct kv_reader_stats stats(void)
{
    return kv_reader_stats(reader);
}

/* --- stories --------------------------------------------------------------------------------- */

#define SYSTEM "systemsystemsyst" /* four blocks, two checkpoints */

/* The system text was computed for the first request. */
static void system_is_known(void)
{
    static const char prompt[] = SYSTEM "zzzzzzzz";
    sent(prompt);
    stores(prompt, 0, 6);
    answered(prompt, 0, 2);
    assert_int_equal(anchored(prompt), 3);
    later();
}

static void two_requests_of_a_session_at_once(void **state)
{
    (void)state;
    static const char one[] = SYSTEM "aaaaaaaa", two[] = SYSTEM "bbbbbbbbbbbbbbbb";
    system_is_known();
    sent(one), sent(two);
    stores(two, 4, 5);
    stores(one, 4, 6);
    stores(two, 5, 8);
    answered(two, 16, 2);
    answered(one, 16, 3);
    assert_int_equal(stats().tied, 3);
    assert_int_equal(anchored(one), 3);
    assert_int_equal(anchored(two), 4);
}

/* The same length, at the same moment: no evidence distinguishes the two. */
static void identical_requests_are_not_tied(void **state)
{
    (void)state;
    static const char one[] = SYSTEM "aaaaaaaa", two[] = SYSTEM "bbbbbbbb";
    system_is_known();
    sent(one), sent(two);
    stores(one, 4, 6);
    stores(two, 4, 6);
    answered(one, 16, 2);
    answered(two, 16, 2);
    later();
    assert_int_equal(stats().tied, 1);
    assert_int_equal(stats().unclear, 2);
    assert_int_equal(anchored(one), 2);
    assert_int_equal(anchored(two), 2);
}

/* Sub-agents inherit all text of their parent, and go on while the parent waits, and after that. */
static void sub_agents_of_one_conversation(void **state)
{
    (void)state;
    static const char parent[] = SYSTEM "parentpa", next[] = SYSTEM "parentpaANSWnextnext",
                      one[] = SYSTEM "parentpaANSWoneoneon", two[] = SYSTEM "parentpaANSWtwot";
    system_is_known();
    sent(parent);
    stores(next, 4, 7); /* and the answer to it */
    answered(parent, 16, 5);
    sent(one), sent(two);
    stores(one, 7, 9);
    stores(two, 7, 8);
    now_ms += 100;
    answered(two, 28, 3);
    sent(next); /* as long as the first */
    stores(next, 7, 9);
    now_ms += 100;
    answered(one, 28, 2);
    answered(next, 28, 2);
    later();
    assert_int_equal(stats().tied, 3);
    assert_int_equal(stats().unclear, 2);
    assert_int_equal(anchored(parent), 3);
    assert_int_equal(anchored(two), 4);
    assert_int_equal(anchored(one), 3);
    assert_int_equal(anchored(next), 3);
}

/* The answers' blocks go on behind the prompt, and no router reports them, because the usage covers
 * both answers (node/route/request.c). */
static void two_answers_of_one_request(void **state)
{
    (void)state;
    static const char first[] = SYSTEM "ppppppppFIRSTONE", second[] = SYSTEM "ppppppppTHEOTHER",
                      beside[] = SYSTEM "qqqqqqqqqqqq";
    system_is_known();
    sent(beside);
    stores(first, 4, 6);
    stores(beside, 4, 7);
    stores(first, 6, 8);
    stores(second, 6, 8);
    answered(beside, 16, 2);
    assert_int_equal(stats().tied, 2);
    assert_int_equal(anchored(beside), 3);
    assert_int_equal(anchored(first), 2);
}

static void a_prompt_in_chunks(void **state)
{
    (void)state;
    static const char one[] = SYSTEM "aaaaaaaabbbbbbbbcccccccc", two[] = SYSTEM "dddddddd";
    system_is_known();
    sent(one), sent(two);
    stores(one, 4, 6);
    stores(two, 4, 6);
    stores(one, 6, 8);
    now_ms += 50;
    stores(one, 8, 10);
    answered(two, 16, 2);
    answered(one, 16, 2);
    assert_int_equal(stats().tied, 3);
    assert_int_equal(anchored(one), 5);
    assert_int_equal(anchored(two), 3);
}

/* The last token is not computed, and engines differ in counting a block filled by this token. */
static void answers_that_fill_a_block(void **state)
{
    (void)state;
    static const char one[] = SYSTEM "aaaaaaOO", two[] = SYSTEM "bbbbbbbb";
    system_is_known();
    sent(SYSTEM "aaaaaa");
    stores(one, 4, 6);
    answered(SYSTEM "aaaaaa", 16, 2);
    sent(two);
    stores(two, 4, 6);
    answered(two, 16, 4);
    sent(SYSTEM "cccccc"); /* the second block was not full */
    stores(SYSTEM "cccccc", 4, 5);
    answered(SYSTEM "cccccc", 16, 2);
    assert_int_equal(stats().tied, 4);
    assert_int_equal(anchored(two), 3);
}

/* While the request was computed, the beginning left by others was evicted: the tie is right, and
 * no block counts as cached. */
static void an_evicted_parent_block(void **state)
{
    (void)state;
    static const char prompt[] = SYSTEM "aaaaaaaa";
    system_is_known();
    sent(prompt);
    stores(prompt, 4, 5);
    removes(prompt, 2);
    stores(prompt, 5, 6);
    answered(prompt, 16, 2);
    assert_int_equal(stats().tied, 2);
    assert_int_equal(anchored(prompt), 3);
    const struct kv_tree *tree = kv_reader_tree(reader);
    assert_int_equal(kv_tree_reach(tree, chain_of(prompt, 6)), KV_GONE);
    assert_int_equal(kv_tree_reach(tree, chain_of(prompt, 1)), KV_THERE);
    stores(prompt, 1, 2); /* the block is back, and all behind it count */
    assert_int_equal(kv_tree_reach(tree, chain_of(prompt, 6)), KV_THERE);
}

/* The text's length was unknown: the first prompt with the text ends far behind. The second prompt
 * shows the length. */
static void a_shared_system_text(void **state)
{
    (void)state;
    static const char one[] = "sharedshared1111", two[] = "sharedshared22222222";
    sent(one);
    stores(one, 0, 4);
    answered(one, 0, 2);
    sent(two);
    stores(two, 3, 5);
    answered(two, 12, 2);
    assert_int_equal(stats().tied, 2);
    assert_int_equal(anchored(one), 2);
    assert_int_equal(anchored(two), 2);
    assert_true(kv_paths_fits(paths, hash_of(two, 16) & 0xffffffffffff, kv_reader_tree(reader),
                              kv_tree_find(kv_reader_tree(reader), chain_of(two, 5))));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(two_requests_of_a_session_at_once, begin, end),
        cmocka_unit_test_setup_teardown(identical_requests_are_not_tied, begin, end),
        cmocka_unit_test_setup_teardown(sub_agents_of_one_conversation, begin, end),
        cmocka_unit_test_setup_teardown(two_answers_of_one_request, begin, end),
        cmocka_unit_test_setup_teardown(a_prompt_in_chunks, begin, end),
        cmocka_unit_test_setup_teardown(answers_that_fill_a_block, begin, end),
        cmocka_unit_test_setup_teardown(an_evicted_parent_block, begin, end),
        cmocka_unit_test_setup_teardown(a_shared_system_text, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
