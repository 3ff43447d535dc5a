#include "node/replica/scrape.h"

#include "tests/lib/test.h"

#include <stdio.h>

#include "base/err.h"

#define E0 "{engine=\"0\",model_name=\"tiny\"}"

static void assert_near(double value, double wanted, double tolerance)
{
    if (!(value >= wanted - tolerance && value <= wanted + tolerance))
        fail_msg("%.17g is not %.17g", value, wanted);
}

static int parse(const char *text, struct node_scrape *out)
{
    memset(out, 0x55, sizeof *out);
    return node_scrape_parse(slice_of_cstr(text), out, NULL);
}

/* Recorded metrics of a real vLLM 0.32. */
static void test_vllm_recorded(void **state)
{
    (void)state;
    struct node_scrape s;
    const char *text =
        "# HELP process_start_time_seconds Start time of the process since unix epoch in seconds.\n"
        "# TYPE process_start_time_seconds gauge\n"
        "process_start_time_seconds 1.79527325252e+09\n"
        "# HELP vllm:num_requests_running Number of requests in model execution batches.\n"
        "# TYPE vllm:num_requests_running gauge\n"
        "vllm:num_requests_running" E0 " 4.0\n"
        "vllm:num_requests_waiting" E0 " 2.0\n"
        "vllm:num_requests_waiting_by_reason{engine=\"0\",model_name=\"tiny\","
        "reason=\"capacity\"} 7.0\n"
        "vllm:kv_cache_usage_perc" E0 " 0.41025641025641024\n"
        "vllm:prefix_cache_queries_total" E0 " 2684.0\n"
        "vllm:prefix_cache_queries_created" E0 " 1.7952732e+09\n"
        "vllm:prefix_cache_hits_total" E0 " 1536.0\n"
        "vllm:external_prefix_cache_hits_total" E0 " 99.0\n"
        "vllm:prompt_tokens_total" E0 " 2684.0\n"
        "vllm:prompt_tokens_by_source_total{engine=\"0\",model_name=\"tiny\","
        "source=\"local_cache_hit\"} 1536.0\n"
        "vllm:generation_tokens_total" E0 " 51.0\n"
        "vllm:engine_sleep_state{engine=\"0\",model_name=\"tiny\",sleep_state=\"awake\"} 1.0\n"
        "vllm:engine_sleep_state{engine=\"0\",model_name=\"tiny\",sleep_state=\"discard_all\"} "
        "0.0\n"
        "vllm:cache_config_info{_block_size_resolved=\"True\",block_size=\"128\","
        "cache_dtype=\"auto\",engine=\"0\",kv_cache_size_tokens=\"2097152\","
        "num_gpu_blocks=\"16384\",num_gpu_blocks_override=\"None\"} 1.0\n"
        "vllm:e2e_request_latency_seconds_bucket{engine=\"0\",le=\"+Inf\"} 24.0\n"
        "http_requests_total{handler=\"/v1/{x}\",method=\"GET\"} 1.0\n";
    assert_int_equal(parse(text, &s), 0);
    assert_true(s.vllm);
    assert_false(s.sglang);
    assert_near(s.running, 4, 0);
    assert_near(s.waiting, 2, 0);
    assert_near(s.cache_usage, 16.0 / 39, 1e-12);
    assert_near(s.cache_tokens, 16383 * 128, 0);
    assert_near(s.block_tokens, 128, 0);
    assert_near(s.prefix_queries, 2684, 0);
    assert_near(s.prefix_hits, 1536 + 99, 0); /* the engine's, and a tier's */
    assert_near(s.tier_hits, 99, 0);
    assert_near(s.prompt_tokens, 2684, 0);
    assert_near(s.generation_tokens, 51, 0);
    assert_near(s.start_time_s, 1795273252.52, 1e-3);
    assert_near(s.sleeping, 0, 0);
}

/* Sums of histograms; the sums of several ranks add up. Without counts of computed tokens, these
 * follow from the prompts and the uncached share. */
