#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/hash.h"
#include "http/answer.h"
#include "tests/engine-sim/job.h"

void sim_answer_json(struct sim_conn *c, unsigned status, const struct buf *body)
{
    sim_http_answer(c, status, SIM_JSON, buf_slice(body), NULL);
}

/* vLLM's name for an error with this status. */
static const char *type_of(unsigned status)
{
    switch (status) {
    case 400:
        return "BadRequestError";
    case 404:
        return "NotFoundError";
    case 503:
        return "Service Unavailable";
    default:
        return "InternalServerError";
    }
}

void sim_answer_error(struct sim_engine *e, struct sim_conn *c, unsigned status, const char *type,
                      const char *param, const char *format, ...)
{
    struct buf message = {.at = NULL};
    struct buf body = {.at = NULL};
    char text[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (type == NULL)
        type = type_of(status);
    sim_put_json(&message, slice_of_cstr(text));
    /* Errors of the body's form come from the web framework, equal on all paths. */
    bool anthropic = slice_equal(c->head.path, SLICE("/v1/messages")) &&
                     !slice_equal(slice_of_cstr(type), SLICE("Bad Request"));
    if (anthropic)
        sim_put(&body, "{\"type\":\"error\",\"error\":{\"type\":\"%s\",\"message\":%.*s}}", type,
                SLICE_ARG(message));
    else if (e->options.sglang)
        sim_put(&body, "{\"object\":\"error\",\"message\":%.*s,\"type\":\"%s\",\"param\":",
                SLICE_ARG(message), type);
    else
        sim_put(&body,
                "{\"error\":{\"message\":%.*s,\"type\":\"%s\",\"param\":", SLICE_ARG(message),
                type);
    if (!anthropic) {
        sim_put_json(&body, param == NULL ? slice_of(NULL, 0) : slice_of_cstr(param));
        sim_put(&body, ",\"code\":%u}%s", status, e->options.sglang ? "" : "}");
    }
    sim_answer_json(c, status, &body);
    buf_free(&message);
    buf_free(&body);
}

bool sim_model_served(struct sim_engine *e, struct sim_conn *c, struct slice model)
{
    if (model.len == 0)
        return true;
    for (unsigned i = 0; i < e->options.model_count; i++)
        if (slice_equal(model, slice_of_cstr(e->options.models[i])))
            return true;
    if (sim_engine_adapter(e, model).len > 0)
        return true;
    if (e->options.sglang) { /* any name means the only model, except an adapter's name */
        if (slice_find(model, ':') == model.len)
            return true;
        sim_answer_error(e, c, 400, NULL, NULL,
                         e->options.max_loras == 0 ? "LoRA is not enabled."
                                                   : "The LoRA adapter is not loaded.");
        return false;
    }
    sim_answer_error(e, c, 404, "NotFoundError", "model",
                     "The model `%.*s` does not exist. Valid aliases: %s.", SLICE_ARG(model),
                     e->options.models[0]);
    return false;
}

/* --- simple answers -------------------------------------------------------------------------- */

typedef void (*handler)(struct sim_engine *e, struct sim_conn *c, struct slice body);

enum { SGLANG_HEALTH_MS = 1003 };

static void health(struct sim_engine *e, struct sim_conn *c, struct slice body)
{
    (void)body;
    const struct sim_fail *f = &e->fail;
    bool ping = slice_equal(c->head.path, SLICE("/ping"));
    bool asks_model = e->options.sglang && !ping; /* SGLang makes the model produce a token */
    bool hangs = f->probes == SIM_HEALTH_HANG || (f->health && f->mode == SIM_FAIL_HANG) ||
                 (asks_model && e->rate <= 0);
    bool bad = f->probes == SIM_HEALTH_503 || sim_engine_unwell(e) ||
               (f->health && f->mode != SIM_FAIL_NONE && f->probes == SIM_HEALTH_AS_FAIL);
    if (f->probes == SIM_HEALTH_SLOW)
        sim_http_answer_later(c, 200, f->health_delay_ms);
    else if (asks_model && !bad && !hangs)
        sim_http_answer_later(c, 200, (uint64_t)(SGLANG_HEALTH_MS / e->options.speed_up));
    else if (!hangs)
        sim_http_answer(c, bad ? 503 : 200, "", SLICE(""), NULL);
}

/* An entry of the list of models. An adapter's `root` is a path, and the parent is the first
 * model. */
static void put_model(const struct sim_engine *e, struct buf *out, struct slice name, bool adapter,
                      unsigned number)
{
    sim_put(out, "%s{\"id\":", number == 0 ? "" : ",");
    sim_put_json(out, name);
    sim_put(out, ",\"object\":\"model\",\"created\":%ld,\"owned_by\":\"%s\",\"root\":",
            (long)e->start_time_s, e->options.sglang ? "sglang" : "vllm");
    sim_put_json(out, name);
    sim_put(out, ",\"parent\":");
    if (adapter)
        sim_put_json(out, slice_of_cstr(e->options.models[0]));
    else
        sim_put(out, "null");
    if (adapter)
        sim_put(out, ",\"max_model_len\":null");
    else
        sim_put(out, ",\"max_model_len\":%lu", sim_model_len(e));
    if (!e->options.sglang)
        sim_put(out,
                ",\"permission\":[{\"id\":\"modelperm-%016lx\",\"object\":"
                "\"model_permission\",\"created\":%ld,\"allow_create_engine\":false,"
                "\"allow_sampling\":true,\"allow_logprobs\":true,\"allow_search_indices\":"
                "false,\"allow_view\":true,\"allow_fine_tuning\":false,\"organization\":\"*\","
                "\"group\":null,\"is_blocking\":false}]",
                hash_mix(number + 1), (long)e->start_time_s);
    sim_put(out, "}");
}

static void models(struct sim_engine *e, struct sim_conn *c, struct slice body)
{
    struct buf out = {.at = NULL};
    unsigned number = 0;
    (void)body;
    sim_put(&out, "{\"object\":\"list\",\"data\":[");
    for (; number < e->options.model_count; number++)
        put_model(e, &out, slice_of_cstr(e->options.models[number]), false, number);
    for (struct slice list = slice_of_cstr(e->options.adapters); list.len > 0; number++)
        put_model(e, &out, slice_cut(&list, ','), true, number);
    sim_put(&out, "]}");
    sim_answer_json(c, 200, &out);
    buf_free(&out);
}

static void version(struct sim_engine *e, struct sim_conn *c, struct slice body)
{
    (void)e;
    (void)body;
    sim_http_answer(c, 200, SIM_JSON, SLICE("{\"version\":\"0.32.0\"}"), NULL);
}

static void load(struct sim_engine *e, struct sim_conn *c, struct slice body)
{
    struct buf out = {.at = NULL};
    (void)body;
    sim_put(&out, "{\"server_load\":%u}",
            sim_ranks_running(&e->ranks) + sim_ranks_waiting(&e->ranks));
    sim_answer_json(c, 200, &out);
    buf_free(&out);
}

static void metrics(struct sim_engine *e, struct sim_conn *c, struct slice body)
{
    struct buf out = {.at = NULL};
    (void)body;
    sim_metrics_write(e, &out);
    sim_http_answer(c, 200,
                    e->options.sglang ? "text/plain; version=0.0.4; charset=utf-8"
                                      : "text/plain; version=1.0.0; charset=utf-8",
                    buf_slice(&out), NULL);
    buf_free(&out);
}

/* A POST with an effect and without computation: two requests have the effect twice. */
static void deed(struct sim_engine *e, struct sim_conn *c, struct slice body)
{
    (void)body;
    sim_http_answer_later(c, 200, (uint64_t)(e->options.deed_ms / e->options.speed_up));
}

static void model_info(struct sim_engine *e, struct sim_conn *c, struct slice body)
{
    struct buf out = {.at = NULL};
    (void)body;
    sim_put(&out, "{\"model_path\":");
    sim_put_json(&out, slice_of_cstr(e->options.models[0]));
    sim_put(&out, ",\"tokenizer_path\":");
    sim_put_json(&out, slice_of_cstr(e->options.models[0]));
    sim_put(&out, ",\"is_generation\":true,\"weight_version\":\"default\"}");
    sim_answer_json(c, 200, &out);
    buf_free(&out);
}

static void server_info(struct sim_engine *e, struct sim_conn *c, struct slice body)
{
    struct buf out = {.at = NULL};
    uint64_t blocks = sim_cache_blocks(sim_model_cache(e->ranks.models[0]));
    (void)body;
    sim_put(&out, "{\"model_path\":");
    sim_put_json(&out, slice_of_cstr(e->options.models[0]));
    sim_put(&out,
            ",\"tp_size\":1,\"dp_size\":%u,\"page_size\":%lu,\"max_running_requests\":%lu,"
            "\"max_total_num_tokens\":%lu,\"max_req_input_len\":%lu,\"context_length\":%lu,"
            "\"status\":\"ready\",\"enable_cache_report\":%s,\"disaggregation_mode\":\"null\","
            "\"internal_states\":[",
            e->ranks.count, e->options.block_tokens, e->options.running_max,
            blocks * e->options.block_tokens, sim_model_len(e) - 6, sim_model_len(e),
            e->options.details ? "true" : "false");
    for (unsigned i = 0; i < e->ranks.count; i++)
        sim_put(&out, "%s{\"page_size\":%lu}", i == 0 ? "" : ",", e->options.block_tokens);
    sim_put(&out, "],\"version\":\"0.5.23\",\"kv_events\":");
    sim_put_kv_events(e, &out);
    sim_put(&out, "}");
    sim_answer_json(c, 200, &out);
    buf_free(&out);
}

/* --- prompts without output ------------------------------------------------------------------ */

static bool body_parse(struct sim_engine *e, struct sim_conn *c, struct slice body,
                       struct sim_ask *a)
{
    if (sim_ask_parse(a, body) == 0 && sim_model_served(e, c, a->model)) {
        sim_engine_rewrite(e, a);
        return true;
    }
    if (c->serving) {
        char param[64];
        (void)snprintf(param, sizeof param, "body.%zu", a->error_at);
        sim_answer_error(e, c, 400, "Bad Request", param, "1 validation error: invalid JSON");
    }
    sim_ask_free(a);
    return false;
}

struct ids {
    struct buf *out;
    uint64_t count;
};

static void put_id(void *context, uint32_t id, struct slice text)
{
    struct ids *ids = context;
    (void)text;
    sim_put(ids->out, "%s%u", ids->count++ == 0 ? "" : ",", id);
}

static void tokenize(struct sim_engine *e, struct sim_conn *c, struct slice body)
{
    struct sim_ask a;
    struct buf list = {.at = NULL};
    struct buf out = {.at = NULL};
    struct ids ids = {&list, 0};
    if (!body_parse(e, c, body, &a))
        return;
    sim_ask_tokens(&a, put_id, &ids);
    if (e->options.sglang) /* the tokenizer's limit, not the engine's */
        sim_put(&out, "{\"tokens\":[%.*s],\"count\":%lu,\"max_model_len\":32768}", SLICE_ARG(list),
                ids.count);
    else
        sim_put(&out, "{\"count\":%lu,\"max_model_len\":%lu,\"tokens\":[%.*s],\"token_strs\":null}",
                ids.count, sim_model_len(e), SLICE_ARG(list));
    sim_answer_json(c, 200, &out);
    sim_ask_free(&a);
    buf_free(&list);
    buf_free(&out);
}

/* An id is a hash, so only words of the simulator's answers can be restored; others become "?". */
static void put_word(void *context, uint32_t id, struct slice text)
{
    struct ids *ids = context;
    uint64_t i = 0;
    (void)text;
    while (i < 4096 && sim_token_id(sim_output_token(0, i)) != id)
        i++;
    struct slice word = i < 4096 ? sim_output_token(0, i) : SLICE(" ?");
    sim_put_json_inside(ids->out, ids->count++ == 0 && i == 4096 ? SLICE("?") : word);
}

static void detokenize(struct sim_engine *e, struct sim_conn *c, struct slice body)
{
    struct sim_ask a;
    struct buf out = {.at = NULL};
    struct ids ids = {&out, 0};
    if (!body_parse(e, c, body, &a))
        return;
    sim_put(&out, e->options.sglang ? "{\"text\":\"" : "{\"prompt\":\"");
    sim_ask_tokens(&a, put_word, &ids);
    sim_put(&out, "\"}");
    sim_answer_json(c, 200, &out);
    sim_ask_free(&a);
    buf_free(&out);
}

static void embeddings(struct sim_engine *e, struct sim_conn *c, struct slice body)
{
    enum { DIMENSIONS = 64 };
    struct sim_ask a;
    struct sim_chain chain;
    struct buf out = {.at = NULL};
    if (!body_parse(e, c, body, &a))
        return;
    if (!a.has_prompt) {
        sim_answer_error(e, c, 400, "Bad Request", "body.input",
                         "1 validation error:\n  {'type': 'missing', 'loc': ('body', 'input'), "
                         "'msg': 'Field required'}");
        sim_ask_free(&a);
        return;
    }
    sim_chain_init(&chain, (uint32_t)e->options.block_tokens, 0);
    sim_ask_render(&a, &chain, false);
    sim_put(&out, "{\"id\":\"embd-%016lx\",\"object\":\"list\",\"created\":%ld,\"model\":",
            sim_engine_id(e), (long)e->start_time_s);
    sim_put_json(&out, slice_of_cstr(e->options.models[0]));
    sim_put(&out, ",\"data\":[{\"index\":0,\"object\":\"embedding\",\"embedding\":[");
    for (unsigned i = 0; i < DIMENSIONS; i++)
        sim_put(&out, "%s%.6f", i == 0 ? "" : ",",
                (double)(hash_mix(chain.hash + i) >> 11) / 9007199254740992.0 - 0.5);
    sim_put(&out,
            "]}],\"usage\":{\"prompt_tokens\":%lu,\"total_tokens\":%lu,\"completion_tokens\":0,"
            "\"prompt_tokens_details\":null}}",
            chain.tokens, chain.tokens);
    sim_answer_json(c, 200, &out);
    sim_chain_free(&chain);
    sim_ask_free(&a);
    buf_free(&out);
}

static void count_tokens(struct sim_engine *e, struct sim_conn *c, struct slice body)
{
    struct sim_ask a;
    struct buf list = {.at = NULL};
    struct buf out = {.at = NULL};
    struct ids ids = {&list, 0};
    if (!body_parse(e, c, body, &a))
        return;
    sim_ask_tokens(&a, put_id, &ids);
    sim_put(&out, "{\"input_tokens\":%lu}", ids.count);
    sim_answer_json(c, 200, &out);
    sim_ask_free(&a);
    buf_free(&list);
    buf_free(&out);
}

/* --- requests for output --------------------------------------------------------------------- */

static void chat(struct sim_engine *e, struct sim_conn *c, struct slice body)
{
    sim_job_begin(e, c, &sim_form_chat, body);
}

static void completions(struct sim_engine *e, struct sim_conn *c, struct slice body)
{
    sim_job_begin(e, c, &sim_form_completions, body);
}

static void messages(struct sim_engine *e, struct sim_conn *c, struct slice body)
{
    sim_job_begin(e, c, &sim_form_messages, body);
}

static void responses(struct sim_engine *e, struct sim_conn *c, struct slice body)
{
    sim_job_begin(e, c, &sim_form_responses, body);
}

static void generate(struct sim_engine *e, struct sim_conn *c, struct slice body)
{
    sim_job_begin(e, c, &sim_form_generate, body);
}

/* --- the table ------------------------------------------------------------------------------- */

enum whose { BOTH, VLLM, SGLANG, CONTROL, METRICS };

static const struct route {
    const char *path;
    enum http_method method;
    handler handle;
    enum whose whose;
} routes[] = {
    {"/v1/chat/completions", HTTP_METHOD_POST, chat, BOTH},
    {"/v1/completions", HTTP_METHOD_POST, completions, BOTH},
    {"/v1/responses", HTTP_METHOD_POST, responses, BOTH},
    {"/v1/messages", HTTP_METHOD_POST, messages, BOTH},
    {"/v1/messages/count_tokens", HTTP_METHOD_POST, count_tokens, BOTH},
    {"/v1/embeddings", HTTP_METHOD_POST, embeddings, BOTH},
    {"/tokenize", HTTP_METHOD_POST, tokenize, BOTH},
    {"/detokenize", HTTP_METHOD_POST, detokenize, BOTH},
    {"/v1/tokenize", HTTP_METHOD_POST, tokenize, SGLANG},
    {"/v1/detokenize", HTTP_METHOD_POST, detokenize, SGLANG},
    {"/generate", HTTP_METHOD_POST, generate, SGLANG},
    {"/v1/models", HTTP_METHOD_GET, models, BOTH},
    {"/health", HTTP_METHOD_GET, health, BOTH},
    {"/health_generate", HTTP_METHOD_GET, health, SGLANG},
    {"/ping", HTTP_METHOD_GET, health, BOTH},
    {"/ping", HTTP_METHOD_POST, health, VLLM},
    {"/version", HTTP_METHOD_GET, version, VLLM},
    {"/load", HTTP_METHOD_GET, load, VLLM},
    {"/kv_event_sources", HTTP_METHOD_GET, sim_kv_sources, VLLM},
    {"/metrics", HTTP_METHOD_GET, metrics, METRICS},
    {"/model_info", HTTP_METHOD_GET, model_info, SGLANG},
    {"/get_model_info", HTTP_METHOD_GET, model_info, SGLANG},
    {"/server_info", HTTP_METHOD_GET, server_info, SGLANG},
    {"/get_server_info", HTTP_METHOD_GET, server_info, SGLANG},
    {"/reset_prefix_cache", HTTP_METHOD_POST, sim_reset_prefix_cache, VLLM},
    {"/sleep", HTTP_METHOD_POST, sim_sleep, VLLM},
    {"/wake_up", HTTP_METHOD_POST, sim_wake_up, VLLM},
    {"/is_sleeping", HTTP_METHOD_GET, sim_is_sleeping, VLLM},
    {"/flush_cache", HTTP_METHOD_POST, sim_flush_cache, SGLANG},
    {"/flush_cache", HTTP_METHOD_GET, sim_flush_cache, SGLANG},
    {"/sim/fail", HTTP_METHOD_POST, sim_control_fail, CONTROL},
    {"/sim/restart", HTTP_METHOD_POST, sim_control_restart, CONTROL},
    {"/sim/set", HTTP_METHOD_POST, sim_control_set, CONTROL},
    {"/sim/kv", HTTP_METHOD_POST, sim_control_kv, CONTROL},
    {"/sim/stats", HTTP_METHOD_GET, sim_control_stats, CONTROL},
    {"/sim/last", HTTP_METHOD_GET, sim_control_last, CONTROL},
    {"/sim/deed", HTTP_METHOD_POST, deed, CONTROL},
};

static bool route_is_open(const struct sim_engine *e, const struct route *r)
{
    switch (r->whose) {
    case VLLM:
        return !e->options.sglang;
    case SGLANG:
        return e->options.sglang;
    case CONTROL:
        return e->options.control;
    case METRICS:
        return e->options.metrics;
    default:
        return true;
    }
}

/* Without a key: vLLM opens all but /v1, SGLang health checks and metrics alone. */
static bool is_public(const struct sim_engine *e, struct slice path)
{
    if (slice_starts_with(path, SLICE("/sim/")))
        return true;
    if (!e->options.sglang)
        return !slice_starts_with(path, SLICE("/v1"));
    return slice_starts_with(path, SLICE("/health")) || slice_starts_with(path, SLICE("/metrics"));
}

static bool authorized(const struct sim_engine *e, const struct sim_conn *c)
{
    if (e->options.api_key == NULL || is_public(e, c->head.path))
        return true;
    struct slice key = slice_of_cstr(e->options.api_key);
    struct slice given = http_head_find(&c->head, SLICE("authorization"));
    if (slice_starts_with(given, SLICE("Bearer ")) && slice_equal(slice_skip(given, 7), key))
        return true;
    return e->options.sglang && slice_equal(http_head_find(&c->head, SLICE("x-api-key")), key);
}

static void detail(struct sim_conn *c, unsigned status, const char *extra)
{
    sim_http_answer(c, status, SIM_JSON,
                    status == 404 ? SLICE("{\"detail\":\"Not Found\"}")
                                  : SLICE("{\"detail\":\"Method Not Allowed\"}"),
                    extra);
}

/* /v1/responses/{id} and /v1/responses/{id}/cancel. */
static void stored_response(struct sim_engine *e, struct sim_conn *c, struct slice rest)
{
    struct slice id = slice_cut(&rest, '/');
    bool cancel = slice_equal(rest, SLICE("cancel"));
    enum http_method wanted = cancel ? HTTP_METHOD_POST : HTTP_METHOD_GET;
    if (rest.len > 0 && !cancel)
        detail(c, 404, NULL);
    else if (c->head.method != wanted)
        detail(c, 405, cancel ? "allow: POST\r\n" : "allow: GET\r\n");
    else if (cancel)
        sim_store_cancel(e, c, id);
    else
        sim_store_answer(e, c, id);
}

/* False if the options have a host name and the request has another: like an ingress. */
static bool is_for_host(const struct sim_engine *e, const struct sim_conn *c)
{
    if (e->options.host_name == NULL || slice_starts_with(c->head.path, SLICE("/sim/")))
        return true;
    struct slice host = http_head_find(&c->head, SLICE("host"));
    return slice_equal_nocase(slice_cut(&host, ':'), slice_of_cstr(e->options.host_name));
}

void sim_route(struct sim_engine *e, struct sim_conn *c, struct slice body)
{
    struct slice path = c->head.path;
    const struct route *other_method = NULL;
    if (!is_for_host(e, c)) {
        sim_http_answer(c, 404, SIM_TEXT, SLICE("default backend - 404"), NULL);
        return;
    }
    if (!authorized(e, c)) {
        sim_http_answer(c, 401, SIM_JSON, SLICE("{\"error\":\"Unauthorized\"}"), NULL);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
        const struct route *r = &routes[i];
        if (!slice_equal(path, slice_of_cstr(r->path)) || !route_is_open(e, r))
            continue;
        if (r->method == c->head.method) {
            r->handle(e, c, body);
            return;
        }
        other_method = r;
    }
    if (slice_starts_with(path, SLICE("/v1/responses/")) && path.len > 14)
        stored_response(e, c, slice_skip(path, 14));
    else if (other_method != NULL)
        detail(c, 405,
               other_method->method == HTTP_METHOD_POST ? "allow: POST\r\n" : "allow: GET\r\n");
    else
        detail(c, 404, NULL);
}
