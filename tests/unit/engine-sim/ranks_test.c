#include "tests/lib/test.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "tests/engine-sim/ranks.h"
#include "tests/lib/sim_help.h"

#define MS 1000000u

enum { RANKS = 3 };

/* 1 token of prefill = 0.1 ms; a step = 10 ms. */
static const struct sim_model_config plain = {
    .prefill_tokens_per_s = 10000,
    .decode_base_ns = 10 * MS,
    .running_max = 2,
    .queued_max = 3,
    .block_tokens = 16,
    .cache_blocks = 100,
};

static struct sim_ranks ranks_of(enum sim_balance balance)
{
    struct sim_ranks s;
    sim_ranks_open(&s, &plain, RANKS, balance);
    return s;
}

/* Runs a request alone; returns the rank, and the tokens cached there. */
static unsigned run(struct sim_ranks *s, uint64_t family, int rank, uint64_t *now_ns,
                    uint64_t *cached)
{
    struct sim_request r;
    request_init(&r, family, 100, 2);
    assert_int_equal(sim_ranks_submit(s, &r, rank, *now_ns), 0);
    *now_ns += 3600ull * 1000 * MS;
    sim_ranks_advance(s, *now_ns);
    assert_ptr_equal(sim_ranks_changed(s), &r);
    assert_null(sim_ranks_changed(s));
    assert_int_equal(r.state, SIM_DONE);
    *cached = r.cached_tokens;
    request_free(&r);
    return r.rank;
}

static void test_each_rank_has_its_cache(void **state)
{
    (void)state;
    struct sim_ranks s = ranks_of(SIM_LEAST_IN_FLIGHT);
    uint64_t now_ns = 0;
    const struct {
        int rank;
        uint64_t cached;
    } asked[] = {{1, 0}, {2, 0}, {1, 96}, {0, 0}, {2, 96}};
    for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
        uint64_t cached = 0;
        assert_int_equal(run(&s, 7, asked[i].rank, &now_ns, &cached), asked[i].rank);
        assert_int_equal(cached, asked[i].cached);
    }
    assert_int_equal(sim_ranks_counters(&s).prefix_hits, 192);
    assert_int_equal(sim_model_counters(s.models[1])->prefix_hits, 96);
    assert_int_equal(sim_model_counters(s.models[0])->prefix_hits, 0);
    sim_ranks_reset(&s);
    assert_int_equal(sim_ranks_counters(&s).prefix_hits, 0);
    uint64_t cached = 1;
    (void)run(&s, 7, 2, &now_ns, &cached);
    assert_int_equal(cached, 0);
    sim_ranks_close(&s);
}

/* vLLM: an unpinned request goes to the rank with the fewest requests, whatever is cached. */
static void test_the_least_loaded_rank(void **state)
{
    (void)state;
    struct sim_ranks s = ranks_of(SIM_LEAST_IN_FLIGHT);
    uint64_t now_ns = 0;
    uint64_t cached = 0;
    (void)run(&s, 9, 2, &now_ns, &cached);
    assert_int_equal(run(&s, 9, SIM_RANK_ANY, &now_ns, &cached), 0);
    assert_int_equal(cached, 0);

    struct sim_request r[7];
    const int pinned[] = {0, 0, -1, -1, -1, -1, -1};
    const unsigned got[] = {0, 0, 1, 2, 1, 2, 0};
    for (size_t i = 0; i < ARRAY_LEN(r); i++) {
        request_init(&r[i], i, 1000, 1);
        assert_int_equal(sim_ranks_submit(&s, &r[i], pinned[i], now_ns), 0);
        assert_int_equal(r[i].rank, got[i]);
    }
    assert_int_equal(sim_ranks_running(&s), 3);
    assert_int_equal(sim_ranks_waiting(&s), 4);
    sim_ranks_abort(&s, &r[5], now_ns);
    struct sim_request more;
    request_init(&more, 50, 10, 1);
    assert_int_equal(sim_ranks_submit(&s, &more, SIM_RANK_ANY, now_ns), 0);
    assert_int_equal(more.rank, 2);
    sim_ranks_advance(&s, now_ns + 3600ull * 1000 * MS);
    for (size_t i = 0; i < ARRAY_LEN(r); i++)
        request_free(&r[i]);
    request_free(&more);
    sim_ranks_close(&s);
}

/* SGLang: the ranks in turn, whatever their load. */
static void test_round_robin(void **state)
{
    (void)state;
    struct sim_ranks s = ranks_of(SIM_ROUND_ROBIN);
    uint64_t now_ns = 0;
    uint64_t cached = 0;
    const int asked[] = {-1, -1, 2, 2, -1, 0, -1, -1};
    const unsigned got[] = {0, 1, 2, 2, 2, 0, 0, 1};
    for (size_t i = 0; i < ARRAY_LEN(asked); i++)
        assert_int_equal(run(&s, i, asked[i], &now_ns, &cached), got[i]);
    sim_ranks_reset(&s);
    assert_int_equal(run(&s, 0, SIM_RANK_ANY, &now_ns, &cached), 0);
    sim_ranks_close(&s);
}

/* Ranks do not wait for each other, and each has a separate limit. */
static void test_ranks_compute_side_by_side(void **state)
{
    (void)state;
    struct sim_ranks s = ranks_of(SIM_LEAST_IN_FLIGHT);
    struct sim_request r[5];
    const uint64_t tokens[] = {100, 50, 100, 100, 100};
    const int rank[] = {0, 1, 0, 0, 0};
    assert_true(sim_ranks_next_event_ns(&s) == SIM_NEVER);
    for (size_t i = 0; i < ARRAY_LEN(r); i++) {
        request_init(&r[i], i, tokens[i], 1);
        assert_int_equal(sim_ranks_submit(&s, &r[i], rank[i], 0), i == 4 ? ERR_FULL : 0);
    }
    assert_int_equal(r[4].rank, 0);
    assert_int_equal(sim_ranks_next_event_ns(&s), 5 * MS);
    sim_ranks_advance(&s, 5 * MS);
    assert_ptr_equal(sim_ranks_changed(&s), &r[1]);
    assert_null(sim_ranks_changed(&s));
    assert_int_equal(sim_ranks_next_event_ns(&s), 10 * MS);
    sim_ranks_advance(&s, 30 * MS);
    assert_ptr_equal(sim_ranks_changed(&s), &r[0]);
    assert_ptr_equal(sim_ranks_changed(&s), &r[2]);
    assert_ptr_equal(sim_ranks_changed(&s), &r[3]);
    assert_int_equal(sim_ranks_counters(&s).rejected, 1);
    for (size_t i = 0; i < ARRAY_LEN(r); i++)
        request_free(&r[i]);
    sim_ranks_close(&s);
}

static void test_no_counter_is_forgotten(void **state)
{
    (void)state;
    uint64_t numbers[sizeof(struct sim_counters) / sizeof(uint64_t)];
    struct sim_counters one;
    struct sim_counters sum = {0};
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        numbers[i] = i + 1;
    memcpy(&one, numbers, sizeof one);
    sim_counters_add(&sum, &one);
    sim_counters_add(&sum, &one);
    memcpy(numbers, &sum, sizeof sum);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        assert_int_equal(numbers[i], 2 * (i + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_rank_has_its_cache),
        cmocka_unit_test(test_the_least_loaded_rank),
        cmocka_unit_test(test_round_robin),
        cmocka_unit_test(test_ranks_compute_side_by_side),
        cmocka_unit_test(test_no_counter_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
