/* The death of an engine, as observed in vLLM and SGLang. */
#include <string.h>

#include "base/check.h"
#include "tests/engine-sim/job.h"

enum {
    VLLM_EXIT_MS = 100,    /* from the core's death to the server's exit */
    SGLANG_EXIT_MS = 5400, /* from the scheduler's death to the exit; real time, like routers'
                            * clocks */
    SGLANG_STAY_MS = 1500, /* from SIGTERM and the last request to the exit */
};

bool sim_engine_unwell(const struct sim_engine *e)
{
    bool term = e->terminating && (e->options.sglang || e->options.on_term == SIM_TERM_HANG);
    return term || (e->dead && !e->options.sglang);
}

/* --- SIGTERM --------------------------------------------------------------------------------- */

/* A draining vLLM accepts connections until all requests are done. Without draining, vLLM answers
 * /health for a moment, then refuses connections, and leaves requests hanging. SGLang serves all
 * clients, until none has come for a moment. */
static bool drained(struct sim_engine *e)
{
    bool drain = e->options.on_term == SIM_TERM_DRAIN;
    if (!drain)
        sim_server_listen(&e->server, false);
    bool over = drain ? e->jobs == NULL : e->server.conn_count == 0;
    uint64_t now_ns = sim_clock_ns(e);
    double stay_ns = drain && e->options.sglang ? SGLANG_STAY_MS * 1e6 / e->options.speed_up : 0;
    if (!over || e->over_since_ns == 0)
        e->over_since_ns = now_ns;
    return over && (double)(now_ns - e->over_since_ns) >= stay_ns;
}

bool sim_engine_over(struct sim_engine *e)
{
    return e->dead ? sim_clock_ns(e) >= e->exit_ns : e->terminating && drained(e);
}

void sim_engine_terminate(struct sim_engine *e)
{
    e->terminating = true;
    if (!e->options.sglang)
        sim_server_close_idle(&e->server);
    if (e->options.on_term == SIM_TERM_HANG)
        for (struct sim_job *job = e->jobs; job != NULL; job = job->next)
            job->silent = true;
}

/* --- aborted requests ----------------------------------------------------------------------- */

void sim_engine_abort(struct sim_engine *e)
{
    struct sim_job *next;
    for (struct sim_job *job = e->jobs; job != NULL; job = next) {
        next = job->next;
        if (!job->submitted || job->conn == NULL || job->silent)
            continue;
        sim_ranks_abort(&e->ranks, &job->request, sim_now_ns(e));
        job->aborted = true;
        sim_job_progress(job);
    }
    sim_engine_pump(e);
}

/* --- killed ---------------------------------------------------------------------------------- */

void sim_engine_die(struct sim_engine *e)
{
    struct sim_job *next;
    if (e->dead)
        return;
    e->dead = true;
    if (e->kv != NULL)
        sim_publisher_stop(e->kv);
    sim_engine_rate(e, 0);
    if (!e->options.sglang)
        for (struct sim_job *job = e->jobs; job != NULL; job = next) {
            next = job->next;
            if (job->conn != NULL && !job->silent)
                sim_job_fail(job, 500, SIM_CORE_DEAD);
        }
    double after_ms = e->options.sglang ? SGLANG_EXIT_MS : VLLM_EXIT_MS / e->options.speed_up;
    e->exit_ns = sim_clock_ns(e) + (uint64_t)(after_ms * 1e6);
}

bool sim_engine_poisoned(struct sim_engine *e, struct slice body, bool wrong_tokens)
{
    struct slice text = slice_of_cstr(e->fail.poison);
    if (e->options.poison != NULL)
        text = slice_of_cstr(e->options.poison);
    bool has_text = text.len > 0 && memmem(body.at, body.len, text.at, text.len) != NULL;
    return has_text || (e->options.sglang && wrong_tokens);
}
