/* A request for output, from the body to the scheduler. */
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/hash.h"
#include "tests/engine-sim/job.h"

/* Decides the length of the answer: random around the mean, from the prompt's hash, and bounded by
 * the request. The same prompt gets the same answer everywhere. */
static void output_decide(struct sim_job *job, const struct sim_ask *a)
{
    const struct sim_options *o = &job->engine->options;
    uint64_t seed = hash_mix(job->request.chain.hash ^ hash_mix(o->seed) ^ hash_mix(a->seed + 1));
    double unit = (double)(hash_mix(seed + 1) >> 11) / 9007199254740992.0;
    uint64_t length = (uint64_t)((double)o->output_tokens * (0.5 + unit));
    uint64_t bound = sim_model_len(job->engine) - job->request.chain.tokens;
    if (job->max_tokens >= 0 && (uint64_t)job->max_tokens < bound)
        bound = (uint64_t)job->max_tokens;
    if ((int64_t)length < a->min_tokens)
        length = (uint64_t)a->min_tokens;
    if (length == 0)
        length = 1;
    if (bound == 0) /* SGLang answers without text; the simulator with a token */
        bound = 1;
    job->length_ends_it = a->ignore_eos || length >= bound;
    job->request.output_seed = seed;
    job->request.output_tokens = (uint32_t)(job->length_ends_it ? bound : length);
}

/* vLLM: a prefix and the client's id, or a random id. SGLang: the body's `rid`, or a random id. */
static void id_make(struct sim_job *job, const struct sim_ask *a)
{
    char random[40];
    bool sglang = job->engine->options.sglang;
    struct slice given =
        sglang ? a->request_id : http_head_find(&job->conn->head, SLICE("x-request-id"));
    const char *prefix = sglang && job->form != &sim_form_responses ? "" : job->form->id_prefix;
    if (given.len == 0)
        given = a->request_id;
    job->number = sim_engine_id(job->engine);
    if (sglang)
        (void)snprintf(random, sizeof random, "%016lx%016lx", job->number, hash_mix(job->number));
    else
        (void)snprintf(random, sizeof random, "%016lx", job->number);
    if (given.len == 0 || job->form == &sim_form_responses)
        given = slice_of_cstr(random);
    size_t n = strlen(prefix);
    (void)slice_to_cstr(slice_of_cstr(prefix), job->id, sizeof job->id);
    (void)slice_to_cstr(given, job->id + n, sizeof job->id - n);
}

/* The adapter's id, from the name; 0: the base model. */
static uint64_t adapter_of(const struct sim_job *job)
{
    struct slice name = sim_engine_adapter(job->engine, slice_of_cstr(job->model));
    uint64_t id = 0;
    for (size_t i = 0; i < name.len; i++)
        id = hash_mix(id * 31 + (unsigned char)name.at[i]);
    return name.len > 0 && id == 0 ? 1 : id;
}

static struct sim_job *job_create(struct sim_engine *e, struct sim_conn *c,
                                  const struct sim_form *form, const struct sim_ask *a)
{
    struct sim_job *job = calloc(1, sizeof *job);
    CHECK(job != NULL);
    struct slice orca = http_head_find(&c->head, SLICE("endpoint-load-metrics-format"));
    *job = (struct sim_job){
        .engine = e,
        .conn = c,
        .form = form,
        .words = e->options.sglang && form->sglang != NULL ? form->sglang : form,
        .next = e->jobs,
        .created_s =
            (int64_t)e->start_time_s + (int64_t)((sim_clock_ns(e) - e->t0_ns) / 1000000000u),
        .max_tokens = a->max_tokens < 0 && form->output_bounded_at_16 ? 16 : a->max_tokens,
        .stream = a->stream,
        .include_usage = a->include_usage,
        .token_ids = a->return_token_ids && !e->options.sglang,
        .store = form == &sim_form_responses && a->store,
        .orca = orca.len == 0 ? '\0' : orca.at[0],
    };
    if (e->jobs != NULL)
        e->jobs->prev = job;
    e->jobs = job;
    c->job = job;
    id_make(job, a);
    const char *unnamed = e->options.sglang ? "default" : e->options.models[0];
    (void)slice_to_cstr(a->model.len > 0 ? a->model : slice_of_cstr(unnamed), job->model,
                        sizeof job->model);
    (void)slice_to_cstr(a->previous_response, job->previous, sizeof job->previous);
    job->request.adapter = adapter_of(job);
    if (a->has_tools && a->tool_choice == SIM_TOOL_REQUIRED)
        (void)slice_to_cstr(a->tool_name, job->tool, sizeof job->tool);
    return job;
}

