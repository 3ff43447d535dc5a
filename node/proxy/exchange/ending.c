/* Handles answers that end badly: cut, without the API's terminal event, or with an error event of
 * the engine. Each is counted, and reported to the circuit breaker. A stream's client gets an error
 * event in the API's form, and then a body without a proper end. */
#include "node/proxy/exchange/exchange_internal.h"

#include <stdio.h>

#include "base/check.h"
#include "http/error.h"

/* --- counters ------------------------------------------------------------------------------- */

const struct exchange_failure exchange_failures[UPSTREAM_NO_PLACE] = {
    [UPSTREAM_CONNECT_FAILED] = {"connect", "broken", NODE_ERROR_CONNECT, RETRY_CONNECT},
    [UPSTREAM_STALE] = {"connection broke", "broken", NODE_ERROR_BROKEN, RETRY_BROKEN},
    [UPSTREAM_BROKEN] = {"connection broke", "broken", NODE_ERROR_BROKEN, RETRY_BROKEN},
    [UPSTREAM_TIMEOUT] = {"timeout", "timeout", NODE_ERROR_TIMEOUT, RETRY_TIMEOUT},
    [UPSTREAM_MALFORMED] = {"malformed answer", "malformed", NODE_ERROR_MALFORMED, RETRY_MALFORMED},
    [UPSTREAM_UNFINISHED] = {"answer ended without its terminal event", "no_terminal",
                             NODE_ERROR_NO_TERMINAL, RETRY_BROKEN},
    [UPSTREAM_STALLED] = {"stalled", "stalled", NODE_ERROR_TIMEOUT, RETRY_TIMEOUT},
};

static void count(const struct exchange *x, enum node_error error)
{
    node_router_error(x->proxy->config.router, x->now.decision.replica, error);
}

void exchange_count_failure(const struct exchange *x, enum upstream_failure failure)
{
    if (failure != UPSTREAM_STALE)
        count(x, exchange_failures[failure].error);
}

void exchange_count_status(const struct exchange *x, unsigned status)
{
    if (status >= 500)
        count(x, NODE_ERROR_STATUS);
}

bool exchange_was_aborted(const struct exchange *x)
{
    return x->usage.aborted && x->usage.error_status == 0;
}

void exchange_count_event(struct exchange *x)
{
    if (!x->now.error_counted)
        count(x, exchange_was_aborted(x) ? NODE_ERROR_ABORTED : NODE_ERROR_EVENT);
    x->now.error_counted = true;
}

/* --- ends by the engine --------------------------------------------------------------------- */

/* Returns the replica's outcome by the status of its error event. A full queue or a refused request
 * does not count as an engine's failure. */
static enum node_outcome outcome_of(unsigned error_status)
{
    if (error_status == 429 || error_status == 503)
        return NODE_OUTCOME_ENGINE_BUSY;
    return error_status >= 400 && error_status < 500 ? NODE_OUTCOME_REJECTED
                                                     : NODE_OUTCOME_ENGINE_ERROR;
}

bool exchange_unfinished(const struct exchange *x)
{
    return x->now.scan == EXCHANGE_SCAN_USAGE && x->now.status / 100 == 2 && !x->request.to_head &&
           http_usage_unfinished(&x->usage);
}

void exchange_judge_error(struct exchange *x)
{
    if (x->now.scan != EXCHANGE_SCAN_USAGE || x->now.status / 100 != 2 || !x->usage.error)
        return;
    exchange_count_event(x);
    x->cause = exchange_was_aborted(x) ? "aborted" : "error_event";
    if (x->now.outcome == NODE_OUTCOME_OK) /* otherwise judged when the event came */
        x->now.outcome = outcome_of(x->usage.error_status);
}

/* --- the client's view ---------------------------------------------------------------------- */

/* Returns true if the client would read an error event added by the router. */
static bool takes_event(const struct exchange *x)
{
    bool open = x->out_framing == HTTP_BODY_CHUNKED || x->out_framing == HTTP_BODY_UNTIL_CLOSE;
    return open && exchange_unfinished(x) && x->usage.form == HTTP_USAGE_SSE &&
           x->client->broken == CLIENT_END_DONE;
}

