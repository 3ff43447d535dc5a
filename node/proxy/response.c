/* The answer of a replica on its way to the client. */
#include "node/proxy/exchange_internal.h"

#include "base/check.h"

static void choose_scan(struct exchange *x, const struct http_head *head)
{
    x->scan = EXCHANGE_SCAN_NONE;
    if (!exchange_answers_tokens(x->route.kind))
        return;
    struct slice type = http_head_get(head, HTTP_CONTENT_TYPE);
    if (type.len >= 17 && slice_equal_nocase(slice_of(type.at, 17), SLICE("text/event-stream")))
        http_usage_init(&x->usage, HTTP_USAGE_SSE);
    else if (type.len >= 16 && slice_equal_nocase(slice_of(type.at, 16), SLICE("application/json")))
        http_usage_init(&x->usage, HTTP_USAGE_JSON);
    else
        return;
    x->scan = EXCHANGE_SCAN_USAGE;
}

static void note_first_token(struct exchange *x)
{
    x->first_token = true;
    x->first_byte_ms = x->proxy->now_ms;
    if (x->booked && x->status / 100 == 2) /* an error came without the work */
        node_router_first_byte(x->proxy->config.router, x->decision.booking, x->first_byte_ms);
}

static void pass_head(struct exchange *x, const struct http_head *head)
{
    struct proxy *p = x->proxy;
    x->status = head->status;
    x->last_asked = x->client->last;
    if (x->asking_around && head->status / 100 == 2) /* found: not asked for again */
        node_affinity_put(p->config.affinity, exchange_stored_response(x), x->decision.replica);
    if (head->status >= 500)
        x->outcome = head->status == 503 ? NODE_OUTCOME_ENGINE_BUSY : NODE_OUTCOME_ENGINE_ERROR;
    x->first_byte_ms = p->now_ms;
    choose_scan(x, head);
    if (x->scan == EXCHANGE_SCAN_NONE || x->usage.form == HTTP_USAGE_JSON)
        note_first_token(x);
    x->out_framing = http_forward_response_framing(head, x->minor);
    if (x->out_framing == HTTP_BODY_UNTIL_CLOSE || p->draining ||
        x->client->state == CLIENT_BODY) /* answered early: the rest of the body is not wanted */
        x->client->last = true;
    struct http_line lines[2] = {{SLICE("x-request-id"), x->request_id}};
    size_t n = 1;
    if (p->config.options->replica_header)
        lines[n++] =
            (struct http_line){SLICE("x-grapevine-replica"),
                               node_router_replica_name(p->config.router, x->decision.replica)};
    struct http_forward_response how = {.client_minor = x->minor,
                                        .keep_alive = !x->client->last,
                                        .framing = x->out_framing,
                                        .content_length = head->content_length,
                                        .extra = lines,
                                        .extra_count = n};
    client_gather_head(x->client, head, &how);
}

/* What is gathered goes out, as one chunk where there are chunks. */
static void flush(struct exchange *x, bool last)
{
    bool chunked = x->out_framing == HTTP_BODY_CHUNKED && !x->request.to_head;
    if (!x->answering && (client_has_gathered(x->client) || last))
        exchange_answering(x);
    x->bytes_out += client_flush(x->client, chunked, last);
}

static void pass_body(struct exchange *x, struct slice bytes)
{
    if (x->scan == EXCHANGE_SCAN_USAGE) {
        http_usage_feed(&x->usage, bytes.at, bytes.len);
        if (!x->first_token && x->usage.first_token)
            note_first_token(x);
    }
    if (client_gather_full(x->client))
        flush(x, false);
    client_gather(x->client, bytes);
}

/* The 404 that was held goes on after all. Its body is borrowed until exchange_hold_drop(). */
static void pass_held(struct exchange *x)
{
    struct http_head *head = &x->proxy->head;
    int err = http_response_parse(head, x->held.at, x->held_head, false, &x->proxy->engine_limits);
    CHECK(err == 0); /* it was parsed before */
    struct slice body = slice_skip(buf_slice(&x->held), x->held_head);
    x->held_head = 0;
    pass_head(x, head);
    if (body.len > 0)
        pass_body(x, body);
}

/* False: it does not go on to the client. */
static bool begin(struct exchange *x, const struct http_head *head)
{
    if (exchange_moves_on(x, head->status))
        return false;
    bool lists_models = node_router_models_listed(x->proxy->config.router, x->decision.replica);
    if (lists_models || !exchange_hold_begin(x, head))
        pass_head(x, head);
    return true;
}

static void add(struct exchange *x, struct slice bytes)
{
    if (x->held_head > 0 && exchange_hold_add(x, bytes))
        return;
    if (x->held_head > 0) {
        pass_held(x);
        flush(x, false);
        exchange_hold_drop(x);
    }
    pass_body(x, bytes);
}

void exchange_response(struct exchange *x, const struct upstream_output *out)
{
    if (out->head != NULL && !begin(x, out->head))
        return;
    if (out->body.len > 0)
        add(x, out->body);
    if (out->end)
        exchange_ended(x);
}

void exchange_flush(struct exchange *x)
{
    if (client_has_gathered(x->client))
        flush(x, false);
    if (x->upstream != NULL && client_congested(x->client)) {
        x->proxy->stats.backpressure++;
        upstream_pause(x->upstream);
    }
}

void exchange_ended(struct exchange *x)
{
    x->upstream = NULL;
    if (x->held_head > 0) {
        if (exchange_hold_judge(x))
            return;
        pass_held(x);
    }
    if (x->scan == EXCHANGE_SCAN_USAGE) {
        http_usage_finish(&x->usage);
        if (x->route.kind == HTTP_PATH_RESPONSES && x->usage.response_id[0] != '\0')
            node_affinity_put(x->proxy->config.affinity, slice_of_cstr(x->usage.response_id),
                              x->decision.replica);
    }
    flush(x, true);
    exchange_finish(x);
}

void exchange_client_drained(struct exchange *x)
{
    if (x->upstream != NULL && !client_congested(x->client))
        upstream_resume(x->upstream);
}
