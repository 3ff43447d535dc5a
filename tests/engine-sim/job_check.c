/* Errors of a request, in the words and the order of either engine. */
#include <stdio.h>

#include "base/check.h"
#include "tests/engine-sim/job.h"

bool sim_ask_check(struct sim_engine *e, struct sim_conn *c, const struct sim_form *form,
                   const struct sim_ask *a)
{
    const char *missing = NULL;
    if ((form == &sim_form_chat || form == &sim_form_messages) && !a->has_messages)
        missing = "messages";
    else if (form == &sim_form_messages && a->max_tokens < 0)
        missing = "max_tokens";
    else if (form == &sim_form_responses && !a->has_prompt)
        missing = "input";
    else if ((form == &sim_form_completions || form == &sim_form_generate) && !a->has_prompt)
        missing = "prompt";
    if (missing != NULL && e->options.sglang && form == &sim_form_messages) {
        sim_answer_error(e, c, 400, "invalid_request_error", NULL, "%s: Field required", missing);
        return false;
    }
    if (missing != NULL) {
        char param[64];
        (void)snprintf(param, sizeof param, "body.%s", missing);
        sim_answer_error(e, c, 400, "Bad Request", param,
                         "1 validation error:\n  {'type': 'missing', 'loc': ('body', '%s'), "
                         "'msg': 'Field required'}",
                         missing);
        return false;
    }
    if (!sim_model_served(e, c, a->model))
        return false;
    if (e->options.sglang) /* SGLang accepts an empty salt and no tokens, and dies of wrong
                            * tokens */
        return true;
    if (a->empty_salt || a->max_tokens == 0 || a->wrong_tokens) {
        sim_answer_error(e, c, 400, NULL, NULL, "%s",
                         a->empty_salt        ? "cache_salt must be a non-empty string"
                         : a->max_tokens == 0 ? "max_tokens must be at least 1, got 0."
                                              : "Token id is out of vocabulary");
        return false;
    }
    return true;
}

static bool length_check_sglang(struct sim_engine *e, struct sim_conn *c, const struct sim_job *job)
{
    uint64_t most = sim_model_len(e);
    uint64_t prompt = job->request.chain.tokens;
    if (job->max_tokens > (int64_t)most)
        sim_answer_error(e, c, 400, NULL, NULL,
                         "max_completion_tokens is too large: %ld.This model supports at most %lu "
                         "completion tokens.",
                         job->max_tokens, most);
    else if (prompt >= most)
        sim_answer_too_long(c, job, prompt, most);
    else if (prompt == 0)
        sim_answer_error(e, c, 400, NULL, NULL, "The input is empty.");
    else
        return true;
    return false;
}

bool sim_length_check(struct sim_engine *e, struct sim_conn *c, const struct sim_job *job)
{
    uint64_t most = sim_model_len(e);
    uint64_t prompt = job->request.chain.tokens;
    uint64_t wanted = job->max_tokens < 0 ? 1 : (uint64_t)job->max_tokens;
    if (e->options.sglang)
        return length_check_sglang(e, c, job);
    if (wanted > most)
        sim_answer_error(e, c, 400, NULL, "max_tokens",
                         "max_tokens=%lu cannot be greater than max_model_len=%lu.", wanted, most);
    else if (prompt + wanted > most)
        sim_answer_error(
            e, c, 400, NULL, "input_tokens",
            "This model's maximum context length is %lu tokens. However, your prompt "
            "contains at least %lu input tokens, and %lu output tokens were requested.",
            most, prompt, wanted);
    else if (prompt == 0)
        sim_answer_error(e, c, 400, NULL, NULL, "The decoder prompt cannot be empty");
    else
        return true;
    return false;
}

/* --- ranks ----------------------------------------------------------------------------------- */

/* vLLM ignores the header in /v1/responses, and SGLang in /generate (tried with vLLM 0.32 and
 * SGLang 0.5.23). */
static bool header_pins(const struct sim_job *job)
{
    bool sglang = job->engine->options.sglang;
    return job->form != (sglang ? &sim_form_generate : &sim_form_responses);
}

static bool body_pins(const struct sim_job *job)
{
    return job->engine->options.sglang && job->form != &sim_form_responses &&
           job->form != &sim_form_messages;
}

bool sim_rank_check(struct sim_job *job, const struct sim_ask *a)
{
    struct sim_engine *e = job->engine;
    bool sglang = e->options.sglang;
    struct slice header = http_head_find(&job->conn->head, SLICE("x-data-parallel-rank"));
    int64_t rank = SIM_ASK_NO_RANK;
    char text[80];
    job->rank = SIM_RANK_ANY;
    if (body_pins(job))
        rank = a->routed_dp_rank != SIM_ASK_NO_RANK ? a->routed_dp_rank : a->data_parallel_rank;
    if (header_pins(job) && header.len > 0 && !sim_ask_integer(header, &rank) && sglang) {
        sim_answer_error(e, job->conn, 400, "400", NULL,
                         "Invalid X-Data-Parallel-Rank header: must be an integer, got '%.*s'",
                         SLICE_ARG(header));
        return false;
    }
    if (rank == SIM_ASK_NO_RANK)
        return true;
    if (rank >= 0 && rank < (int64_t)e->ranks.count) {
        job->rank = (int)rank;
        return true;
    }
    if (sglang) {
        (void)snprintf(text, sizeof text, "routed_dp_rank=%ld out of range [0, %u)", rank,
                       e->ranks.count);
        sim_answer_refused(job->conn, job, text);
    } else {
        sim_answer_error(e, job->conn, 400, NULL, NULL,
                         "data_parallel_rank %ld is out of range [0, %u).", rank, e->ranks.count);
    }
    return false;
}
