#include "node/replica/work.h"

#include "base/check.h"

enum kind { COUNTER, GAUGE };
enum when { STEP, REQUEST };

#define VLLM(text)   SLICE_INIT("vllm:" text)
#define SGLANG(text) SLICE_INIT("sglang:" text)
#define SLICE_INIT(text)                                                                           \
    {                                                                                              \
        .at = (text), .len = sizeof(text) - 1                                                      \
    }

static const struct row {
    struct slice name;
    struct slice mode; /* the label of that name; empty: whatever it has */
    enum kind kind;
    enum when when;
} ROWS[] = {
    /* vLLM V1, 0.9 to 0.33: module vllm.v1.metrics.loggers, the `record` of PrometheusStatLogger,
     * which runs for each batch of outputs that comes from the core. The statistics of an iteration
     * come with outputs only, those of the scheduler with each step: a chunk of a prompt moves
     * nothing but the usage, which is not rounded. request_success_total says no more than the
     * tokens: it moves with the last of an answer. */
    {VLLM("generation_tokens_total"), {0}, COUNTER, STEP},
    {VLLM("iteration_tokens_total_count"), {0}, COUNTER, STEP},
    {VLLM("inter_token_latency_seconds_count"), {0}, COUNTER, STEP},   /* 0.10.2 and later */
    {VLLM("time_per_output_token_seconds_count"), {0}, COUNTER, STEP}, /* before 0.12 */
    {VLLM("kv_cache_usage_perc"), {0}, GAUGE, STEP},                   /* 0.9.2 and later */
    {VLLM("gpu_cache_usage_perc"), {0}, GAUGE, STEP},                  /* before 0.12 */
    {VLLM("prompt_tokens_total"), {0}, COUNTER, REQUEST},              /* with the first token */
    {VLLM("prefix_cache_queries_total"), {0}, COUNTER, REQUEST}, /* when it is scheduled first */
    {VLLM("gpu_prefix_cache_queries_total"), {0}, COUNTER, REQUEST}, /* the same, before 0.12 */
    {VLLM("num_preemptions_total"), {0}, COUNTER, REQUEST},
    /* SGLang 0.4 to 0.5.23. Its server counts tokens when a request ends, and the gaps between the
     * pieces that its scheduler hands over (module srt.managers.tokenizer_manager): before any
     * parser sees them, and of answers that are not streamed too, every 50 tokens. Its scheduler
     * counts batches of prompts as they are computed, and decode steps with each or, in earlier
     * builds, every 40 (--decode-log-interval), as it sets its gauges (module
     * srt.observability.metrics_collector, earlier srt.metrics.collector). */
    {SGLANG("realtime_tokens_total"), SLICE_INIT("decode"), COUNTER, STEP},
    {SGLANG("realtime_tokens_total"), SLICE_INIT("prefill_compute"), COUNTER, STEP},
    {SGLANG("inter_token_latency_seconds_count"), {0}, COUNTER, STEP},
    {SGLANG("gen_throughput"), {0}, GAUGE, STEP},
    {SGLANG("num_used_tokens"), {0}, GAUGE, STEP},
    {SGLANG("token_usage"), {0}, GAUGE, REQUEST}, /* rounded to two digits */
    {SGLANG("generation_tokens_total"), {0}, COUNTER, REQUEST},
    {SGLANG("prompt_tokens_total"), {0}, COUNTER, REQUEST},
    /* What another router saw (node/replica/scraped.h). */
    {{0}, {0}, COUNTER, STEP},
};
_Static_assert(sizeof ROWS / sizeof ROWS[0] == NODE_WORK_SIGNS, "a place for each row");
_Static_assert(NODE_WORK_TOLD == NODE_WORK_SIGNS - 1, "the last row");
_Static_assert(NODE_WORK_SIGNS <= 32, "a bit for each row");

enum { SGLANG_FIRST = 10 };

bool node_work_names(struct slice name)
{
    for (unsigned i = 0; i < NODE_WORK_TOLD; i++)
        if (slice_equal(name, ROWS[i].name))
            return true;
    return false;
}

int node_work_row(struct slice name, struct slice mode)
{
    for (unsigned i = 0; i < NODE_WORK_TOLD; i++)
        if (slice_equal(name, ROWS[i].name) &&
            (ROWS[i].mode.len == 0 || slice_equal(mode, ROWS[i].mode)))
            return (int)i;
    return -1;
}

bool node_work_is_sglang(int row)
{
    return row >= SGLANG_FIRST && row < NODE_WORK_TOLD;
}

static bool counter_moved(struct node_work_seen *seen, unsigned i, double now)
{
    if (now > seen->most[i]) {
        seen->most[i] = now;
        seen->lower[i] = 0;
        return true;
    }
    seen->lower[i] = now < seen->most[i] ? (uint8_t)(seen->lower[i] + 1) : 0;
    if (seen->lower[i] == NODE_WORK_LOWER_MAX) {
        seen->most[i] = now;
        seen->lower[i] = 0;
    }
    return false;
}

bool node_work_take(struct node_work_seen *seen, const struct node_work_reading *now)
{
    static const uint32_t told = UINT32_C(1) << NODE_WORK_TOLD;
    bool first = (seen->known & ~told) == 0, moved = false;
    for (unsigned i = 0; i < NODE_WORK_SIGNS; i++) {
        double value = now->value[i];
        uint32_t bit = UINT32_C(1) << i;
        if (value < 0)
            continue;
        if ((seen->known & bit) == 0) { /* some are missing until they count for the first time */
            moved |= !first && i != NODE_WORK_TOLD && value > 0;
            seen->most[i] = value;
            seen->known |= bit;
        } else if (ROWS[i].kind == GAUGE) {
            moved |= value != seen->most[i];
            seen->most[i] = value;
        } else {
            moved |= counter_moved(seen, i, value);
        }
    }
    return moved;
}

void node_work_told_anew(struct node_work_seen *seen)
{
    seen->known &= ~(UINT32_C(1) << NODE_WORK_TOLD);
    seen->lower[NODE_WORK_TOLD] = 0;
}

bool node_work_tells_steps(const struct node_work_reading *w)
{
    for (unsigned i = 0; i < NODE_WORK_SIGNS; i++)
        if (ROWS[i].when == STEP && w->value[i] >= 0)
            return true;
    return false;
}
