/* Answers that tell whether a replica knows the model, where its own list is not to be had (its
 * engine wants an API key, or it was not asked yet). A success says that it does. A 404 is held
 * back until it is whole: if it says that the model is unknown there, another replica that may know
 * it is asked, and this one not again for a while. */
#include "node/io/exchange_parts.h"

#include "base/check.h"
#include "base/err.h"
#include "node/io/output.h"
#include "node/replica/engine_json.h"

enum { HELD_BODY_MAX = 8192 }; /* a longer 404 goes on as it is */

bool exchange_hold_begin(struct exchange *x, const struct http_head *head)
{
    struct node_router *router = x->shell->router;
    unsigned replica = x->decision.replica;
    if (node_router_models_told(router, replica))
        return false;
    struct node_request request;
    exchange_describe(x, &request);
    if (request.model.len == 0)
        return false;
    if (head->status / 100 == 2)
        node_router_model_served(router, replica, request.model);
    if (head->status != 404 || x->asking_around || x->head_request)
        return false;
    buf_init(&x->held, 0);
    if (buf_append(&x->held, head->at, head->bytes) != 0)
        return false;
    x->held_head = head->bytes;
    return true;
}

void exchange_hold_drop(struct exchange *x)
{
    buf_free(&x->held);
    x->held_head = 0;
}

/* To the output, which borrows the body. */
static void pass_held(struct exchange *x)
{
    struct http_head *head = &x->shell->head;
    int err = http_response_parse(head, x->held.at, x->held_head, false, &x->shell->engine_limits);
    CHECK(err == 0); /* it was parsed before */
    struct slice body = slice_skip(buf_slice(&x->held), x->held_head);
    x->held_head = 0;
    exchange_pass_head(x, head);
    if (body.len > 0)
        exchange_pass_data(x, body);
}

bool exchange_hold_data(struct exchange *x, struct slice bytes)
{
    if (x->held_head == 0)
        return false;
    if (x->held.len - x->held_head + bytes.len <= HELD_BODY_MAX &&
        buf_append_slice(&x->held, bytes) == 0)
        return true;
    pass_held(x);
    output_flush(x);
    exchange_hold_drop(x);
    return false;
}

/* Each replica may be asked once, if that is little effort: none of them computes anything. */
static bool may_ask_another(const struct exchange *x, bool known)
{
    return !x->dropped && (known || x->body->bytes <= EXCHANGE_ASK_BYTES ||
                           x->attempts <= x->shell->options->retries_max);
}

bool exchange_hold_end(struct exchange *x)
{
    if (x->held_head == 0)
        return false;
    struct node_router *router = x->shell->router;
    struct node_request request;
    exchange_describe(x, &request);
    if (!node_error_model_unknown(slice_skip(buf_slice(&x->held), x->held_head))) {
        pass_held(x);
        return false;
    }
    node_router_model_denied(router, x->decision.replica, request.model, shell_now_ms(x->shell));
    x->model_likely = true;
    int err = ERR_NOT_FOUND;
    if (may_ask_another(x, node_router_model_known(router, request.model)))
        err = exchange_choose_another(x, NODE_OUTCOME_OK);
    if (err == 0) {
        exchange_hold_drop(x);
        exchange_start(x);
        return true;
    }
    /* One that may serve it is down, or failed before: the model may well exist. */
    if (err == ERR_UNREACHABLE && request.replica_wanted < 0) {
        exchange_hold_drop(x);
        exchange_answer_error(x, 503, "ServiceUnavailableError", slice_of("", 0),
                              "No replica that may serve this model is up.");
        return true;
    }
    pass_held(x);
    return false;
}
