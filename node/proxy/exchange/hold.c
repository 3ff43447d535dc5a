/* Holds a part of an answer in the router. As long as the client has nothing of the answer, another
 * replica may answer instead:
 *
 *   STREAM   the head of a stream, and its events before the first token. After stream-hold the
 *            client gets a sign of life. If the API has a sign that permits another attempt, only a
 *            token, an error or the end commits the answer.
 *   BODY     an answer without a stream, until complete.
 *   ERROR    an error which only its body explains: a 404 that may mean an unknown model, a 500.
 *            A long error is judged by its beginning, as soon as that has come.
 *
 * Bytes are not copied if written to the client in the event in which they came. */
#include "node/proxy/exchange/exchange_internal.h"

#include "base/check.h"
#include "base/err.h"
#include "http/events.h"
#include "node/proxy/engine/prober.h"
#include "node/proxy/exchange/suspect.h"
#include "node/replica/engine_json.h"
#include "node/replica/model.h"

/* Bytes read at both ends of an error. If an engine repeats the prompt in the error, the mistake is
 * named before or after the prompt, in fewer bytes. Similar words within the prompt do not
 * count. */
enum { ENDS_BYTES = 1024 };

/* --- holding -------------------------------------------------------------------------------- */

static void note_model_served(struct exchange *x)
{
    struct node_router *router = x->proxy->config.router;
    if (node_models_listed(node_router_model_table(router), x->now.decision.server))
        return;
    struct node_request request;
    exchange_describe(x, &request);
    if (request.model.len > 0)
        node_router_model_served(router, x->now.decision.replica, request.model);
}

static enum exchange_hold what_to_hold(const struct exchange *x, const struct http_head *head)
{
    bool good = head->status / 100 == 2;
    if (!good)
        return exchange_body_decides(x, head->status) ? EXCHANGE_HOLD_ERROR : EXCHANGE_HOLD_NONE;
    if (x->proxy->config.options->stream_hold_ms == 0 || x->request.to_head)
        return EXCHANGE_HOLD_NONE;
    if (x->now.scan == EXCHANGE_SCAN_USAGE && x->usage.form == HTTP_USAGE_SSE)
        return EXCHANGE_HOLD_STREAM;
    bool fits = head->framing != HTTP_BODY_LENGTH || head->content_length <= EXCHANGE_HELD_MAX;
    bool json = x->now.scan == EXCHANGE_SCAN_USAGE || /* a completion as JSON */
                (exchange_computes(x->route.kind) && exchange_is_json(head));
    return json && fits ? EXCHANGE_HOLD_BODY : EXCHANGE_HOLD_NONE;
}

void exchange_hold_begin(struct exchange *x, const struct http_head *head)
{
    if (head->status / 100 == 2)
        note_model_served(x);
    x->now.hold = what_to_hold(x, head);
    bool may_fit = head->status == 400 && exchange_may_fit_elsewhere(x);
    x->now.held_max = x->now.hold == EXCHANGE_HOLD_ERROR && !may_fit ? EXCHANGE_HELD_ERROR_MAX
                                                                     : EXCHANGE_HELD_MAX;
}

static struct slice held_body(const struct exchange *x)
{
    return slice_skip(buf_slice(&x->now.held), x->now.held_head);
}

/* Moves the gathered bytes to the held ones. Returns false if more than `max` bytes of the body
 * would be held, or if there is no memory. */
static bool keep(struct exchange *x, size_t max)
{
    size_t bytes = x->now.held.len - x->now.held_head + client_gathered_bytes(x->client);
    return bytes <= max && client_gather_keep(x->client, &x->now.held, &x->now.held_head) == 0;
}

bool exchange_hold_waits(struct exchange *x)
{
    bool over =
        x->now.hold == EXCHANGE_HOLD_STREAM &&
        (x->usage.first_token || x->usage.done || (x->usage.error_whole && !BUG(ERROR_EVENT_ENDS)));
    return !over && keep(x, x->now.held_max);
}

/* --- passing on ----------------------------------------------------------------------------- */

void exchange_hold_pass(struct exchange *x)
{
    struct slice none = slice_of(NULL, 0);
    x->now.hold = EXCHANGE_HOLD_NONE;
    deadline_clear(&x->deadline);
    /* The client has an earlier attempt's preamble, so this attempt's preamble is left out. */
    if (x->now.follows && x->preamble_out && keep(x, SIZE_MAX)) {
        struct slice body = held_body(x);
        client_gather_front(x->client, none, slice_skip(body, http_events_preamble(body)));
    } else if (x->now.held.len > 0) {
        client_gather_front(x->client, slice_of(x->now.held.at, x->now.held_head), held_body(x));
    }
}

