#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "tests/engine-sim/engine.h"
#include "tests/engine-sim/job.h"

/* A rank's figures in the metrics. */
struct told {
    double running, waiting;
    double usage;
    double used_tokens, tokens;
    double awake, asleep, discarded, never;
    double queries, hits, tier_queries, tier_hits;
    double computed, reused;
    double preemptions, prompt_tokens, generation_tokens, decoded;
    double by_stop, by_length;
    double ttft_s_sum, ttft_count, e2e_s_sum, e2e_count;
    double steps, step_tokens, tokens_per_s;
    double block_tokens, blocks, adapter_slots;
};

struct writer {
    const struct sim_engine *engine;
    struct buf *out;
    struct sim_counters sum; /* sum over all ranks */
    double prompt_tokens, generation_tokens;
    struct told told[SIM_RANKS_MAX];
};

/* A metric, or a series of a metric, for each rank. */
struct row {
    const char *name;
    const char *type;   /* NULL: no TYPE line */
    const char *before; /* labels before model_name, in alphabetical order */
    const char *after;
    size_t at; /* in struct told */
    bool help;
};

#define AT(field) offsetof(struct told, field)

static double rounded(const struct sim_engine *e, double value)
{
    double scale = pow(10, (double)e->options.metrics_digits);
    return e->options.metrics_digits >= 17 ? value : round(value * scale) / scale;
}

static struct told told_of(const struct sim_engine *e, unsigned rank)
{
    const struct sim_seen seen = sim_engine_seen(e, rank);
    const struct sim_counters *n = &seen.counters;
    const struct sim_tally *tally = &e->tally[rank];
    double blocks = sim_cache_blocks(sim_model_cache(e->ranks.models[rank]));
    double block_tokens = (double)e->options.block_tokens;
    bool asleep = e->fail.mode == SIM_FAIL_SLEEP;
    bool at_end = e->options.metrics_at_end != SIM_AT_END_NONE;
    return (struct told){
        .running = seen.running,
        .waiting = seen.waiting,
        .usage = rounded(e, (double)seen.blocks_used / blocks),
        .used_tokens = (double)seen.blocks_used * block_tokens,
        .tokens = blocks * block_tokens,
        .awake = !asleep,
        .asleep = asleep && !e->fail.discards,
        .discarded = asleep && e->fail.discards,
        .queries = (double)n->prefix_queries,
        .hits = (double)n->prefix_hits,
        .tier_queries = (double)n->tier_queries,
        .tier_hits = (double)n->tier_hits,
        .computed = (double)(n->prefix_queries - n->prefix_hits - n->tier_hits),
        .reused = (double)(n->prefix_hits + n->tier_hits),
        .preemptions = (double)n->preemptions,
        .prompt_tokens = (double)(at_end ? seen.ended_prompt_tokens : n->prompt_tokens),
        .generation_tokens = (double)(at_end ? seen.ended_generation_tokens : n->generation_tokens),
        .decoded = (double)n->generation_tokens,
        .steps = (double)n->steps,
        .step_tokens = (double)n->step_tokens,
        .tokens_per_s = seen.tokens_per_s,
        .by_stop = (double)tally->finished[0],
        .by_length = (double)tally->finished[1],
        .ttft_s_sum = tally->ttft_s_sum,
        .ttft_count = (double)tally->ttft_count,
        .e2e_s_sum = tally->e2e_s_sum,
        .e2e_count = (double)tally->e2e_count,
        .block_tokens = block_tokens,
        .blocks = blocks,
        .adapter_slots = (double)e->options.max_loras,
    };
}

static void put_series(const struct writer *w, const char *name, const char *before,
                       const char *after, double value)
{
    sim_put(w->out, "%s{%smodel_name=", name, before);
    sim_put_json(w->out, slice_of_cstr(w->engine->options.models[0]));
    sim_put(w->out, "%s} %.17g\n", after, value);
}

/* A rank's label, ahead of all others: vLLM always has a label, SGLang if there are several
 * ranks. */
static void rank_label(const struct sim_engine *e, unsigned rank, char *out, size_t size)
{
    out[0] = '\0';
    if (!e->options.sglang)
        (void)snprintf(out, size, "engine=\"%lu\",", e->options.data_parallel_start + rank);
    else if (e->ranks.count > 1)
        (void)snprintf(out, size, "dp_rank=\"%u\",", rank);
}

