/* Signs of work: the series of an engine's metrics that show computing, and series that do not. */
#include "node/replica/work.h"

#include <stdio.h>

#include "base/check.h"
#include "node/replica/scrape.h"
#include "tests/lib/test.h"

static struct node_work_reading read_of(const char *text)
{
    struct node_scrape s;
    assert_int_equal(node_scrape_parse(slice_of_cstr(text), &s, NULL), ERR_OK);
    return s.work;
}

static bool shows_work(const char *before, const char *after)
{
    struct node_work_seen seen = {.known = 0};
    struct node_work_reading first = read_of(before), second = read_of(after);
    assert_false(node_work_take(&seen, &first)); /* the history before is unknown */
    return node_work_take(&seen, &second);
}

#define VLLM   "vllm:num_requests_running{engine=\"0\"} 1\n"
#define SGLANG "sglang:num_running_reqs{tp_rank=\"0\"} 1\n"

/* Each row of the table, as the engine writes it. */
static void each_series_of_work_shows_progress(void **state)
{
    (void)state;
    static const struct {
        const char *engine, *series;
        bool steps;
    } rows[] = {
        {VLLM, "vllm:generation_tokens_total{engine=\"0\"}", true},
        {VLLM, "vllm:iteration_tokens_total_count{engine=\"0\"}", true},
        {VLLM, "vllm:inter_token_latency_seconds_count{engine=\"0\"}", true},
        {VLLM, "vllm:time_per_output_token_seconds_count{engine=\"0\"}", true},
        {VLLM, "vllm:kv_cache_usage_perc{engine=\"0\"}", true},
        {VLLM, "vllm:gpu_cache_usage_perc{engine=\"0\"}", true},
        {VLLM, "vllm:prompt_tokens_total{engine=\"0\"}", false},
        {VLLM, "vllm:prefix_cache_queries_total{engine=\"0\"}", false},
        {VLLM, "vllm:gpu_prefix_cache_queries_total{engine=\"0\"}", false},
        {VLLM, "vllm:num_preemptions_total{engine=\"0\"}", false},
        {SGLANG, "sglang:realtime_tokens_total{mode=\"decode\",tp_rank=\"0\"}", true},
        {SGLANG, "sglang:realtime_tokens_total{mode=\"prefill_compute\",tp_rank=\"0\"}", true},
        {SGLANG, "sglang:inter_token_latency_seconds_count", true},
        {SGLANG, "sglang:gen_throughput{tp_rank=\"0\"}", true},
        {SGLANG, "sglang:num_used_tokens{tp_rank=\"0\"}", true},
        {SGLANG, "sglang:token_usage{tp_rank=\"0\"}", false},
        {SGLANG, "sglang:generation_tokens_total{is_streaming=\"true\"}", false},
        {SGLANG, "sglang:prompt_tokens_total{is_streaming=\"true\"}", false},
    };
    assert_int_equal(ARRAY_LEN(rows), NODE_WORK_TOLD);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char before[256], after[256];
        (void)snprintf(before, sizeof before, "%s%s 0.25\n", rows[i].engine, rows[i].series);
        (void)snprintf(after, sizeof after, "%s%s 0.5\n", rows[i].engine, rows[i].series);
        assert_true(shows_work(before, after));
        assert_false(shows_work(before, before));
        struct node_work_reading r = read_of(after);
        assert_int_equal(node_work_tells_steps(&r), rows[i].steps);
    }
}

/* The router's own probes raise these series, even if the core hangs; a new request moves the
 * gauges of running and waiting requests. */
static void series_raised_by_probes_show_no_progress(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "http_requests_total %d\n",
        "process_cpu_seconds_total %d\n",
        "python_gc_collections_total{generation=\"0\"} %d\n",
        "vllm:mm_cache_queries_total{engine=\"0\"} %d\n",
        "sglang:http_responses_total{status_code=\"200\"} %d\n",
        "sglang:process_cpu_seconds_total{component=\"tokenizer\"} %d\n",
        "vllm:num_requests_waiting{engine=\"0\"} %d\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        char before[256], after[256], format[160];
        (void)snprintf(format, sizeof format, "%s%s", VLLM "vllm:generation_tokens_total 7\n",
                       texts[i]);
        (void)snprintf(before, sizeof before, format, 1);
        (void)snprintf(after, sizeof after, format, 2);
        assert_false(shows_work(before, after));
    }
}