/* Returns the bytes by which to end a cut event. Half an object is no JSON, so no client takes the
 * event for complete. If the cut is in a field's name, the bytes make the name unknown. */
static struct slice event_end(const struct exchange *x)
{
    if ((x->now.cuts_usage && http_usage_cut_rest(&x->now.cut).len > 0) ||
        (x->ids != NULL && x->ids->cuts && x->ids->cut.part.len > 0))
        return SLICE(""); /* the client has no part of the cut event */
    switch (http_usage_place(&x->usage)) {
    case HTTP_USAGE_IN_NAME:
        return SLICE("-\n\n");
    case HTTP_USAGE_IN_LINE:
        return SLICE("\n\n");
    default:
        return SLICE("");
    }
}

static void flush(struct exchange *x, bool last)
{
    if (client_has_gathered(x->client) || last)
        x->bytes_out += client_flush(x->client, x->out_framing == HTTP_BODY_CHUNKED, last);
}

/* Gathers the last whole event, which was waiting for the next event. */
static void gather_finish(struct exchange *x)
{
    struct slice finish = http_usage_cut_finish(&x->now.cut);
    if (!x->now.cuts_usage || finish.len == 0 || !exchange_is_committed(x))
        return;
    if (client_gather_full(x->client))
        flush(x, false);
    client_gather(x->client, finish);
}

void exchange_say_cut(struct exchange *x, unsigned status, const char *text)
{
    struct http_error error = {.form = exchange_error_form(x),
                               .message = slice_of_cstr(text),
                               .request_id = x->request_id,
                               .status = status,
                               .sequence_number = (uint64_t)(x->usage.sequence_number + 1)};
    char words[EXCHANGE_WORDS];
    exchange_event_say(x, &error, words);
    struct buf event;
    buf_init(&event, 0);
    gather_finish(x);
    if (client_gather_full(x->client))
        flush(x, false);
    /* After a sign of life, the client has only whole events of the answer. */
    bool sign = x->alive && !exchange_is_committed(x) && x->client->broken == CLIENT_END_DONE;
    if ((sign || (takes_event(x) && buf_append_slice(&event, event_end(x)) == 0)) &&
        http_error_event_write(&event, &error) == 0)
        client_gather(x->client, buf_slice(&event));
    flush(x, false);
    buf_free(&event);
}

const char *exchange_error_word(const struct exchange *x)
{
    if (!exchange_is_committed(x))
        return x->alive ? "error_event" : "error";
    return exchange_is_whole(x) ? "whole" : takes_event(x) ? "error_event" : "cut";
}

void exchange_late_text(const struct exchange *x, char out[EXCHANGE_LATE_TEXT])
{
    const char *own = refusal_rows[x->refusal].text;
    const char *text = own != NULL                ? own
                       : exchange_is_committed(x) ? "The replica was silent for too long"
                                                  : "The replica did not answer in time";
    const char *limit = x->limit != NULL ? x->limit : "";
    int n = snprintf(out, EXCHANGE_LATE_TEXT, "%s%s%s%s%s.", text, limit[0] != '\0' ? " (" : "",
                     limit, limit[0] != '\0' ? ")" : "",
                     exchange_is_committed(x) ? ": its answer is cut" : "");
    CHECK(n > 0 && n < EXCHANGE_LATE_TEXT);
}

void exchange_end_cut(struct exchange *x, enum upstream_failure failure)
{
    if (exchange_is_whole(x)) {
        flush(x, true);
        exchange_finish(x);
        return;
    }
    x->cause = exchange_failures[failure].cause;
    bool late = failure == UPSTREAM_TIMEOUT || failure == UPSTREAM_STALLED;
    char text[EXCHANGE_LATE_TEXT] = "The replica failed: its answer is cut.";
    if (late)
        exchange_late_text(x, text);
    exchange_say_cut(x, late ? 504 : 502, text);
    exchange_finish_cut(x);
}
