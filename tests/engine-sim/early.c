/* Responses before an answer is due: a status before the body is read, 1xx heads. */
#include "base/check.h"
#include "tests/engine-sim/job.h"

enum { EARLY_HINTS = 103, PROCESSING = 102 };

bool sim_route_early(struct sim_engine *e, struct sim_conn *c)
{
    bool of_output =
        c->head.method == HTTP_METHOD_POST && !slice_starts_with(c->head.path, SLICE("/sim/"));
    if (e->fail.mode != SIM_FAIL_EARLY || !of_output)
        return false;
    struct sim_fail fail = sim_fail_take(e);
    e->requests++;
    sim_answer_error(e, c, fail.status, NULL, NULL, "Injected failure, before the body was read");
    return true;
}

void sim_interim_heads(const struct sim_engine *e, struct sim_conn *c)
{
    for (uint64_t i = 0; i < e->options.interim; i++)
        sim_http_interim(c, i % 2 == 0 ? EARLY_HINTS : PROCESSING);
}

/* --- 1xx heads without an end ---------------------------------------------------------------- */

static bool may_interim(const struct sim_job *job)
{
    return job->fail.mode == SIM_FAIL_INTERIM && job->silent && !job->begun && job->conn != NULL;
}

static uint64_t due_ns(const struct sim_job *job)
{
    return job->wrote_ns + job->fail.delay_ms * 1000000;
}

uint64_t sim_interim_due_ns(const struct sim_engine *e)
{
    uint64_t first_ns = UINT64_MAX;
    for (const struct sim_job *job = e->jobs; job != NULL; job = job->next)
        if (may_interim(job) && due_ns(job) < first_ns)
            first_ns = due_ns(job);
    return first_ns;
}

void sim_interim_run(struct sim_engine *e, uint64_t now_ns)
{
    for (struct sim_job *job = e->jobs; job != NULL; job = job->next) {
        if (!may_interim(job) || due_ns(job) > now_ns)
            continue;
        job->wrote_ns = now_ns;
        sim_http_interim(job->conn, PROCESSING);
    }
}
