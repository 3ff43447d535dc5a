/* The answer of a replica on its way to the client. */
#include "node/io/exchange_parts.h"

#include "http/forward.h"
#include "node/io/output.h"

static void choose_scan(struct exchange *x, const struct http_head *head)
{
    x->scan = EXCHANGE_SCAN_NONE;
    if (!exchange_generates(x->route.kind))
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
    x->first_byte_ms = shell_now_ms(x->shell);
    if (x->booked && x->status / 100 == 2) /* an error came without the work */
        node_router_first_byte(x->shell->router, x->decision.booking, x->first_byte_ms);
}

void exchange_pass_head(struct exchange *x, const struct http_head *head)
{
    struct shell *shell = x->shell;
    x->status = head->status;
    if (x->asking_around && head->status / 100 == 2) /* found: not asked for again */
        node_affinity_put(shell->affinity, exchange_stored_response(x), x->decision.replica);
    if (head->status >= 500)
        x->outcome = head->status == 503 ? NODE_OUTCOME_ENGINE_BUSY : NODE_OUTCOME_ENGINE_ERROR;
    x->first_byte_ms = shell_now_ms(shell);
    choose_scan(x, head);
    if (x->scan == EXCHANGE_SCAN_NONE || x->usage.form == HTTP_USAGE_JSON)
        note_first_token(x);
    x->out_framing = http_forward_response_framing(head, x->minor);
    if (x->out_framing == HTTP_BODY_UNTIL_CLOSE || shell->draining ||
        x->client->state == CLIENT_BODY) /* answered early: the rest of the body is not wanted */
        x->client->last = true;
    struct http_line lines[2] = {{SLICE("x-request-id"), x->request_id}};
    size_t n = 1;
    if (shell->options->replica_header)
        lines[n++] =
            (struct http_line){SLICE("x-grapevine-replica"),
                               node_router_replica_name(shell->router, x->decision.replica)};
    struct http_forward_response how = {.client_minor = x->minor,
                                        .keep_alive = !x->client->last,
                                        .framing = x->out_framing,
                                        .content_length = head->content_length,
                                        .extra = lines,
                                        .extra_count = n};
    output_head(x, head, &how);
}

void exchange_on_head(struct exchange *x, const struct http_head *head)
{
    if (!exchange_moves_on(x, head->status) && !exchange_hold_begin(x, head))
        exchange_pass_head(x, head);
}

void exchange_pass_data(struct exchange *x, struct slice bytes)
{
    if (x->scan == EXCHANGE_SCAN_USAGE) {
        http_usage_feed(&x->usage, bytes.at, bytes.len);
        if (!x->first_token && x->usage.first_token)
            note_first_token(x);
    }
    output_data(x, bytes);
}

void exchange_on_data(struct exchange *x, struct slice bytes)
{
    if (!exchange_hold_data(x, bytes))
        exchange_pass_data(x, bytes);
}

void exchange_flush(struct exchange *x)
{
    output_flush(x);
    if (x->upstream != NULL && client_congested(x->client)) {
        x->shell->stats.backpressure++;
        upstream_pause(x->upstream);
    }
}

void exchange_on_end(struct exchange *x)
{
    x->upstream = NULL;
    if (exchange_hold_end(x))
        return;
    if (x->scan == EXCHANGE_SCAN_USAGE) {
        http_usage_finish(&x->usage);
        if (x->route.kind == HTTP_PATH_RESPONSES && x->usage.response_id[0] != '\0')
            node_affinity_put(x->shell->affinity, slice_of_cstr(x->usage.response_id),
                              x->decision.replica);
    }
    output_end(x);
    exchange_finish(x);
}

void exchange_on_client_drained(struct exchange *x)
{
    if (x->upstream != NULL)
        upstream_resume(x->upstream);
}

void exchange_on_request_drained(struct exchange *x)
{
    const struct upstream *u = x->upstream;
    if (u != NULL && x->body->bytes - u->body_sent < EXCHANGE_SEND_BYTES_HIGH / 2)
        client_resume_body(x->client);
}
