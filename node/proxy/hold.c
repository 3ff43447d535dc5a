/* Answers that tell whether a replica knows the model, where its own list is not to be had (its
 * engine wants an API key, or it was not asked yet). A success says that it does. A 404 is held
 * back until it is whole: if it says that the model is unknown there, another replica that may know
 * it is asked, and this one not again for a while. */
#include "node/proxy/exchange_internal.h"

#include "base/check.h"
#include "base/err.h"
#include "node/replica/engine_json.h"

enum { HELD_BODY_MAX = 8192 }; /* a longer 404 goes on as it is */

bool exchange_hold_begin(struct exchange *x, const struct http_head *head)
{
    struct node_router *router = x->proxy->config.router;
    unsigned replica = x->decision.replica;
    struct node_request request;
    exchange_describe(x, &request);
    if (request.model.len == 0)
        return false;
    if (head->status / 100 == 2)
        node_router_model_served(router, replica, request.model);
    if (head->status != 404 || x->asking_around || x->request.to_head)
        return false;
    buf_init(&x->held, 0);
    if (buf_append(&x->held, head->at, head->bytes) != 0)
        return false;
    x->held_head = head->bytes;
    return true;
}

bool exchange_hold_add(struct exchange *x, struct slice bytes)
{
    return x->held.len - x->held_head + bytes.len <= HELD_BODY_MAX &&
           buf_append_slice(&x->held, bytes) == 0;
}

/* Each replica may be asked once, if that is little effort: none of them computes anything. */
static bool may_ask_another(const struct exchange *x, bool known)
{
    return !x->dropped && (known || x->request.body->bytes <= EXCHANGE_ASK_BYTES ||
                           x->attempts <= x->proxy->config.options->retries_max);
}

bool exchange_hold_judge(struct exchange *x)
{
    struct node_router *router = x->proxy->config.router;
    struct node_request request;
    exchange_describe(x, &request);
    if (!node_error_model_unknown(slice_skip(buf_slice(&x->held), x->held_head)))
        return false;
    node_router_model_denied(router, x->decision.replica, request.model, x->proxy->now_ms);
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
    return false;
}