/* The start event of a message (Anthropic's API) cannot be repeated, so the sign is a ping. */
bool exchange_hold_sign(struct exchange *x)
{
    static const struct slice ping = SLICE("event: ping\ndata: {\"type\": \"ping\"}\n\n");
    if (x->now.hold != EXCHANGE_HOLD_STREAM || x->route.kind == HTTP_PATH_RESPONSES ||
        x->out_framing == HTTP_BODY_LENGTH)
        return false;
    bool pings = x->route.kind == HTTP_PATH_MESSAGES;
    size_t whole = pings ? 0 : http_events_whole(held_body(x));
    struct slice head = slice_of(x->now.held.at, x->now.held_head);
    client_gather_front(x->client, head, pings ? ping : slice_of(held_body(x).at, whole));
    x->bytes_out += client_flush(x->client, x->out_framing == HTTP_BODY_CHUNKED, false);
    buf_consume(&x->now.held, x->now.held_head + whole);
    x->now.held_head = 0;
    x->preamble_out = whole > 0;
    x->alive = true;
    return true;
}

/* --- judging -------------------------------------------------------------------------------- */

/* Returns true if the next replica may be asked. `known`: some replica is known to serve the model.
 * Each replica is asked at most once, and computes nothing, so only the sending of a large body is
 * a cost. */
static bool may_ask_another(const struct exchange *x, bool known)
{
    return !x->dropped && (known || x->request.body->bytes <= EXCHANGE_ASK_BYTES ||
                           x->attempts <= x->proxy->config.options->retries_max);
}

/* Asks another replica after this replica denied the model. Returns true if the answer is
 * replaced. */
static bool is_denied(struct exchange *x, const struct node_request *request)
{
    struct node_router *router = x->proxy->config.router;
    exchange_note_denied(x, request->model);
    prober_ask_models(x->proxy, x->now.decision.server);
    x->model_likely = true;
    int err = ERR_NOT_FOUND;
    if (may_ask_another(x, node_router_model_known(router, request->model)))
        err = exchange_move(x, NODE_OUTCOME_REJECTED, RETRY_MODEL);
    if (err == 0 || (err == ERR_NOT_FOUND && exchange_look_after(x)))
        return true;
    /* A replica that is down, or has failed before, may serve the model. */
    if (err == ERR_UNREACHABLE && request->replica_wanted < 0) {
        exchange_forget_answer(x);
        exchange_answer_error(x, 503, slice_of("", 0),
                              "No replica that may serve this model is up.");
        return true;
    }
    return false;
}

/* Judges a 404 that may mean an unknown model. Returns true if another answer replaces the 404. */
static bool judge_unknown(struct exchange *x)
{
    struct node_request request;
    exchange_describe(x, &request);
    return is_denied(x, &request);
}

/* Judges SGLang's 400 about an adapter. If a separate field names the adapter, the model itself is
 * not denied. */
static bool judge_adapter(struct exchange *x)
{
    struct node_request request;
    if (exchange_is_committed(x) || x->alive || x->dropped)
        return false;
    exchange_describe(x, &request);
    if (request.lora.len == 0)
        return is_denied(x, &request);
    prober_ask_models(x->proxy, x->now.decision.server);
    return exchange_move(x, NODE_OUTCOME_REJECTED, RETRY_MODEL) == 0;
}

/* Tries a replica with a longer context, once, and again if a model list has shown a longer context
 * since. Returns true if another answer replaces the rejection. */
static bool judge_context(struct exchange *x, const struct node_engine_error *said)
{
    struct node_router *router = x->proxy->config.router;
    struct node_request request;
    if (exchange_is_committed(x) || x->alive || x->dropped)
        return false;
    exchange_describe(x, &request);
    enum node_longer longer = exchange_longer(x, &request);
    if (longer == NODE_LONGER_NONE)
        return false;
    uint32_t here = node_router_context(router, x->now.decision.replica);
    x->too_long = true;
    x->context_over = here > x->context_over ? here : x->context_over;
    if (longer == NODE_LONGER_IF_ANEW)
        return exchange_too_long(x, said);
    int err = exchange_move(x, NODE_OUTCOME_REJECTED, RETRY_CONTEXT);
    if (err == 0)
        return true;
    if (err != ERR_UNREACHABLE || longer != NODE_LONGER_SURELY)
        return false;
    exchange_forget_answer(x);
    exchange_answer_error(x, 503, slice_of("", 0),
                          "No replica whose context is long enough for this request is up.");
    return true;
}

static bool is_no_rank(const struct exchange *x, unsigned status, struct slice message)
{
    return status == 400 && x->now.decision.rank >= 0 && verdict_rank_is_unknown(message);
}

/* Repeats the request without a rank, because the restarted engine has fewer ranks than in the last
 * metrics. Returns true if another answer replaces the error. */
static bool judge_rank(struct exchange *x)
{
    if (exchange_is_committed(x) || x->dropped)
        return false;
    prober_ask_ranks(x->proxy, x->now.decision.server);
    x->unpinned = true;
    if (exchange_choose_again(x, NODE_OUTCOME_OK) != ERR_OK)
        return false;
    exchange_begin_anew(x, RETRY_RANK);
    return true;
}

/* Returns true if the error says that the request is too long. `message`: the error's message, or
 * the whole held answer. */
