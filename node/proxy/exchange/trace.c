/* The contents of a request's spans (node/trace/trace.h). Health checks and requests of the admin
 * port have none. */
#include "node/proxy/exchange/exchange_internal.h"

#include "node/trace/trace.h"

static struct slice operation_of(const struct exchange *x)
{
    switch (x->route.kind) {
    case HTTP_PATH_CHAT:
    case HTTP_PATH_RESPONSES:
    case HTTP_PATH_MESSAGES:
        return SLICE("chat");
    case HTTP_PATH_COMPLETIONS:
    case HTTP_PATH_GENERATE:
    case HTTP_PATH_TOKENS:
        return SLICE("text_completion");
    case HTTP_PATH_PROMPT:
        return slice_ends_with(slice_of_cstr(x->path), SLICE("/embeddings")) ? SLICE("embeddings")
                                                                             : slice_of("", 0);
    default:
        return slice_of("", 0);
    }
}

/* Returns one of few routes: known paths, without ids. */
static struct slice route_of(const struct exchange *x)
{
    switch (x->route.kind) {
    case HTTP_PATH_OTHER:
    case HTTP_PATH_CONTROL:
    case HTTP_PATH_STATUS:
        return slice_of("", 0);
    case HTTP_PATH_MODEL_ONE:
        return SLICE("/v1/models/{id}");
    case HTTP_PATH_RESPONSE_STORED:
        return SLICE("/v1/responses/{id}");
    case HTTP_PATH_MEDIA_STORED:
        return slice_of("", 0);
    default:
        return x->route.behind ? slice_of("", 0) : slice_of_cstr(x->path);
    }
}

static bool is_read(const struct exchange *x)
{
    return x->skimming && x->skim.understood;
}

static struct slice model_of(const struct exchange *x)
{
    return is_read(x) ? http_skim_field(&x->skim, HTTP_SKIM_MODEL) : slice_of("", 0);
}

static struct trace_usage told_of(const struct exchange *x)
{
    if (!x->now.scan)
        return (struct trace_usage){-1, -1, -1};
    struct trace_usage told = {.prompt_tokens = x->usage.prompt_tokens,
                               .cached_tokens = x->usage.cached_tokens,
                               .completion_tokens = x->usage.completion_tokens};
    if (told.completion_tokens < 0 && x->usage.token_events > 0) /* as the router counts for
                                                                  * itself */
        told.completion_tokens = x->usage.token_events;
    return told;
}

static uint64_t first_token_of(const struct exchange *x)
{
    return x->now.first_token ? x->now.first_byte_ms : 0;
}

/* --- the head ------------------------------------------------------------------------------- */

/* Sets the traceparent that engines get instead of the client's. */
static void replace(struct exchange *x, const struct http_traceparent *t)
{
    struct exchange_trace *out = &x->trace;
    http_traceparent_write(t, out->line);
    out->replaces = true;
}

void exchange_trace_begin(struct exchange *x, const struct http_head *head)
{
    const struct proxy *p = x->proxy;
    struct trace *t = p->config.trace;
    struct http_traceparent parent, own;
    if (x->client->port != PROXY_PORT_CLIENT || x->client->surplus)
        return;
    bool continues = http_traceparent_find(head, &parent);
    if (continues && !parent.sampled)
        return; /* the client's traceparent passes unchanged */
    x->trace.new_trace = !continues;
    if (continues || trace_sample(t, p->config.options->trace_sample))
        x->trace.request = trace_begin(t, continues ? &parent : NULL, p->now_ms);
    if (x->trace.request != NULL)
        trace_traceparent(x->trace.request, &own);
    else
        trace_unsampled(t, &own);
    if (x->trace.request != NULL || !continues)
        replace(x, &own);
}

size_t exchange_trace_line(struct exchange *x, struct http_forward_request *how,
                           struct http_line *line)
{
    if (!x->trace.replaces)
        return 0;
    *line = (struct http_line){SLICE("traceparent"), slice_of(x->trace.line, sizeof x->trace.line)};
    if (x->trace.new_trace) /* the field belonged to another trace */
        how->drop |= HTTP_FIELD_BIT(HTTP_TRACESTATE);
    return 1;
}

/* --- on the way ----------------------------------------------------------------------------- */

void exchange_trace_chosen(const struct exchange *x)
{
    if (x->trace.request != NULL)
        trace_event(x->trace.request, SLICE("chosen"), x->proxy->now_ms);
}

void exchange_trace_queued(const struct exchange *x)
{
    if (x->trace.request != NULL)
        trace_event(x->trace.request, SLICE("queued"), x->proxy->now_ms);
}

void exchange_trace_sent(const struct exchange *x)
{
    if (x->trace.request != NULL)
        trace_attempt_sent(x->trace.request, x->asking ? NULL : &x->request.head, x->proxy->now_ms);
}

void exchange_trace_attempt_ended(const struct exchange *x, enum node_outcome outcome)
{
    const struct proxy *p = x->proxy;
    if (x->trace.request == NULL)
        return;
    const struct node_decision *d = &x->now.decision;
    const char *authority = p->engines.pools[d->server].authority;
    unsigned status = x->now.status != 0 ? x->now.status : x->now.judged;
    bool good = outcome == NODE_OUTCOME_OK || (outcome == NODE_OUTCOME_REJECTED && status >= 400);
    bool by_status = status >= 400 && outcome != NODE_OUTCOME_CLIENT_GONE;
    const struct trace_attempt a = {
        .method = x->asking ? "GET" : http_method_name(x->method),
        .replica = node_router_replica_name(p->config.router, d->replica),
        .server = slice_of_cstr(authority != NULL ? authority : ""),
        .reason = node_reason_text(d->reason),
        .cached_predicted = d->cached_tokens,
        .cached_told = x->now.scan ? x->usage.cached_tokens : -1,
        .number = x->attempts,
        .status = status,
        .error = good || by_status ? NULL : node_outcome_text(outcome),
        .first_token_ms = first_token_of(x),
    };
    trace_attempt_ended(x->trace.request, &a, p->now_ms);
}

void exchange_trace_end(struct exchange *x, const char *how, const char *reason, bool failed)
{
    const struct proxy *p = x->proxy;
    struct trace_request *r = x->trace.request;
    if (r == NULL)
        return;
    x->trace.request = NULL;
    if (x->route.kind == HTTP_PATH_HEALTH) {
        trace_drop(r);
        return;
    }
    bool sent = x->attempts > 0;
    const struct trace_end e = {
        .method = http_method_name(x->method),
        .path = slice_of_cstr(x->path),
        .route = route_of(x),
        .operation = operation_of(x),
        .model = model_of(x),
        .client = slice_of_cstr(x->client->peer),
        .key = slice_of_cstr(x->key != NULL ? x->key->use->name : ""),
        .id = x->request_id,
        .replica = sent ? node_router_replica_name(p->config.router, x->now.decision.replica)
                        : slice_of("", 0),
        .told = told_of(x),
        .attempts = x->attempts,
        .stream = is_read(x) && x->skim.flags[HTTP_SKIM_STREAM],
        .status = x->now.status,
        .reason = reason,
        .how = how,
        .failed = failed,
        .first_token_ms = first_token_of(x),
    };
    trace_end(r, &e, p->now_ms);
}