static void test_vllm_histograms(void **state)
{
    (void)state;
    struct node_scrape s;
    const char *sums = "vllm:request_prefill_time_seconds_bucket{engine=\"0\",le=\"0.3\"} 9\n"
                       "vllm:request_prefill_time_seconds_sum{engine=\"0\"} 2.5\n"
                       "vllm:request_prefill_time_seconds_sum{engine=\"1\"} 1.5\n"
                       "vllm:request_prompt_tokens_sum{engine=\"0\"} 5000\n"
                       "vllm:prefix_cache_queries_total{engine=\"0\"} 6000\n"
                       "vllm:prefix_cache_hits_total{engine=\"0\"} 1500\n"
                       "vllm:num_preemptions_total{engine=\"0\"} 3\n"
                       "vllm:kv_block_idle_before_evict_seconds_bucket{engine=\"0\",le=\"1\"} 3\n"
                       "vllm:kv_block_idle_before_evict_seconds_count{engine=\"0\"} 20\n"
                       "vllm:kv_block_idle_before_evict_seconds_sum{engine=\"0\"} 812.5\n";
    char text[1024];
    (void)snprintf(text, sizeof text,
                   "%svllm:request_prefill_kv_computed_tokens_sum 777\n"
                   "vllm:inter_token_latency_seconds_sum 8\n"
                   "vllm:inter_token_latency_seconds_count 400\n",
                   sums);
    assert_int_equal(parse(text, &s), 0);
    assert_near(s.prefill_s, 4, 1e-9);
    assert_near(s.prefill_tokens, 777, 0);
    assert_near(s.steps, 400, 0);
    assert_near(s.steps_s, 8, 0);
    assert_near(s.preemptions, 3, 0);
    assert_near(s.evicted, 20, 0);
    assert_near(s.evicted_idle_s, 812.5, 0);
    (void)snprintf(text, sizeof text,
                   "%svllm:time_per_output_token_seconds_sum 2\n"
                   "vllm:time_per_output_token_seconds_count 50\n",
                   sums);
    assert_int_equal(parse(text, &s), 0);
    assert_near(s.prefill_tokens, 3750, 1e-9);
    assert_near(s.steps, 50, 0);
    assert_int_equal(parse("sglang:inter_token_latency_seconds_sum 3\n"
                           "sglang:inter_token_latency_seconds_count 60\n",
                           &s),
                     0);
    assert_near(s.steps, 60, 0);
    assert_near(s.prefill_s, -1, 0);
}

/* A name of a rank is missing, and the other names are there: fewer than before. */
static void test_counters_of_ranks_are_counted(void **state)
{
    (void)state;
    struct node_scrape s;
    const char *first = "vllm:prompt_tokens_total{engine=\"0\"} 1000\n"
                        "vllm:prompt_tokens_total{engine=\"1\"} 1000\n"
                        "vllm:prefix_cache_queries_total{engine=\"0\"} 1000\n";
    char text[512];
    (void)snprintf(text, sizeof text, "%svllm:prefix_cache_queries_total{engine=\"1\"} 1000\n",
                   first);
    assert_int_equal(parse(text, &s), 0);
    assert_near(s.series, 4, 0);
    assert_int_equal(parse(first, &s), 0);
    assert_near(s.series, 3, 0);
}

/* Each set of adapters that ran has a series, as left by an engine; the last set counts. */
static void test_adapters(void **state)
{
    (void)state;
    struct node_scrape s;
    const char *text =
        "vllm:lora_requests_info{max_lora=\"16\",running_lora_adapters=\"a,b\","
        "waiting_lora_adapters=\"\"} 1.789828498e+09\n"
        "vllm:lora_requests_info{max_lora=\"16\",running_lora_adapters=\"sql, org/poems\","
        "waiting_lora_adapters=\"a\"} 1.789828499e+09\n"
        "vllm:lora_requests_info{max_lora=\"16\",running_lora_adapters=\"\","
        "waiting_lora_adapters=\"\"} 1.789828497e+09\n";
    assert_int_equal(parse(text, &s), 0);
    assert_near(s.adapter_slots, 16, 0);
    assert_slice_equal(s.adapters, "sql, org/poems");
    assert_int_equal(parse("vllm:num_requests_running" E0 " 4.0\n", &s), 0);
    assert_near(s.adapter_slots, -1, 0);
    assert_int_equal(s.adapters.len, 0);
    assert_int_equal(parse("sglang:lora_pool_slots_total{dp_rank=\"0\"} 8.0\n"
                           "sglang:lora_pool_slots_total{dp_rank=\"1\"} 8.0\n"
                           "sglang:lora_pool_slots_used{dp_rank=\"0\"} 3.0\n",
                           &s),
                     0);
    assert_near(s.adapter_slots, 8, 0);
}