static void put_row(const struct writer *w, const struct row *row)
{
    char labels[128];
    if (row->help)
        sim_put(w->out, "# HELP %s %s of the engine simulator.\n", row->name, row->name);
    if (row->type != NULL)
        sim_put(w->out, "# TYPE %s %s\n", row->name, row->type);
    for (unsigned i = 0; i < w->engine->ranks.count; i++) {
        rank_label(w->engine, i, labels, sizeof labels);
        (void)strncat(labels, row->before, sizeof labels - strlen(labels) - 1);
        put_series(w, row->name, labels, row->after,
                   *(const double *)((const char *)&w->told[i] + row->at));
    }
}

static void put_rows(const struct writer *w, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        put_row(w, &rows[i]);
}

/* --- vLLM ------------------------------------------------------------------------------------ */

/* Names of the adapters with running, or waiting, requests, separated by commas. */
static void put_adapters(const struct writer *w, bool running)
{
    bool first = true;
    for (const struct sim_job *job = w->engine->jobs; job != NULL; job = job->next) {
        enum sim_state state = job->request.state;
        bool runs = state == SIM_PREFILL || state == SIM_DECODE, again = false;
        if (job->request.adapter == 0 || (running ? !runs : state != SIM_WAITING))
            continue;
        for (const struct sim_job *other = w->engine->jobs; other != job; other = other->next)
            again = again || (other->request.adapter == job->request.adapter &&
                              (other->request.state == SIM_WAITING) == !running);
        if (!again)
            sim_put(w->out, "%s%s", first ? "" : ",", job->model);
        first = first && again;
    }
}

static void put_lora_info(const struct writer *w)
{
    const struct sim_engine *e = w->engine;
    sim_put(w->out,
            "# HELP vllm:lora_requests_info Running stats on lora requests.\n"
            "# TYPE vllm:lora_requests_info gauge\n"
            "vllm:lora_requests_info{max_lora=\"%lu\",running_lora_adapters=\"",
            e->options.max_loras);
    put_adapters(w, true);
    sim_put(w->out, "\",waiting_lora_adapters=\"");
    put_adapters(w, false);
    sim_put(w->out, "\"} %.3f\n", e->start_time_s + (double)(sim_clock_ns(e) - e->t0_ns) / 1e9);
}

#define GAUGE(name, field)                                                                         \
    {                                                                                              \
        name, "gauge", "", "", AT(field), true                                                     \
    }
#define COUNTER(name, field)                                                                       \
    {                                                                                              \
        name, "counter", "", "", AT(field), true                                                   \
    }
#define SERIES(name, before, after, field)                                                         \
    {                                                                                              \
        name, NULL, before, after, AT(field), false                                                \
    }

static const struct row vllm_first[] = {
    GAUGE("vllm:num_requests_running", running),
    GAUGE("vllm:num_requests_waiting", waiting),
    {"vllm:engine_sleep_state", "gauge", "", ",sleep_state=\"awake\"", AT(awake), false},
    SERIES("vllm:engine_sleep_state", "", ",sleep_state=\"weights_offloaded\"", asleep),
    SERIES("vllm:engine_sleep_state", "", ",sleep_state=\"discard_all\"", discarded),
    GAUGE("vllm:kv_cache_usage_perc", usage),
    COUNTER("vllm:prefix_cache_queries_total", queries),
    COUNTER("vllm:prefix_cache_hits_total", hits),
};

static const struct row vllm_tier[] = {
    COUNTER("vllm:external_prefix_cache_queries_total", tier_queries),
    COUNTER("vllm:external_prefix_cache_hits_total", tier_hits),
};

#define SUCCESS "vllm:request_success_total"

static const struct row vllm_requests[] = {
    COUNTER("vllm:num_preemptions_total", preemptions),
    COUNTER("vllm:prompt_tokens_total", prompt_tokens),
    COUNTER("vllm:generation_tokens_total", generation_tokens),
    {SUCCESS, "counter", "finished_reason=\"stop\",", "", AT(by_stop), false},
    SERIES(SUCCESS, "finished_reason=\"length\",", "", by_length),
    SERIES(SUCCESS, "finished_reason=\"abort\",", "", never),
};

static const struct row vllm_times[] = {
    SERIES("vllm:time_to_first_token_seconds_sum", "", "", ttft_s_sum),
    SERIES("vllm:time_to_first_token_seconds_count", "", "", ttft_count),
    SERIES("vllm:e2e_request_latency_seconds_sum", "", "", e2e_s_sum),
    SERIES("vllm:e2e_request_latency_seconds_count", "", "", e2e_count),
};

