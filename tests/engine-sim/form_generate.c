/* The answers of SGLang's native /generate. */
#include "tests/engine-sim/job.h"

static void generate_begin(struct sim_job *job, struct buf *out)
{
    (void)job;
    (void)out;
}

static void put_answer(const struct sim_job *job, struct buf *out)
{
    const struct sim_request *r = &job->request;
    sim_put(out, "{\"text\":");
    sim_put_json(out, slice_of(job->text.at == NULL ? "" : job->text.at, job->text.len));
    sim_put(out, ",\"output_ids\":[");
    for (uint32_t i = 0; i < job->emitted; i++)
        sim_put(out, "%s%u", i == 0 ? "" : ",", sim_token_id(sim_output_token(r->output_seed, i)));
    sim_put(out, "],\"meta_info\":{\"id\":");
    sim_put_json(out, slice_of_cstr(job->id));
    if (r->state != SIM_DONE)
        sim_put(out, ",\"finish_reason\":null");
    else if (job->aborted)
        sim_put(
            out,
            ",\"finish_reason\":{\"type\":\"abort\",\"message\":\"Aborted\",\"status_code\":null}");
    else if (job->length_ends_it)
        sim_put(out, ",\"finish_reason\":{\"type\":\"length\",\"length\":%u}", r->output_tokens);
    else
        sim_put(out, ",\"finish_reason\":{\"type\":\"stop\",\"matched\":2}");
    sim_put(out,
            ",\"prompt_tokens\":%lu,\"weight_version\":\"default\",\"completion_tokens\":%lu,"
            "\"cached_tokens\":%lu,\"dp_rank\":",
            r->prompt_tokens, sim_job_completion_tokens(job), sim_job_cached_tokens(job));
    if (job->engine->ranks.count > 1)
        sim_put(out, "%u", r->rank);
    else
        sim_put(out, "null");
    sim_put(out, ",\"e2e_latency\":%.6f}}",
            (double)(sim_now_ns(job->engine) - job->submitted_ns) / 1e9);
}

/* Each chunk carries the whole text so far. */
static void generate_piece(struct sim_job *job, struct slice text, struct buf *out)
{
    (void)text;
    sim_put(out, "data: ");
    put_answer(job, out);
    sim_put(out, "\n\n");
}

static void generate_end(struct sim_job *job, struct buf *out)
{
    (void)job;
    sim_put(out, "data: [DONE]\n\n");
}

static void generate_whole(struct sim_job *job, struct buf *out)
{
    put_answer(job, out);
}

const struct sim_form sim_form_generate = {
    .name = "generate",
    .id_prefix = "",
    .begin = generate_begin,
    .piece = generate_piece,
    .end = generate_end,
    .whole = generate_whole,
};