static void test_vllm_names_of_0_9(void **state)
{
    (void)state;
    struct node_scrape s;
    assert_int_equal(parse("vllm:gpu_cache_usage_perc" E0 " 0.25\n"
                           "vllm:gpu_prefix_cache_queries_total" E0 " 100\n"
                           "vllm:gpu_prefix_cache_hits_total" E0 " 40\n"
                           "vllm:kv_cache_usage_perc" E0 " 0.5\n"
                           "vllm:prefix_cache_queries_total" E0 " 100\n",
                           &s),
                     0);
    assert_near(s.cache_usage, 0.5, 0);
    assert_near(s.prefix_queries, 100, 0);
    assert_near(s.prefix_hits, 40, 0);
    assert_near(s.running, -1, 0);
    assert_near(s.cache_tokens, -1, 0);
    assert_near(s.start_time_s, -1, 0);
    assert_near(s.sleeping, -1, 0);
}

static void test_vllm_engines_add_and_average(void **state)
{
    (void)state;
    struct node_scrape s;
    assert_int_equal(
        parse("vllm:num_requests_running{engine=\"0\"} 3\n"
              "vllm:num_requests_running{engine=\"1\"} 4\n"
              "vllm:prompt_tokens_total{engine=\"0\"} 10\n"
              "vllm:prompt_tokens_total{engine=\"1\"} 20\n"
              "vllm:kv_cache_usage_perc{engine=\"0\"} 0.2\n"
              "vllm:kv_cache_usage_perc{engine=\"1\"} 0.4\n"
              "vllm:cache_config_info{block_size=\"16\",engine=\"0\",num_gpu_blocks=\"302\"} 1\n"
              "vllm:cache_config_info{block_size=\"16\",engine=\"1\",num_gpu_blocks=\"302\"} 1\n"
              "vllm:engine_sleep_state{engine=\"0\",sleep_state=\"awake\"} 1\n"
              "vllm:engine_sleep_state{engine=\"1\",sleep_state=\"awake\"} 0\n",
              &s),
        0);
    assert_near(s.running, 7, 0);
    assert_near(s.prompt_tokens, 30, 0);
    assert_near(s.series, 2, 0);
    assert_near(s.cache_usage, 0.3, 1e-12);
    assert_near(s.cache_tokens, 300 * 16, 0);
    assert_near(s.sleeping, 1, 0);
}

static void test_cache_config_none_and_hybrid(void **state)
{
    (void)state;
    struct node_scrape s;
    assert_int_equal(
        parse("vllm:cache_config_info{block_size=\"None\",num_gpu_blocks=\"None\"} 1\n", &s), 0);
    assert_near(s.cache_tokens, -1, 0);
    assert_near(s.block_tokens, -1, 0);
    assert_int_equal(parse("vllm:cache_config_info{block_size=\"16\",kv_cache_size_tokens=\"320\","
                           "num_gpu_blocks=\"None\"} 1\n",
                           &s),
                     0);
    assert_near(s.cache_tokens, 320, 0);
    assert_int_equal(parse("vllm:cache_config_info{block_size=\"16\",kv_cache_size_tokens=\"320\","
                           "num_gpu_blocks=\"41\"} 1\n",
                           &s),
                     0);
    assert_near(s.cache_tokens, 320, 0);
}