static void put_cache_config(const struct writer *w)
{
    const struct sim_engine *e = w->engine;
    uint64_t block = e->options.block_tokens;
    sim_put(w->out, "# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig\n"
                    "# TYPE vllm:cache_config_info gauge\n");
    for (unsigned i = 0; i < e->ranks.count; i++) {
        /* The engine never hands out the first block. Blocks are the sum over all ranks, tokens are
         * a single rank's. */
        uint64_t blocks = sim_cache_blocks(sim_model_cache(e->ranks.models[i])) + 1;
        sim_put(w->out,
                "vllm:cache_config_info{_block_size_resolved=\"True\",block_size=\"%lu\","
                "cache_dtype=\"auto\",enable_prefix_caching=\"True\",engine=\"%lu\","
                "kv_cache_size_tokens=\"%lu\",num_gpu_blocks=\"%lu\","
                "num_gpu_blocks_override=\"None\",prefix_caching_hash_algo=\"sha256\"} 1.0\n",
                block, e->options.data_parallel_start + i, blocks * block, blocks * e->ranks.count);
    }
}

#define STEP "vllm:iteration_tokens_total"

static const struct row vllm_steps[] = {
    SERIES(STEP "_sum", "", "", step_tokens),
    SERIES(STEP "_count", "", "", steps),
};

/* Tokens of each step: a counter of all work, for any client. */
static void put_steps(const struct writer *w)
{
    char rank[128], le[64];
    sim_put(w->out, "# HELP " STEP " Histogram of number of tokens per engine_step.\n"
                    "# TYPE " STEP " histogram\n");
    for (unsigned i = 0; i < w->engine->ranks.count; i++) {
        const struct sim_seen seen = sim_engine_seen(w->engine, i);
        uint64_t sum = 0;
        rank_label(w->engine, i, rank, sizeof rank);
        for (unsigned b = 0; b < SIM_STEP_BUCKETS; b++) {
            (void)snprintf(le, sizeof le, "le=\"%lu.0\",", sim_step_bucket(b));
            (void)strncat(rank, b + 1 == SIM_STEP_BUCKETS ? "le=\"+Inf\"," : le,
                          sizeof rank - strlen(rank) - 1);
            sum += seen.counters.step_buckets[b];
            put_series(w, STEP "_bucket", rank, "", (double)sum);
            rank_label(w->engine, i, rank, sizeof rank);
        }
    }
    put_rows(w, vllm_steps, ARRAY_LEN(vllm_steps));
}

static void vllm_write(const struct writer *w)
{
    const struct sim_engine *e = w->engine;
    put_rows(w, vllm_first, ARRAY_LEN(vllm_first));
    if (e->options.tier_tokens > 0)
        put_rows(w, vllm_tier, ARRAY_LEN(vllm_tier));
    if (e->options.max_loras > 0)
        put_lora_info(w);
    put_rows(w, vllm_requests, ARRAY_LEN(vllm_requests));
    put_series(w, "vllm:admission_rejections_total", "", ",reason=\"max_num_queued_reqs\"",
               (double)w->sum.rejected);
    put_steps(w);
    put_rows(w, vllm_times, ARRAY_LEN(vllm_times));
    put_cache_config(w);
}

/* --- SGLang ---------------------------------------------------------------------------------- */

#define UNIFIED  "engine_type=\"unified\","
#define WHOLE    UNIFIED "is_streaming=\"false\","
#define STREAMED UNIFIED "is_streaming=\"true\","
#define AFTER    ",pp_rank=\"0\",tp_rank=\"0\""

/* Series of the schedulers. */
static const struct row sglang_ranks[] = {
    SERIES("sglang:num_running_reqs", UNIFIED, AFTER, running),
    SERIES("sglang:num_queue_reqs", UNIFIED, AFTER, waiting),
    SERIES("sglang:token_usage", UNIFIED, AFTER, usage),
    SERIES("sglang:num_used_tokens", UNIFIED, AFTER, used_tokens),
    SERIES("sglang:max_total_num_tokens", UNIFIED, AFTER, tokens),
    SERIES("sglang:page_size", UNIFIED, AFTER, block_tokens),
    SERIES("sglang:num_pages", UNIFIED, AFTER, blocks),
    SERIES("sglang:realtime_tokens_total", UNIFIED "mode=\"prefill_compute\",", AFTER, computed),
    SERIES("sglang:realtime_tokens_total", UNIFIED "mode=\"prefill_cache\",", AFTER, reused),
    SERIES("sglang:realtime_tokens_total", UNIFIED "mode=\"decode\",", AFTER, decoded),
    SERIES("sglang:gen_throughput", UNIFIED, AFTER, tokens_per_s),
};

