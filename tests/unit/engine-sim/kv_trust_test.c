/* Answers in contradiction to events. */
#include "tests/unit/engine-sim/kv_talks.h"

/* The tree's content is compared with the answers' cached tokens. If every prompt is reported as
 * fully cached, half of the answers are tied, and rightly: only answers are stored then. */
static void test_events_contradicted_by_answers_are_distrusted(void **state)
{
    enum { EITHER = 2 };
    static const struct {
        struct setting setting;
        unsigned disbelieved;
    } cases[] = {
        {{.form = "vllm-0.24", .block = 16, .cache_blocks = 1500}, 0},
        {{.form = "vllm-0.24", .block = 16, .cache_blocks = 600, .copies = true}, 0}, /* preempts */
        {{.form = "vllm-0.24", .block = 16, .cache_blocks = 1500, .losses = 1}, 0},
        {{.form = "vllm-0.24", .block = 16, .cache_blocks = 1500, .untold = true}, 0},
        {{.form = "vllm-0.24", .block = 16, .cache_blocks = 1500, .lie = ZERO}, 0},
        {{.form = "vllm-0.24", .block = 16, .cache_blocks = 1500, .lie = ZERO_LATER}, 1},
        {{.form = "vllm-0.24", .block = 16, .cache_blocks = 1500, .lie = ALL}, EITHER},
        {{.form = "vllm-0.24", .block = 16, .cache_blocks = 1500, .lie = ROUNDED}, 1},
        {{.form = "vllm-0.24", .block = 128, .cache_blocks = 200, .lie = ROUNDED}, 0},
        {{.form = "sglang-0.5", .block = 64, .cache_blocks = 375, .lie = ZERO_LATER}, 1},
        {{.form = "vllm-0.24", .block = 16, .cache_blocks = 1500, .other = true}, 1},
        {{.form = "sglang-0.5", .block = 64, .cache_blocks = 375, .other = true}, 1},
        {{.form = "vllm-0.24", .block = 16, .cache_blocks = 1500, .other = true, .joins = 5}, 1},
        {{.form = "sglang-0.5", .block = 64, .cache_blocks = 375, .other = true, .joins = 5}, 1},
        /* If no block leaves the cache, only asking shows the contradiction. */
        {{.form = "vllm-0.24",
          .block = 16,
          .cache_blocks = 9000,
          .other = true,
          .joins = 50,
          .ask = 0.02},
         1},
        {{.form = "vllm-0.24", .block = 16, .cache_blocks = 9000, .joins = 50, .ask = 0.02}, 0},
        /* Messages with number 0 do not excuse a contradiction, and a restart is none. */
        {{.form = "vllm-0.24", .block = 16, .cache_blocks = 1500, .other = true, .zeros = 300}, 1},
        {{.form = "vllm-0.24", .block = 16, .cache_blocks = 1500, .other = true, .zeros = 9}, 1},
        {{.form = "vllm-0.24", .block = 16, .cache_blocks = 600, .copies = true, .restarts = 150},
         0},
        {{.form = "sglang-0.5", .block = 64, .cache_blocks = 375, .past = 25, .restarts = 500}, 0},
        /* The prompt's blocks are cached already, but the usage denies it. */
        {{.form = "sglang-0.5", .block = 1, .cache_blocks = 24000, .repeats = true}, 0},
        {{.form = "sglang-0.5", .block = 16, .cache_blocks = 6000, .repeats = true}, 0},
        {{.form = "sglang-0.5", .block = 1, .cache_blocks = 24000, .repeats = true, .joins = 5}, 0},
    };
    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool takes_long = cases[i].setting.joins > 0 || cases[i].setting.zeros > 0;
        play(40 + i, &cases[i].setting, takes_long ? STEPS : STEPS / 2);
        struct kv_reader_stats t = kv_reader_stats(w.reader);
        if (cases[i].disbelieved != EITHER)
            assert_int_equal(t.disbelieved, cases[i].disbelieved);
        assert_int_equal(kv_reader_state(w.reader) == KV_READER_CONTRADICTS, t.believed_ms > 0);
        assert_int_equal(w.said_in_vain, 0);
        if (cases[i].setting.lie == ZERO) /* which says nothing, so it is no lie */
            assert_true(tied_share() >= 95);
        if (t.believed_ms > 0) {
            kv_reader_tick(w.reader, t.believed_ms);
            assert_int_equal(kv_reader_state(w.reader), KV_READER_LIVE);
            assert_false(kv_reader_stats(w.reader).tree.whole); /* the tree begins anew */
        }
        world_end();
    }
}

/* Each conversation finds nothing once, and afterwards finds the newly stored blocks. */
static void test_a_silently_emptied_cache_is_detected(void **state)
{
    static const struct setting setting = {
        .form = "vllm-0.24", .block = 16, .cache_blocks = 1500, .forgets = true};
    (void)state;
    play(50, &setting, STEPS / 2);
    struct kv_reader_stats t = kv_reader_stats(w.reader);
    assert_in_range(t.contradicted, 5, TALKS);
    assert_int_equal(t.tied, t.told);
    assert_true(right_share() >= 95);
    world_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events_contradicted_by_answers_are_distrusted),
        cmocka_unit_test(test_a_silently_emptied_cache_is_detected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