static void test_sglang(void **state)
{
    (void)state;
    struct node_scrape s;
    const char *text =
        "sglang:num_running_reqs{engine_type=\"unified\",model_name=\"m\",pp_rank=\"0\","
        "priority=\"\",tp_rank=\"0\"} 5.0\n"
        "sglang:num_running_reqs{engine_type=\"unified\",model_name=\"m\",pp_rank=\"0\","
        "priority=\"3\",tp_rank=\"0\"} 2.0\n"
        "sglang:num_running_reqs{engine_type=\"unified\",model_name=\"m\",pp_rank=\"0\","
        "priority=\"7\",tp_rank=\"0\"} 3.0\n"
        "sglang:num_queue_reqs{model_name=\"m\",tp_rank=\"1\"} 8.0\n"
        "sglang:num_queue_reqs{model_name=\"m\",tp_rank=\"0\"} 8.0\n"
        "sglang:token_usage{model_name=\"m\",tp_rank=\"0\"} 0.28\n"
        "sglang:max_total_num_tokens{model_name=\"m\",tp_rank=\"0\"} 400000.0\n"
        "sglang:max_total_num_tokens{model_name=\"m\",tp_rank=\"1\"} 400000.0\n"
        "sglang:page_size{model_name=\"m\",tp_rank=\"0\"} 64.0\n"
        "sglang:prompt_tokens_total{model_name=\"m\"} 8.128902e+06\n"
        "sglang:cached_tokens_total{cache_source=\"device\",model_name=\"m\"} 1000\n"
        "sglang:cached_tokens_total{cache_source=\"host\",model_name=\"m\"} 500\n"
        "sglang:generation_tokens_total{model_name=\"m\"} 77\n"
        "sglang:time_to_first_token_seconds_bucket{le=\"0.001\",model_name=\"m\"} 0\n";
    assert_int_equal(parse(text, &s), 0);
    assert_true(s.sglang);
    assert_false(s.vllm);
    assert_near(s.running, 5, 0);
    assert_near(s.waiting, 8, 0);
    assert_near(s.cache_usage, 0.28, 1e-12);
    assert_near(s.cache_tokens, 400000, 0);
    assert_near(s.block_tokens, 64, 0);
    assert_near(s.prefix_queries, 8128902, 0);
    assert_near(s.prefix_hits, 1500, 0);
    assert_near(s.prompt_tokens, 8128902, 0);
    assert_near(s.generation_tokens, 77, 0);
}

/* Under DP attention the first rank of data-parallel group 1 is tensor rank 1, not 0. */
static void test_sglang_dp_attention(void **state)
{
    (void)state;
    struct node_scrape s;
    assert_int_equal(parse("sglang:num_running_reqs{dp_rank=\"0\",tp_rank=\"0\"} 2\n"
                           "sglang:num_running_reqs{dp_rank=\"1\",tp_rank=\"1\"} 3\n"
                           "sglang:cache_config_info{dp_rank=\"0\",num_pages=\"10\","
                           "page_size=\"64\",tp_rank=\"0\"} 1\n"
                           "sglang:cache_config_info{dp_rank=\"1\",num_pages=\"10\","
                           "page_size=\"64\",tp_rank=\"1\"} 1\n",
                           &s),
                     0);
    assert_near(s.running, 5, 0);
    assert_near(s.cache_tokens, 1280, 0);
    assert_near(s.block_tokens, 64, 0);
}

