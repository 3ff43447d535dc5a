/* Accuracy of a reader's knowledge of an engine's cache. */
#include "tests/unit/engine-sim/kv_talks.h"

static void test_beliefs_about_checkpoints_are_right(void **state)
{
    static const struct {
        struct setting setting;
        double right_least;
    } cases[] = {
        {{.form = "vllm-0.24", .block = 16, .cache_blocks = 1500, .one_at_a_time = true}, 99.5},
        {{.form = "vllm-0.24", .block = 16, .cache_blocks = 1500}, 99},
        {{.form = "vllm-0.20", .block = 16, .cache_blocks = 1500, .past = 25, .copies = true}, 99},
        {{.form = "vllm-0.9", .block = 32, .cache_blocks = 750, .past = 25, .copies = true}, 99},
        {{.form = "sglang-0.5", .block = 64, .cache_blocks = 375, .past = 25, .copies = true}, 98},
        {{.form = "sglang-0.5.15", .block = 256, .cache_blocks = 100, .past = 25, .copies = true},
         99},
    };
    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        play(i + 1, &cases[i].setting, STEPS);
        assert_int_equal(kv_reader_stats(w.reader).disbelieved, 0);
        assert_true(right_share() >= cases[i].right_least);
        assert_true(wrong_gone_share() <= 0.5);
        world_end();
    }
}

/* As in a real vLLM. The event of an answer's last block comes after the answer. The next turn of
 * the conversation goes on behind the block before the router reports the answer. If the cache
 * turns over within a second, a second look is too late. */
static void test_answers_and_events_in_any_order(void **state)
{
    static const struct setting settings[] = {
        {.form = "vllm-0.24", .block = 32, .cache_blocks = 300, .events_late = true},
        {.form = "vllm-0.24", .block = 32, .cache_blocks = 900, .late_ms = 100},
        {.form = "vllm-0.24", .block = 16, .cache_blocks = 1800, .copies = true, .late_ms = 60},
    };
    (void)state;
    for (unsigned i = 0; i < sizeof settings / sizeof *settings; i++) {
        play(20 + i, &settings[i], STEPS / 2);
        assert_true(tied_share() >= 96);
        assert_true(right_share() >= 96);
        assert_true(wrong_gone_share() <= 0.5);
        world_end();
    }
}

/* Tokens are requested for 2 % of the prompts' bytes. With large blocks, the structure alone leaves
 * most blocks unknown. */
static void test_asking_for_tokens(void **state)
{
    struct setting setting = {
        .form = "sglang-0.5", .block = 64, .cache_blocks = 375, .past = 25, .copies = true};
    double right[2] = {0, 0};
    enum { WORLDS = 3 };
    (void)state;
    for (unsigned i = 0; i < 2 * WORLDS; i++) {
        setting.ask = i % 2 * 0.02;
        play(7 + i / 2, &setting, STEPS);
        struct kv_reader_stats stats = kv_reader_stats(w.reader);
        right[i % 2] += right_share() / WORLDS;
        /* A prompt's last checkpoint counts as gone if the text behind it is gone. */
        assert_true(wrong_gone_share() <= 0.2);
        assert_true(i % 2 == 0 ? stats.asked == 0 : stats.asked >= 20 && stats.asked_wrong <= 1);
        assert_true((double)w.bytes_asked <= setting.ask * (double)w.bytes + 2 * BYTES);
        world_end();
    }
    assert_true(right[1] >= 99 && right[1] > right[0]);
}

/* Without cached tokens, times and known text must suffice. */
static void test_answers_without_cached_token_counts(void **state)
{
    static const struct setting setting = {.form = "vllm-0.24",
                                           .block = 16,
                                           .cache_blocks = 1500,
                                           .past = 25,
                                           .copies = true,
                                           .untold = true};
    (void)state;
    play(7, &setting, STEPS);
    assert_true(right_share() >= 98);
    assert_true(wrong_gone_share() <= 0.5);
    world_end();
}

/* Missed events leave doubt: no present checkpoint counts as gone. */
static void test_lost_messages(void **state)
{
    static const struct setting setting = {.form = "vllm-0.24",
                                           .block = 16,
                                           .cache_blocks = 1500,
                                           .past = 25,
                                           .losses = 1,
                                           .copies = true};
    (void)state;
    play(8, &setting, STEPS);
    assert_true(wrong_gone_share() <= 0.5);
    world_end();
}

/* Without a replay. Blocks with missed events have no place in the tree. An answer with tokens
 * shows their place, and blocks computed since are certain at once. */
static void test_a_late_reader(void **state)
{
    static const struct {
        struct setting setting;
        double tied_least, right_least;
    } cases[] = {
        {{.form = "vllm-0.24", .block = 16, .cache_blocks = 1500, .joins = 25}, 60, 70},
        {{.form = "vllm-0.24", .block = 16, .cache_blocks = 600, .copies = true, .joins = 25},
         60,
         75},
        {{.form = "sglang-0.5", .block = 64, .cache_blocks = 375, .past = 25, .joins = 25}, 70, 80},
        {{.form = "vllm-0.24", .block = 16, .cache_blocks = 1500, .joins = 25, .ask = 0.02},
         85,
         90},
        {{.form = "vllm-0.24", .block = 16, .cache_blocks = 9000, .joins = 25, .ask = 0.02},
         70,
         99},
    };
    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        play(60 + i, &cases[i].setting, STEPS);
        assert_int_equal(kv_reader_stats(w.reader).disbelieved, 0);
        assert_true(tied_share() >= cases[i].tied_least);
        assert_true(right_share() >= cases[i].right_least);
        assert_true(wrong_gone_share() <= 0.2);
        /* The reader knows of evictions. */
        assert_true(kv_reader_stats(w.reader).gone >= 5000 || cases[i].setting.cache_blocks > 6000);
        world_end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_beliefs_about_checkpoints_are_right),
        cmocka_unit_test(test_asking_for_tokens),
        cmocka_unit_test(test_answers_and_events_in_any_order),
        cmocka_unit_test(test_answers_without_cached_token_counts),
        cmocka_unit_test(test_lost_messages),
        cmocka_unit_test(test_a_late_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