static bool says_too_long(const struct exchange *x, unsigned status,
                          const struct node_engine_error *error, struct slice message)
{
    struct slice end = held_body(x);
    if (status != 400)
        return false;
    end = slice_skip(end, end.len > ENDS_BYTES ? end.len - ENDS_BYTES : 0);
    message.len = message.len < ENDS_BYTES ? message.len : ENDS_BYTES;
    return error->too_long || verdict_context_is_short(message) || verdict_context_is_short(end);
}

/* Returns true if only a longer context can help. If the request should fit, the error is an
 * ordinary rejection. */
static bool is_too_long(const struct exchange *x, unsigned status,
                        const struct node_engine_error *error, struct slice message)
{
    if (!says_too_long(x, status, error, message))
        return false;
    struct node_request request;
    exchange_describe(x, &request);
    if (!node_router_context_doubted(x->proxy->config.router, &request, x->now.decision.replica))
        return true;
    prober_ask_context(x->proxy, x->now.decision.server);
    return false;
}

/* Judges a 400. Returns true if another answer replaces the 400. `said`: as in
 * exchange_rejected(). */
static bool is_judged_400(struct exchange *x, const struct node_engine_error *error,
                          const struct node_engine_error *said, struct slice message)
{
    if (says_too_long(x, 400, error, message))
        return judge_context(x, said);
    return verdict_adapter_is_unknown(message) && judge_adapter(x);
}

bool exchange_hold_is_long(const struct exchange *x)
{
    return x->now.hold == EXCHANGE_HOLD_ERROR &&
           held_body(x).len + client_gathered_bytes(x->client) > x->now.held_max;
}

bool exchange_hold_judge(struct exchange *x)
{
    bool whole = !exchange_hold_is_long(x);
    if (x->now.hold != EXCHANGE_HOLD_ERROR || !keep(x, SIZE_MAX))
        return false;
    struct node_engine_error error;
    node_error_read(held_body(x), &error);
    if (x->now.status == 404 && whole && error.model_unknown && judge_unknown(x))
        return true;
    struct slice message = slice_of_cstr(error.message);
    if (message.len == 0)
        message = held_body(x);
    if (is_no_rank(x, x->now.status, message))
        return judge_rank(x);
    if (x->now.status == 400 && is_judged_400(x, &error, NULL, message))
        return true;
    struct verdict_judgement j = verdict_of_answer(x->now.status, message);
    if (j.verdict == VERDICT_CLIENT && !is_too_long(x, x->now.status, &error, message) &&
        exchange_rejected(x, x->now.status, NULL))
        return true;
    if (x->now.status == 404 && whole && exchange_doubted(x))
        return true;
    return exchange_judge_answer(x, &j, x->now.status);
}

/* Finds the error among the held events. */
static void read_event(const struct exchange *x, struct node_engine_error *out)
{
    struct slice rest = held_body(x), data;
    *out = (struct node_engine_error){0};
    while ((data = http_events_data(&rest)).len > 0) {
        struct node_engine_error error;
        node_error_read(data, &error);
        if (error.message[0] != '\0' || error.status != 0)
            *out = error;
    }
    if (out->status == 0)
        out->status = x->usage.error_status;
}

/* Replaces an aborted answer if possible. Otherwise the answer goes on unchanged and unread. */
static bool judge_abort(struct exchange *x)
{
    struct verdict_judgement j = verdict_of_abort();
    suspect_of_nothing(x);
    if (exchange_judge_answer(x, &j, 0))
        return true;
    exchange_hold_pass(x);
    return false;
}

static bool holds_an_error(const struct exchange *x)
{
    return x->now.hold == EXCHANGE_HOLD_STREAM
               ? x->usage.error_whole && !x->usage.first_token
               : x->now.hold == EXCHANGE_HOLD_BODY && x->usage.aborted;
}

bool exchange_hold_judge_event(struct exchange *x)
{
    struct node_engine_error error;
    if (!holds_an_error(x) || BUG(ERROR_EVENT_ENDS) || !keep(x, EXCHANGE_HELD_MAX))
        return false;
    exchange_count_event(x);
    if (exchange_was_aborted(x))
        return judge_abort(x);
    read_event(x, &error);
    if (!x->alive && is_no_rank(x, error.status, slice_of_cstr(error.message)))
        return judge_rank(x);
    if (error.status == 400 && is_judged_400(x, &error, &error, slice_of_cstr(error.message)))
        return true;
    struct verdict_judgement j = verdict_of_answer(error.status, slice_of_cstr(error.message));
    unsigned status = error.status != 0 ? error.status : 500;
    bool rejected = j.verdict == VERDICT_CLIENT &&
                    !is_too_long(x, error.status, &error, slice_of_cstr(error.message));
    if ((rejected && exchange_rejected(x, status, &error)) || exchange_judge_answer(x, &j, status))
        return true;
    if (x->alive) /* the client has a 200, and gets the event */
        return false;
    enum node_outcome outcome = x->now.outcome;
    exchange_release_booking(x, outcome);
    exchange_forget_answer(x);
    x->now.outcome = outcome;
    exchange_answer_engine_error(x, x->now.decision.replica, status, error.type,
                                 error.message[0] != '\0' ? error.message : "The engine failed.");
    return true;
}