static void test_values(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value; /* -1: as if missing; -2: a syntax error */
    } cases[] = {
        {"1", 1},
        {"1.", 1},
        {".5e1", 5},
        {"+2E+2", 200},
        {"3e-1", 0.3},
        {"NaN", -1},
        {"+Inf", -1},
        {"-inf", -1},
        {"-4", -1},
        {"9007199254740992", 0x1p53},
        {"9007199254740994", -1},
        {"1e308", -1},
        {"7 1395066363000", 7},
        {"7 1.5", 7},
        {"7 # {trace=\"x\"} 1", 7},
        {"7 12 # {} 1 2", 7},
        {"  7\t ", 7},
        {"", -2},
        {"x", -2},
        {"0x10", -2},
        {"1e", -2},
        {".", -2},
        {"1.2.3", -2},
        {"--1", -2},
        {"1,5", -2},
        {"7 x", -2},
        {"7 1 2", -2},
        {"+NaN", -1},
        {"nan(1)", -2},
        {"+", -2},
        {"infi", -2},
        {"0x1p3", -2},
        {"1_0", -2},
        {"7\r", 7},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[128];
        struct node_scrape s;
        (void)snprintf(line, sizeof line, "vllm:num_requests_running{} %s\n", cases[i].text);
        int err = parse(line, &s);
        if (cases[i].value == -2)
            assert_int_equal(err, ERR_SYNTAX);
        else
            assert_int_equal(err, 0);
        if (err == 0 && (s.running < cases[i].value - 1e-9 || s.running > cases[i].value + 1e-9))
            fail_msg("%s: read as %g", cases[i].text, s.running);
    }
}

static void test_labels(void **state)
{
    (void)state;
    static const struct {
        const char *labels;
        int err;
    } cases[] = {
        {"", 0},
        {"{}", 0},
        {" { } ", 0},
        {"{a=\"b\"}", 0},
        {"{a=\"b\",}", 0},
        {"{ a = \"b\" , engine=\"0\" }", 0},
        {"{a=\"x,y}\",b=\"q\\\"q\\\\\",c=\"\\n\"}", 0},
        {"{a=\"\xd0\xb6 {engine=\\\"9\\\"}\"}", 0},
        {"{a=\"b\"", ERR_SYNTAX},
        {"{a=\"b}", ERR_SYNTAX},
        {"{a=\"b\\", ERR_SYNTAX},
        {"{a=\"\\t\"}", ERR_SYNTAX},
        {"{a=b}", ERR_SYNTAX},
        {"{a}", ERR_SYNTAX},
        {"{1a=\"b\"}", ERR_SYNTAX},
        {"{,}", ERR_SYNTAX},
        {"{a=\"b\"b=\"c\"}", ERR_SYNTAX},
        {"{a=\"b\",,b=\"c\"}", ERR_SYNTAX},
        {"{=\"b\"}", ERR_SYNTAX},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[256];
        struct node_scrape s;
        (void)snprintf(line, sizeof line, "vllm:num_requests_running%s 3", cases[i].labels);
        int err = parse(line, &s);
        if (err != cases[i].err)
            fail_msg("%s: %d", cases[i].labels, err);
        if (err == 0)
            assert_near(s.running, 3, 0);
    }
}

static void test_malformed_metrics_are_refused(void **state)
{
    (void)state;
    struct node_scrape s;
    struct node_scrape untouched;
    memset(&untouched, 0x55, sizeof untouched);
    assert_int_equal(parse("vllm:num_requests_running 3\n<html>404</html>\n", &s), ERR_SYNTAX);
    assert_memory_equal(&s, &untouched, sizeof s);
    assert_int_equal(parse("{\"detail\":\"Not Found\"}", &s), ERR_SYNTAX);
    assert_int_equal(parse("", &s), ERR_NOT_FOUND);
    assert_int_equal(parse("# only a comment\n\n", &s), ERR_NOT_FOUND);
    assert_int_equal(parse("tgi_queue_size 3\nprocess_open_fds 9\n", &s), ERR_NOT_FOUND);
    assert_memory_equal(&s, &untouched, sizeof s);
}

static void test_openmetrics_end(void **state)
{
    (void)state;
    struct node_scrape s;
    assert_int_equal(parse("vllm:num_requests_running 3\n# EOF\n\x01 garbage", &s), 0);
    assert_near(s.running, 3, 0);
}