/* Separates prompts of equal text: the salt and the model or adapter. */
static uint64_t namespace_of(const struct sim_job *job, const struct sim_ask *a)
{
    const struct sim_options *o = &job->engine->options;
    uint64_t name = 0;
    const char *model = o->models[0]; /* SGLang takes any other name for this model */
    struct slice adapter = sim_engine_adapter(job->engine, slice_of_cstr(job->model));
    for (unsigned i = 0; i < o->model_count; i++)
        if (strcmp(job->model, o->models[i]) == 0)
            model = o->models[i];
    struct slice parts[] = {slice_of_cstr(model), SLICE("\n"), a->cache_salt, SLICE("\n"), adapter};
    size_t count = adapter.len > 0 ? ARRAY_LEN(parts) : 3;
    for (size_t p = 0; p < count; p++)
        for (size_t i = 0; i < parts[p].len; i++)
            name = hash_mix(name * 31 + (unsigned char)parts[p].at[i]);
    return name;
}

static bool chain_make(struct sim_job *job, const struct sim_ask *a)
{
    struct sim_chain *chain = &job->request.chain;
    struct slice previous = a->previous_response;
    if (previous.len == 0) {
        sim_chain_init(chain, (uint32_t)job->engine->options.block_tokens, namespace_of(job, a));
        chain->keeps_ids = job->engine->kv != NULL || job->token_ids;
        (void)slice_to_cstr(a->cache_salt, chain->salt, sizeof chain->salt);
        (void)slice_to_cstr(sim_engine_adapter(job->engine, slice_of_cstr(job->model)),
                            chain->adapter, sizeof chain->adapter);
    } else if (sim_store_chain(job->engine, previous, chain) != 0) {
        sim_answer_error(job->engine, job->conn, 404, "NotFoundError", "response_id",
                         "Response with id '%.*s' not found.", SLICE_ARG(previous));
        return false;
    }
    sim_ask_render(a, chain, previous.len > 0);
    return true;
}

/* Decides which streams hold back their text, and for how long. */
static void hold_decide(struct sim_job *job)
{
    const struct sim_options *o = &job->engine->options;
    double chance = (double)(hash_mix(job->number) >> 11) / 9007199254740992.0;
    if (job->fail.mode == SIM_FAIL_SILENT) {
        job->hold_ns = job->fail.delay_ms * 1000000;
        job->hold_after = job->fail.after_chunks;
    } else if (o->silence_s > 0 && chance < o->silence_share) {
        job->hold_ns = (uint64_t)(o->silence_s * 1e9);
        job->hold_after = o->silence_after;
    } else if (o->framing & SIM_FRAMING_GIANT) {
        job->hold_ns = UINT64_MAX;
    }
}

/* Milliseconds before the scheduler receives the prompt. */
static uint64_t tokenizer_ms(const struct sim_job *job)
{
    const struct sim_options *o = &job->engine->options;
    uint64_t chance = hash_mix(job->number ^ hash_mix(o->seed + 1));
    if (o->tokenizer_slow_ms > 0 && chance % 20 == 0)
        return (uint64_t)o->tokenizer_slow_ms;
    return (uint64_t)(o->tokenizer_ms * (double)(chance >> 11) / 9007199254740992.0);
}

#define SHUTTING_DOWN "cannot schedule new futures after shutdown"

/* The status of an immediate answer by a failure on demand, or 0. */
static unsigned fail_status(enum sim_fail_mode mode)
{
    switch (mode) {
    case SIM_FAIL_429:
        return 429;
    case SIM_FAIL_500:
    case SIM_FAIL_DRAINING:
        return 500;
    case SIM_FAIL_503:
        return 503;
    default:
        return 0;
    }
}

