#include "tests/engine-sim/engine.h"

#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "tests/engine-sim/job.h"

/* --- time ------------------------------------------------------------------------------------ */

uint64_t sim_clock_ns(const struct sim_engine *e)
{
    return e->server.carrier->now_ns((struct sim_server *)&e->server);
}

uint64_t sim_now_ns(const struct sim_engine *e)
{
    return e->base_ns +
           (uint64_t)((double)(sim_clock_ns(e) - e->base_at_ns) * e->options.speed_up * e->rate);
}

uint64_t sim_engine_id(struct sim_engine *e)
{
    e->id_state += 0x9e3779b97f4a7c15u;
    return hash_mix(e->id_state);
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t sim_engine_due_ns(const struct sim_engine *e)
{
    uint64_t at_ns = sooner(sim_server_due_ns(&e->server), e->fail_until_ns);
    at_ns = sooner(at_ns, sooner(sim_ping_due_ns(e), sim_interim_due_ns(e)));
    at_ns = sooner(at_ns, sooner(e->pause_due_ns, e->reset_due_ns));
    uint64_t next_ns = sim_ranks_next_event_ns(&e->ranks);
    if (next_ns != SIM_NEVER && e->rate > 0) {
        double left_ns = next_ns > e->base_ns ? (double)(next_ns - e->base_ns) : 0;
        at_ns = sooner(at_ns,
                       e->base_at_ns + (uint64_t)(left_ns / e->options.speed_up / e->rate) + 1000);
    }
    for (const struct sim_job *job = e->jobs; e->jobs_delayed > 0 && job != NULL; job = job->next)
        if (job->delayed)
            at_ns = sooner(at_ns, job->delayed_until_ns);
    return at_ns;
}

void sim_engine_pump(struct sim_engine *e)
{
    struct sim_request *r;
    if (e->pumping)
        return;
    e->pumping = true;
    sim_ranks_advance(&e->ranks, sim_now_ns(e));
    sim_kv_step(e, false);
    while ((r = sim_ranks_changed(&e->ranks)) != NULL)
        sim_job_progress((struct sim_job *)r);
    sim_published_step(e);
    e->pumping = false;
}

struct slice sim_engine_adapter(const struct sim_engine *e, struct slice model)
{
    const struct sim_options *o = &e->options;
    if (o->max_loras == 0)
        return SLICE("");
    for (unsigned i = 0; i < o->model_count; i++)
        if (slice_equal(model, slice_of_cstr(o->models[i])))
            return SLICE("");
    size_t colon = slice_find(model, ':');
    struct slice name = model;
    if (o->sglang) /* base:adapter */
        name = colon < model.len ? slice_skip(model, colon + 1) : SLICE("");
    struct slice list = slice_of_cstr(o->adapters);
    while (list.len > 0)
        if (slice_equal(slice_cut(&list, ','), name))
            return name;
    return o->adapters_any ? name : SLICE("");
}

uint64_t sim_model_len(const struct sim_engine *e)
{
    uint64_t most = e->options.model_len_max;
    bool shorter = e->fail.mode == SIM_FAIL_CONTEXT && e->fail.tokens < most;
    return shorter ? e->fail.tokens : most;
}

void sim_engine_rewrite(const struct sim_engine *e, struct sim_ask *a)
{
    const struct sim_options *o = &e->options;
    sim_ask_rewrite(a, &(struct sim_rewrite){
                           .drop = slice_of_cstr(o->prompt_drop == NULL ? "" : o->prompt_drop),
                           .lead = slice_of_cstr(o->prompt_lead == NULL ? "" : o->prompt_lead),
                           .system_first = (o->prompt_changes & SIM_PROMPT_SYSTEM_FIRST) != 0,
                           .sort_tools = (o->prompt_changes & SIM_PROMPT_SORT_TOOLS) != 0,
                           .trim_reasoning = (o->prompt_changes & SIM_PROMPT_TRIM_REASONING) != 0,
                       });
}

void sim_engine_rate(struct sim_engine *e, double rate)
{
    e->base_ns = sim_now_ns(e);
    e->base_at_ns = sim_clock_ns(e);
    sim_engine_pump(e);
    sim_published_stand(e);
    e->rate = rate;
}

/* Periodic behaviour, by the options. */
static void habits_run(struct sim_engine *e, uint64_t now_ns)
{
    const struct sim_options *o = &e->options;
    if (e->reset_due_ns <= now_ns) {
        e->reset_due_ns = now_ns + (uint64_t)(o->metrics_reset_s * 1e9);
        sim_published_forget(e);
    }
    if (e->pause_due_ns > now_ns)
        return;
    e->pause_due_ns = now_ns + (uint64_t)((o->pause_every_s + o->pause_s) * 1e9);
    struct sim_fail stuck = {.mode = SIM_FAIL_STUCK, .count = UINT64_MAX, .rank = SIM_RANK_ANY};
    if (o->pause_of == SIM_PAUSE_PROCESS)
        e->pause_ns = (uint64_t)(o->pause_s * 1e9);
    else if (e->fail.mode == SIM_FAIL_NONE)
        sim_fail_begin(e, &stuck, (uint64_t)(o->pause_s * 1e3));
}

void sim_engine_run(struct sim_engine *e)
{
    uint64_t now_ns = sim_clock_ns(e);
    sim_server_run(&e->server);
    if (e->fail_until_ns <= now_ns)
        sim_fail_end(e);
    struct sim_job *job;
    while ((job = sim_job_delayed(e, now_ns)) != NULL)
        sim_job_go_on(job);
    sim_engine_pump(e);
    sim_ping_run(e, now_ns);
    sim_interim_run(e, now_ns);
    habits_run(e, now_ns);
}

/* --- life ------------------------------------------------------------------------------------ */

static void on_request(void *context, struct sim_conn *conn, struct slice body)
{
    sim_route(context, conn, body);
}

static bool on_head(void *context, struct sim_conn *conn)
{
    return sim_route_early(context, conn);
}

static void on_gone(void *context, struct sim_conn *conn)
{
    (void)context;
    if (conn->job != NULL)
        sim_job_abandon(conn->job);
}

static uint64_t habit_ns(const struct sim_engine *e, double every_s)
{
    return every_s > 0 ? e->t0_ns + (uint64_t)(every_s * 1e9) : UINT64_MAX;
}

static void clocks_start(struct sim_engine *e)
{
    e->t0_ns = e->base_at_ns = sim_clock_ns(e);
    e->base_ns = 0;
    e->start_time_s = e->server.carrier->unix_s(&e->server);
    e->pause_ns = 0;
    e->pause_due_ns = habit_ns(e, e->options.pause_every_s);
    e->reset_due_ns = habit_ns(e, e->options.metrics_reset_s);
}

void sim_engine_init(struct sim_engine *e, uint64_t chance)
{
    const struct sim_options *o = &e->options;
    const struct sim_model_config config = {
        .prefill_tokens_per_s = o->prefill_rate,
        .decode_base_ns = o->decode_base_ms * 1e6,
        .decode_context_token_ns = o->decode_ns_per_context_token,
        .prefill_chunk = (uint32_t)o->prefill_chunk,
        .running_max = (uint32_t)o->running_max,
        .queued_max = (uint32_t)o->queued_max,
        .block_tokens = (uint32_t)o->block_tokens,
        .cache_blocks = (uint32_t)(o->cache_tokens / o->block_tokens),
        .tier_blocks = (uint32_t)(o->tier_tokens / o->block_tokens),
        .tier_tokens_per_s = o->tier_rate,
        .adapters_max = (uint32_t)o->max_loras,
        .adapter_load_ns = (uint64_t)(o->lora_load_s * 1e9),
    };
    sim_ranks_open(&e->ranks, &config, (unsigned)o->data_parallel,
                   o->sglang ? SIM_ROUND_ROBIN : SIM_LEAST_IN_FLIGHT);
    sim_kv_init(e);
    e->id_state = chance;
    e->last_rank = SIM_RANK_ANY;
    e->fail_until_ns = UINT64_MAX;
    e->server.context = e;
    e->server.on_request = on_request;
    e->server.on_gone = on_gone;
    e->server.on_head = on_head;
    e->server.idle_ms = o->idle_close_ms;
    e->server.idle_end = o->idle_end;
    sim_server_init(&e->server);
    e->rate = 1;
    clocks_start(e);
}

void sim_engine_free(struct sim_engine *e)
{
    while (e->jobs != NULL)
        sim_job_abort(e->jobs);
    sim_store_clear(e);
    sim_publisher_destroy(e->kv);
    sim_ranks_close(&e->ranks);
    sim_set_free(e);
    buf_free(&e->last_head);
    buf_free(&e->last_body);
    while (e->server.conns != NULL)
        sim_conn_close(e->server.conns);
    sim_server_listen(&e->server, false);
}

void sim_engine_anew(struct sim_engine *e, const struct sim_conn *but)
{
    struct sim_conn *next;
    if (e->kv != NULL)
        sim_publisher_stop(e->kv);
    while (e->jobs != NULL) {
        struct sim_conn *conn = e->jobs->conn;
        sim_job_abort(e->jobs);
        if (conn != NULL)
            sim_conn_reset(conn);
    }
    for (struct sim_conn *i = e->server.conns; i != NULL; i = next) {
        next = i->next;
        if (i != but)
            sim_conn_reset(i);
    }
    sim_store_clear(e);
    sim_ranks_reset(&e->ranks);
    if (e->kv != NULL)
        sim_publisher_start(e->kv);
    sim_kv_step(e, false);
    memset(e->published, 0, sizeof e->published);
    memset(e->tally, 0, sizeof e->tally);
    e->requests = 0;
    if (e->dead)
        e->rate = 1;
    e->dead = e->terminating = false;
    e->over_since_ns = 0;
    clocks_start(e);
    sim_journal_event(&e->server.journal, sim_clock_ns(e), "restart");
}