/* In vLLM's hybrid mode a node has the ranks from 4 on; the pinning header counts them from 0. */
static void test_ranks_of_vllm(void **state)
{
    (void)state;
    struct node_scrape s, ranks[NODE_RANKS_MAX];
    const char *text =
        "process_start_time_seconds 1.7e+09\n"
        "vllm:num_requests_running{engine=\"10\"} 2.0\n"
        "vllm:num_requests_running{engine=\"9\"} 1.0\n"
        "vllm:num_requests_waiting{engine=\"9\"} 0.0\n"
        "vllm:num_requests_waiting{engine=\"10\"} 7.0\n"
        "vllm:prompt_tokens_total{engine=\"9\"} 100.0\n"
        "vllm:prompt_tokens_total{engine=\"10\"} 300.0\n"
        "vllm:kv_cache_usage_perc{engine=\"9\"} 0.5\n"
        "vllm:cache_config_info{block_size=\"16\",engine=\"9\",num_gpu_blocks=\"202\"} 1.0\n"
        "vllm:cache_config_info{block_size=\"16\",engine=\"10\",num_gpu_blocks=\"202\"} 1.0\n"
        "vllm:lora_requests_info{max_lora=\"4\",running_lora_adapters=\"a,b\"} 1.0\n";
    assert_int_equal(node_scrape_parse(slice_of_cstr(text), &s, ranks), 0);
    assert_int_equal(s.ranks, 2);
    assert_near(s.running, 3, 0);
    assert_int_equal(s.ranks, 2);
    assert_near(ranks[0].running, 1, 0);
    assert_near(ranks[1].running, 2, 0);
    assert_near(ranks[1].waiting, 7, 0);
    assert_near(ranks[0].prompt_tokens, 100, 0);
    assert_near(ranks[0].cache_usage, 0.5, 0);
    assert_near(ranks[1].cache_usage, -1, 0);
    assert_near(ranks[0].cache_tokens, 1600, 0);
    assert_near(ranks[1].cache_tokens, 1600, 0);
    assert_near(ranks[1].block_tokens, 16, 0);
    assert_near(ranks[1].start_time_s, 1.7e9, 0);
    assert_near(ranks[1].adapter_slots, 4, 0);
    assert_int_equal(ranks[1].adapters.len, 0); /* the owner is not given */
}

/* vLLM 0.32.0 with --data-parallel-size 2 and 16,384 blocks in each rank, as observed: the blocks
 * are those of all ranks, and kv_cache_size_tokens is a single rank's. Older releases report only
 * the blocks. */
static void test_blocks_of_vllm_are_of_all_ranks(void **state)
{
    (void)state;
    static const char *const told[] = {"kv_cache_size_tokens=\"2097152\",", ""};
    for (unsigned i = 0; i < 2; i++) {
        char text[600];
        struct node_scrape s, ranks[NODE_RANKS_MAX];
        (void)snprintf(text, sizeof text,
                       "vllm:cache_config_info{block_size=\"128\",engine=\"0\",%s"
                       "num_gpu_blocks=\"32768\"} 1.0\n"
                       "vllm:cache_config_info{block_size=\"128\",engine=\"1\",%s"
                       "num_gpu_blocks=\"32768\"} 1.0\n"
                       "vllm:num_requests_running{engine=\"0\"} 1.0\n"
                       "vllm:num_requests_running{engine=\"1\"} 1.0\n",
                       told[i], told[i]);
        assert_int_equal(node_scrape_parse(slice_of_cstr(text), &s, ranks), 0);
        assert_near(s.cache_tokens, 2 * 16383 * 128, 0);
        assert_int_equal(s.ranks, 2);
        assert_near(ranks[0].cache_tokens, 16383 * 128, 0);
        assert_near(ranks[1].cache_tokens, 16383 * 128, 0);
        assert_near(ranks[1].block_tokens, 128, 0);
    }
}