static const struct row sglang_adapters =
    SERIES("sglang:lora_pool_slots_total", UNIFIED, AFTER, adapter_slots);

/* The server in front of the schedulers counts without ranks. */
static void sglang_write(const struct writer *w)
{
    const struct sim_engine *e = w->engine;
    const struct sim_counters *n = &w->sum;
    uint64_t aborted = 0;
    for (unsigned i = 0; i < e->ranks.count; i++)
        aborted += e->tally[i].aborted;

    put_rows(w, sglang_ranks, ARRAY_LEN(sglang_ranks));
    /* Readers sum the series by is_streaming. The simulator does not know the parts: a third is not
     * streamed.
     */
    const struct {
        const char *name;
        double count;
    } split[] = {{"sglang:prompt_tokens_total", w->prompt_tokens},
                 {"sglang:generation_tokens_total", w->generation_tokens},
                 {"sglang:num_requests_total", (double)e->requests}};
    for (size_t i = 0; i < ARRAY_LEN(split); i++) {
        double whole = floor(split[i].count / 3);
        put_series(w, split[i].name, STREAMED, "", split[i].count - whole);
        put_series(w, split[i].name, WHOLE, "", whole);
    }
    if (n->prefix_hits > 0) /* missing until the first count */
        put_series(w, "sglang:cached_tokens_total", "cache_source=\"device\"," UNIFIED, "",
                   (double)n->prefix_hits);
    if (n->tier_hits > 0)
        put_series(w, "sglang:cached_tokens_total", "cache_source=\"host\"," UNIFIED, "",
                   (double)n->tier_hits);
    if (e->options.max_loras > 0)
        put_row(w, &sglang_adapters);
    if (aborted > 0)
        put_series(w, "sglang:num_aborted_requests_total", UNIFIED, "", (double)aborted);
}

/* The metric's name in a line, without the suffixes of a histogram. */
static struct slice name_of(struct slice line)
{
    static const struct slice suffixes[] = {SLICE("_bucket"), SLICE("_sum"), SLICE("_count")};
    if (slice_starts_with(line, SLICE("# ")))
        line = slice_skip(line, 7); /* HELP, TYPE */
    line = slice_cut(&line, ' ');
    line = slice_cut(&line, '{');
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++)
        if (line.len > suffixes[i].len &&
            slice_equal(slice_skip(line, line.len - suffixes[i].len), suffixes[i]))
            return slice_of(line.at, line.len - suffixes[i].len);
    return line;
}

/* Leaves out lines about these names. */
static void leave_out(struct slice names, struct buf *out)
{
    size_t kept = 0;
    for (size_t at = 0; names.len > 0 && at < out->len;) {
        struct slice rest = slice_skip(buf_slice(out), at);
        struct slice line = slice_cut(&rest, '\n'), list = names;
        size_t len = line.len + 1 > out->len - at ? out->len - at : line.len + 1;
        bool missing = false;
        while (list.len > 0)
            missing |= slice_equal(slice_cut(&list, ','), name_of(line));
        if (!missing) {
            memmove(out->at + kept, out->at + at, len);
            kept += len;
        }
        at += len;
    }
    if (names.len > 0)
        out->len = kept;
}

void sim_metrics_write(const struct sim_engine *e, struct buf *out)
{
    struct writer w = {.engine = e, .out = out};
    for (unsigned i = 0; i < e->ranks.count; i++) {
        const struct sim_seen seen = sim_engine_seen(e, i);
        sim_counters_add(&w.sum, &seen.counters);
        w.told[i] = told_of(e, i);
        w.prompt_tokens += e->options.metrics_at_end != SIM_AT_END_NONE
                               ? w.told[i].prompt_tokens
                               : (double)seen.counters.prefix_queries;
        w.generation_tokens += w.told[i].generation_tokens;
    }
    sim_put(out,
            "# HELP process_start_time_seconds Start time of the process since unix epoch in "
            "seconds.\n# TYPE process_start_time_seconds gauge\n"
            "process_start_time_seconds %.2f\n",
            e->start_time_s);
    if (e->options.sglang)
        sglang_write(&w);
    else
        vllm_write(&w);
    leave_out(slice_of_cstr(e->options.metrics_missing), out);
}