static void ask_serve(struct sim_engine *e, struct sim_conn *c, const struct sim_form *form,
                      const struct sim_ask *a)
{
    struct sim_fail fail = sim_fail_take(e);
    if (fail_status(fail.mode) != 0) {
        sim_answer_error(e, c, fail_status(fail.mode), NULL, NULL, "%s",
                         fail.mode == SIM_FAIL_DRAINING ? SHUTTING_DOWN : "Injected failure");
        return;
    }
    if (!sim_ask_check(e, c, form, a))
        return;
    enum sim_reject reject = sim_reject_of(e, fail.mode);
    if (sim_rejected(e, c, form, a, reject))
        return;
    struct sim_job *job = job_create(e, c, form, a);
    job->fail = fail;
    if (reject == SIM_REJECT_NO_TOOL_PARSER)
        job->tool[0] = '\0';
    hold_decide(job);
    if (!sim_rank_check(job, a) || !chain_make(job, a) || !sim_length_check(e, c, job)) {
        job->conn = NULL; /* already answered */
        sim_job_free(job);
        return;
    }
    output_decide(job, a);
    if (fail.mode == SIM_FAIL_INTERIM || (fail.mode == SIM_FAIL_HANG && fail.after_chunks == 0)) {
        job->wrote_ns = sim_clock_ns(e);
        job->silent = true;
        return;
    }
    if (form == &sim_form_responses && a->background) {
        struct buf out = {.at = NULL};
        job->conn = NULL;
        job->stream = false;
        job->store = true;
        c->job = NULL;
        sim_response_write(job, "queued", &out);
        if (sim_job_submit(job))
            sim_answer_json(c, 200, &out);
        else
            sim_answer_full(e, c, form);
        buf_free(&out);
        return;
    }
    if (fail.mode == SIM_FAIL_SLOW) {
        sim_job_delay(job, fail.delay_ms);
        return;
    }
    uint64_t late_ms = tokenizer_ms(job);
    if (late_ms > 0)
        sim_job_delay(job, late_ms);
    else
        (void)sim_job_submit(job);
}

static bool is_json_type(struct slice type)
{
    type = slice_trim(slice_cut(&type, ';'));
    return slice_equal_nocase(type, SLICE("application/json"));
}

void sim_job_begin(struct sim_engine *e, struct sim_conn *c, const struct sim_form *form,
                   struct slice body)
{
    struct sim_ask a;
    e->requests++;
    e->last_rank = SIM_RANK_ANY;
    if (e->options.control) {
        buf_clear(&e->last_head);
        buf_clear(&e->last_body);
        CHECK(buf_append(&e->last_head, c->head.at, c->head.bytes) == 0);
        CHECK(buf_append_slice(&e->last_body, body) == 0);
    }
    if (e->dead && !e->options.sglang) {
        sim_answer_error(e, c, 500, NULL, NULL, "%s", SIM_CORE_DEAD);
        return;
    }
    if (e->terminating && !e->options.sglang) {
        sim_answer_error(e, c, 500, NULL, NULL, SHUTTING_DOWN);
        return;
    }
    if (!is_json_type(http_head_find(&c->head, SLICE("content-type")))) {
        sim_answer_error(e, c, 400, "Bad Request", NULL,
                         "Unsupported Media Type: Only 'application/json' is allowed");
        return;
    }
    sim_interim_heads(e, c);
    sim_frame_begin(e, c);
    if (sim_ask_parse(&a, body) == 0) {
        sim_engine_rewrite(e, &a);
        bool poisoned = sim_engine_poisoned(e, body, a.wrong_tokens);
        if (poisoned) /* nothing of the request is computed, however late this process runs */
            sim_engine_rate(e, 0);
        ask_serve(e, c, form, &a);
        if (poisoned)
            sim_engine_die(e);
    } else {
        char param[64];
        (void)snprintf(param, sizeof param, "body.%zu", a.error_at);
        sim_answer_error(e, c, 400, "Bad Request", param,
                         "1 validation error:\n  {'type': 'json_invalid', 'loc': ('body', %zu), "
                         "'msg': 'JSON decode error', 'input': {}}",
                         a.error_at);
    }
    sim_ask_free(&a);
}