/* SGLang's server counts tokens of all ranks together. */
static void test_hits_of_ranks_of_sglang(void **state)
{
    (void)state;
    struct node_scrape s, ranks[NODE_RANKS_MAX];
    const char *text =
        "sglang:num_running_reqs{dp_rank=\"1\",tp_rank=\"0\"} 0.0\n"
        "sglang:num_running_reqs{dp_rank=\"0\",tp_rank=\"0\"} 0.0\n"
        "sglang:realtime_tokens_total{dp_rank=\"0\",mode=\"prefill_compute\",tp_rank=\"0\"} 8.0\n"
        "sglang:realtime_tokens_total{dp_rank=\"0\",mode=\"decode\",tp_rank=\"0\"} 80.0\n"
        "sglang:realtime_tokens_total{dp_rank=\"1\",mode=\"prefill_compute\",tp_rank=\"0\"} 9.0\n"
        "sglang:realtime_tokens_total{dp_rank=\"1\",mode=\"prefill_cache\",tp_rank=\"0\"} 5.0\n"
        "sglang:prompt_tokens_total{model_name=\"m\"} 21.0\n"
        "sglang:cached_tokens_total{cache_source=\"device\",model_name=\"m\"} 5.0\n";
    assert_int_equal(node_scrape_parse(slice_of_cstr(text), &s, ranks), 0);
    assert_near(s.prefix_queries, 21, 0); /* the server's own, not the sum */
    assert_near(s.prefix_hits, 5, 0);
    assert_int_equal(s.ranks, 2);
    assert_near(ranks[0].generation_tokens, 80, 0); /* at once: the server counts at the end */
    assert_near(ranks[0].prefix_queries, 8, 0);
    assert_near(ranks[0].prefix_hits, 0, 0);
    assert_near(ranks[1].prefix_queries, 14, 0);
    assert_near(ranks[1].prefix_hits, 5, 0);
}

static void test_ranks_of_sglang(void **state)
{
    (void)state;
    struct node_scrape s, ranks[NODE_RANKS_MAX];
    const char *text = "sglang:num_running_reqs{dp_rank=\"0\",tp_rank=\"0\"} 1.0\n"
                       "sglang:num_running_reqs{dp_rank=\"0\",tp_rank=\"1\"} 1.0\n"
                       "sglang:num_running_reqs{dp_rank=\"1\",tp_rank=\"2\"} 5.0\n"
                       "sglang:max_total_num_tokens{dp_rank=\"0\",tp_rank=\"0\"} 1000.0\n"
                       "sglang:max_total_num_tokens{dp_rank=\"1\",tp_rank=\"2\"} 1000.0\n"
                       "sglang:prompt_tokens_total{model_name=\"m\"} 77.0\n"
                       "sglang:inter_token_latency_seconds_count{model_name=\"m\"} 10.0\n"
                       "sglang:inter_token_latency_seconds_sum{model_name=\"m\"} 0.2\n";
    assert_int_equal(node_scrape_parse(slice_of_cstr(text), &s, ranks), 0);
    assert_int_equal(s.ranks, 2);
    assert_near(s.prompt_tokens, 77, 0);
    assert_int_equal(s.ranks, 2);
    assert_near(ranks[0].running, 1, 0);
    assert_near(ranks[1].running, 5, 0);
    assert_near(ranks[1].cache_tokens, 1000, 0);
    assert_near(ranks[1].prompt_tokens, -1, 0);
    assert_near(ranks[1].prefix_queries, -1, 0);
    assert_near(ranks[1].steps_s, 0.2, 1e-12); /* as slow as all together */
    assert_int_equal(parse("sglang:num_running_reqs{tp_rank=\"0\"} 1.0\n", &s), 0);
    assert_int_equal(s.ranks, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vllm_recorded),
        cmocka_unit_test(test_vllm_histograms),
        cmocka_unit_test(test_counters_of_ranks_are_counted),
        cmocka_unit_test(test_adapters),
        cmocka_unit_test(test_vllm_names_of_0_9),
        cmocka_unit_test(test_vllm_engines_add_and_average),
        cmocka_unit_test(test_cache_config_none_and_hybrid),
        cmocka_unit_test(test_sglang),
        cmocka_unit_test(test_sglang_dp_attention),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_ranks_of_vllm),
        cmocka_unit_test(test_ranks_of_sglang),
        cmocka_unit_test(test_hits_of_ranks_of_sglang),
        cmocka_unit_test(test_blocks_of_vllm_are_of_all_ranks),
        cmocka_unit_test(test_malformed_metrics_are_refused),
        cmocka_unit_test(test_openmetrics_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