static struct node_work_reading counts(double tokens)
{
    struct node_work_reading r = node_scrape_unknown.work;
    r.value[0] = tokens;
    return r;
}

static bool take(struct node_work_seen *seen, double tokens)
{
    struct node_work_reading r = counts(tokens);
    return node_work_take(seen, &r);
}

/* Two servers behind the same port answer in turns: nothing is computed. */
static void an_alternating_counter_shows_no_progress(void **state)
{
    (void)state;
    struct node_work_seen seen = {.known = 0};
    assert_false(take(&seen, 1000));
    for (unsigned i = 0; i < 10; i++) {
        assert_false(take(&seen, 600));
        assert_false(take(&seen, 1000));
    }
    assert_true(take(&seen, 1001));
    assert_false(take(&seen, -1)); /* missing at times */
    assert_false(take(&seen, 1001));
}

/* The counter was set back, and counts on from there. */
static void a_reset_counter_counts_again(void **state)
{
    (void)state;
    struct node_work_seen seen = {.known = 0};
    assert_false(take(&seen, 1000));
    assert_false(take(&seen, 3));
    assert_false(take(&seen, 4));
    assert_false(take(&seen, 5)); /* three readings: a different counter */
    assert_true(take(&seen, 6));
}

/* SGLang's counters are missing until they count for the first time. */
static void a_new_counter_shows_work(void **state)
{
    (void)state;
    assert_true(shows_work(SGLANG "sglang:token_usage 0.1\n",
                           SGLANG "sglang:token_usage 0.1\n"
                                  "sglang:realtime_tokens_total{mode=\"decode\"} 40\n"));
}

/* A router knew of work from another router, and reads for itself the first time: nothing moved in
 * between. */
static void a_first_own_reading_shows_no_progress(void **state)
{
    (void)state;
    struct node_work_seen seen = {.known = 0};
    struct node_work_reading told = node_scrape_unknown.work;
    told.value[NODE_WORK_TOLD] = 7;
    assert_false(node_work_take(&seen, &told));
    struct node_work_reading own =
        read_of(SGLANG "sglang:realtime_tokens_total{mode=\"decode\"} 40\n");
    assert_false(node_work_take(&seen, &own));
    own = read_of(SGLANG "sglang:realtime_tokens_total{mode=\"decode\"} 41\n");
    assert_true(node_work_take(&seen, &own));
}

/* Only the first of the tensor ranks counts, but all data-parallel ranks, each by itself. */
static void each_rank_shows_its_own_progress(void **state)
{
    (void)state;
#define RANKS(a, b)                                                                                \
    "sglang:num_running_reqs{dp_rank=\"0\",tp_rank=\"0\"} 1\n"                                     \
    "sglang:num_running_reqs{dp_rank=\"1\",tp_rank=\"1\"} 1\n"                                     \
    "sglang:inter_token_latency_seconds_count 9\n"                                                 \
    "sglang:realtime_tokens_total{dp_rank=\"0\",mode=\"decode\",tp_rank=\"0\"} " #a "\n"           \
    "sglang:realtime_tokens_total{dp_rank=\"1\",mode=\"decode\",tp_rank=\"1\"} " #b "\n"
    static struct node_scrape all, one[NODE_RANKS_MAX], two[NODE_RANKS_MAX];
    assert_int_equal(node_scrape_parse(SLICE(RANKS(10, 20)), &all, one), ERR_OK);
    assert_int_equal(node_scrape_parse(SLICE(RANKS(10, 21)), &all, two), ERR_OK);
    assert_int_equal(all.ranks, 2);
    assert_true(shows_work(RANKS(10, 20), RANKS(10, 21)));
    for (unsigned rank = 0; rank < 2; rank++) {
        struct node_work_seen seen = {.known = 0};
        assert_false(node_work_take(&seen, &one[rank].work));
        assert_int_equal(node_work_take(&seen, &two[rank].work), rank == 1);
        assert_true(node_work_tells_steps(&one[rank].work));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_series_of_work_shows_progress),
        cmocka_unit_test(series_raised_by_probes_show_no_progress),
        cmocka_unit_test(an_alternating_counter_shows_no_progress),
        cmocka_unit_test(a_reset_counter_counts_again),
        cmocka_unit_test(a_new_counter_shows_work),
        cmocka_unit_test(a_first_own_reading_shows_no_progress),
        cmocka_unit_test(each_rank_shows_its_own_progress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
