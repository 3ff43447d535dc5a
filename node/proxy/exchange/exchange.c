/* Creates, ends and logs exchanges. */
#include "node/proxy/exchange/exchange_internal.h"

#include <stdlib.h>

#include "base/bug.h"
#include "base/check.h"
#include "node/replica/usage.h"

enum { EXCHANGES_KEPT = 256 };

struct exchange *exchange_new(struct client *c)
{
    struct proxy *p = c->proxy;
    struct exchange *x = p->exchanges.free;
    if (x != NULL) {
        p->exchanges.free = x->next_free;
        p->exchanges.free_count--;
    } else {
        x = malloc(sizeof *x);
        if (x == NULL)
            return NULL;
        buf_init(&x->request.head, 0);
    }
    struct buf head = x->request.head;
    memset(x, 0, offsetof(struct exchange, usage));
    head.len = 0;
    x->request.head = head;
    x->request.body = body_new();
    if (x->request.body == NULL) {
        buf_free(&x->request.head);
        free(x);
        return NULL;
    }
    x->proxy = p;
    x->client = c;
    x->started_ms = x->admission.came_ms = p->now_ms;
    x->path[0] = '\0';
    x->request_deadline.expired = p->exchanges.expired;
    if (c->port == PROXY_PORT_CLIENT)
        proxy_arm(p, PROXY_REQUEST, &x->request_deadline);
    p->stats.requests += !c->surplus && c->port == PROXY_PORT_CLIENT;
    p->stats.requests_open++;
    return x;
}

void exchange_decode_drop(struct exchange *x)
{
    http_decoder_free(x->decoder);
    x->decoder = NULL;
    segment_pool_discharge(&x->proxy->segments, x->decoder_bytes);
    x->decoder_bytes = 0;
}

static void exchange_free(struct exchange *x)
{
    struct proxy *p = x->proxy;
    if (x->decoder != NULL)
        exchange_decode_drop(x);
    CHECK(!x->now.booked && x->now.upstream == NULL);
    body_unref(&p->segments, x->request.body);
    x->request.body = NULL;
    if (x->question.body != NULL)
        body_unref(&p->segments, x->question.body);
    x->question.body = NULL;
    buf_free(&x->question.head);
    p->stats.requests_open--;
    if (p->exchanges.free_count >= EXCHANGES_KEPT || x->request.head.cap > 64 * 1024) {
        buf_free(&x->request.head);
        free(x);
        return;
    }
    x->next_free = p->exchanges.free;
    p->exchanges.free = x;
    p->exchanges.free_count++;
}

void exchange_pool_free(struct proxy *p)
{
    while (p->exchanges.free != NULL) {
        struct exchange *x = p->exchanges.free;
        p->exchanges.free = x->next_free;
        buf_free(&x->request.head);
        free(x);
    }
    p->exchanges.free_count = 0;
}

/* Returns the result of the whole request, not of an attempt. */
static enum node_result result_of(const struct exchange *x, enum client_end why)
{
    static const enum node_answer_end ends[CLIENT_ENDS] = {
        [CLIENT_END_DONE] = NODE_ANSWER_WHOLE,     [CLIENT_END_GONE] = NODE_ANSWER_LEFT,
        [CLIENT_END_SLOW] = NODE_ANSWER_BY_CLIENT, [CLIENT_END_ENGINE] = NODE_ANSWER_CUT,
        [CLIENT_END_NO_MEMORY] = NODE_ANSWER_CUT,  [CLIENT_END_REFUSED] = NODE_ANSWER_BY_CLIENT,
        [CLIENT_END_STOPPED] = NODE_ANSWER_CUT,    [CLIENT_END_LATE] = NODE_ANSWER_CUT,
    };
    struct node_ending ending = {
        .answer = ends[why],
        .status = x->now.status,
        .event_status = x->event_status,
        .queue_full = x->refused && x->refusal == REFUSED_QUEUE_FULL,
        .invalid = x->refused && refusal_is_clients(x->refusal),
        .health = x->route.kind == HTTP_PATH_HEALTH && x->route.method_allowed,
    };
    bool by_engine = x->now.scan == EXCHANGE_SCAN_USAGE && x->usage.error;
    if (x->event_status != 0 && why == CLIENT_END_ENGINE) {
        ending.answer = NODE_ANSWER_ERROR_EVENT;
    } else if (by_engine && why == CLIENT_END_DONE) {
        ending.answer = NODE_ANSWER_ERROR_EVENT;
        ending.event_status = x->usage.error_status;
    } else if (why == CLIENT_END_REFUSED && x->refusal == REFUSED_MEMORY) {
        ending.answer = NODE_ANSWER_CUT;
    }
    return node_result_of(&ending);
}

/* Completes the decision's record, for later questions about the choice. */
static void tell_end(const struct exchange *x, enum node_outcome outcome,
                     const struct node_usage *told)
{
    struct proxy *p = x->proxy;
    struct node_usage usage = *told;
    (void)node_usage_clean(&usage); /* counted by node_router_finish() */
    const struct node_decision_end end = {
        .outcome = outcome,
        .status = x->now.status != 0 ? x->now.status : x->now.judged,
        .first_token_ms = x->now.first_token ? x->now.first_byte_ms : 0,
        .prompt_tokens = usage.prompt_tokens,
        .cached_tokens = usage.cached_tokens,
        .completion_tokens = usage.completion_tokens,
    };
    node_decisions_end(p->config.decisions, x->now.decision.number, &end, p->now_ms);
}

/* The permitted steps between phases: [from][to]. A stored rejection may become the held answer
 * again from any phase of a later attempt (exchange_answer_kept()). */
static const bool phase_follows[ATTEMPT_PHASES][ATTEMPT_PHASES] = {
    [ATTEMPT_NONE] = {[ATTEMPT_CHOSEN] = true, [ATTEMPT_HELD] = true},
    [ATTEMPT_CHOSEN] = {[ATTEMPT_NONE] = true, [ATTEMPT_SENT] = true, [ATTEMPT_HELD] = true},
    [ATTEMPT_SENT] = {[ATTEMPT_NONE] = true, [ATTEMPT_CHOSEN] = true, [ATTEMPT_HELD] = true},
    [ATTEMPT_HELD] = {[ATTEMPT_NONE] = true, [ATTEMPT_CHOSEN] = true, [ATTEMPT_ANSWERING] = true},
};

void exchange_goes(struct exchange *x, enum attempt_phase to)
{
    CHECK_SLOW(phase_follows[x->now.phase][to] || BUG(RETRY_ANSWERED));
    x->now.phase = to;
}

void exchange_release_booking(struct exchange *x, enum node_outcome outcome)
{
    if (!x->now.booked)
        return;
    x->now.booked = false;
    if (x->now.phase == ATTEMPT_CHOSEN)
        exchange_goes(x, ATTEMPT_NONE);
    if (BUG(BOOKING_KEPT) && outcome == NODE_OUTCOME_CLIENT_GONE)
        return;
    if (BUG(BOOKING_RESET) && outcome == NODE_OUTCOME_BROKEN)
        return;
    x->proxy->admission.due = true;
    admission_alone(&x->proxy->admission, &x->admission, x->now.decision.server);
    struct node_usage usage = {-1, -1, -1, {0}};
    bool failed = x->now.scan == EXCHANGE_SCAN_USAGE && x->usage.error;
    bool computed = x->now.status / 100 == 2 && !failed;
    if (x->now.scan == EXCHANGE_SCAN_USAGE) {
        usage.prompt_tokens = x->usage.prompt_tokens;
        usage.cached_tokens = x->usage.cached_tokens;
        usage.completion_tokens = x->usage.completion_tokens;
        memcpy(usage.media_tokens, x->usage.media_tokens, sizeof usage.media_tokens);
        if (usage.completion_tokens < 0 && x->usage.token_events > 0)
            usage.completion_tokens = x->usage.token_events;
    }
    exchange_ids_told(x);
    tell_end(x, outcome, &usage);
    exchange_trace_attempt_ended(x, outcome);
    bool lives = outcome == NODE_OUTCOME_OK || outcome == NODE_OUTCOME_CLIENT_GONE;
    if (computed && lives && x->skimming && x->skim.understood)
        node_router_used(x->proxy->config.router, x->now.decision.booking,
                         http_skim_chain(&x->skim), x->proxy->now_ms);
    node_router_finish(x->proxy->config.router, x->now.decision.booking, outcome,
                       computed ? &usage : NULL, x->proxy->now_ms);
}

void exchange_blame(struct exchange *x)
{
    const struct exchange_doubt *d = &x->doubt;
    if (d->open)
        node_router_blame(x->proxy->config.router, d->replica, d->life, NODE_OUTCOME_ENGINE_ERROR,
                          x->proxy->now_ms);
    x->doubt.open = false;
}

/* Returns true if the request gets an access line. Health probes get none: 503s while an engine
 * loads would make too many lines. Nor do clients' mistakes: a starting program may make seven. */
static bool has_access_line(const struct exchange *x, enum client_end why)
{
    bool invalid = x->refused && refusal_is_clients(x->refusal);
    bool bad = why != CLIENT_END_DONE || (x->now.status >= 400 && !invalid) ||
               x->now.outcome != NODE_OUTCOME_OK;
    bool health = x->route.kind == HTTP_PATH_HEALTH && x->route.method_allowed;
    unsigned wanted = x->proxy->config.options->access_log;
    return x->client->port == PROXY_PORT_CLIENT &&
           (wanted == NODE_ACCESS_LOG_ALL || (wanted == NODE_ACCESS_LOG_ERRORS && bad && !health));
}

/* Returns the reason for a refusal or a bad end, in a word. Empty: there was neither, or the client
 * disconnected. */
static const char *reason_of(const struct exchange *x, enum client_end why)
{
    enum refusal refusal = x->refused ? x->refusal : REFUSED_NONE;
    if (why == CLIENT_END_NO_MEMORY)
        refusal = REFUSED_MEMORY;
    else if (why == CLIENT_END_STOPPED)
        refusal = REFUSED_STOPPING;
    else if (why != CLIENT_END_DONE && why != CLIENT_END_GONE)
        refusal = x->refusal;
    if (refusal != REFUSED_NONE)
        return refusal_rows[refusal].word;
    bool by_engine = why == CLIENT_END_DONE || why == CLIENT_END_ENGINE;
    return by_engine && x->cause != NULL ? x->cause : "";
}

bool exchange_passes_for_lack(const struct exchange *x)
{
    return x->refusal == REFUSED_RETRY_BUDGET && x->limit != NULL && !x->refused &&
           x->now.status >= 400;
}

static void log_access(const struct exchange *x, enum client_end why)
{
    struct proxy *p = x->proxy;
    struct log *log = p->config.log;
    if (!log_enabled(log, LOG_INFO) || !has_access_line(x, why))
        return;
    struct slice none = slice_of("", 0);
    bool read = x->skimming && x->skim.understood;
    const char *reason = reason_of(x, why);
    bool invalid = x->refused && refusal_is_clients(x->refusal);
    bool limited = x->limit != NULL && (reason[0] != '\0' || exchange_passes_for_lack(x));
    uint64_t now = p->now_ms;
    const struct log_field fields[] = {
        LOG_STR("id", x->request_id),
        LOG_CSTR("client", x->client->peer),
        LOG_CSTR("key", x->key != NULL ? x->key->use->name : ""),
        LOG_CSTR("method", http_method_name(x->method)),
        LOG_CSTR("path", x->path),
        LOG_STR("model", read ? http_skim_field(&x->skim, HTTP_SKIM_MODEL) : none),
        LOG_STR("alias", slice_of(x->alias, x->alias_len)),
        LOG_BOOL("stream", read && x->skim.flags[HTTP_SKIM_STREAM]),
        LOG_UINT("status", x->now.status),
        LOG_CSTR(invalid ? "invalid" : "reason", reason),
        LOG_CSTR("limit", limited ? x->limit : ""),
        LOG_STR("replica", x->attempts > 0
                               ? node_router_replica_name(p->config.router, x->now.decision.replica)
                               : none),
        LOG_CSTR("why", x->attempts > 0 ? node_reason_text(x->now.decision.reason) : ""),
        LOG_UINT("attempts", x->attempts),
        LOG_UINT("ms", now - x->started_ms),
        LOG_UINT("first_byte_ms",
                 x->now.first_byte_ms != 0 ? x->now.first_byte_ms - x->started_ms : 0),
        LOG_UINT("bytes_in", x->request.body->bytes),
        LOG_UINT("bytes_out", x->bytes_out),
        LOG_INT("prompt_tokens", x->now.scan ? x->usage.prompt_tokens : -1),
        LOG_INT("cached_tokens", x->now.scan ? x->usage.cached_tokens : -1),
        LOG_INT("completion_tokens", x->now.scan ? x->usage.completion_tokens : -1),
        LOG_UINT("cached_predicted", x->now.decision.cached_tokens),
        LOG_CSTR("end", client_end_name(why)),
    };
    bool every = p->config.options->access_log == NODE_ACCESS_LOG_ALL;
    (every ? log_record_write : log_event_write)(log, LOG_INFO, "request", fields,
                                                 ARRAY_LEN(fields));
}

/* Adds the times of a complete answer to the histograms. */
static void note_timing(const struct exchange *x)
{
    if (x->now.scan != EXCHANGE_SCAN_USAGE || x->now.status / 100 != 2)
        return;
    const struct proxy_timed answer = {
        .stream = x->usage.form == HTTP_USAGE_SSE,
        .begun_ms = x->started_ms,
        .first_token_ms = x->now.first_token ? x->now.first_byte_ms : 0,
        .ended_ms = x->proxy->now_ms,
        .tokens = x->usage.completion_tokens > 0 ? x->usage.completion_tokens
                                                 : (int64_t)x->usage.token_events,
    };
    proxy_timing_add(&x->proxy->timing, &answer);
}

bool exchange_is_whole(const struct exchange *x)
{
    bool open = x->out_framing == HTTP_BODY_CHUNKED || x->out_framing == HTTP_BODY_UNTIL_CLOSE;
    return open && x->now.scan == EXCHANGE_SCAN_USAGE && x->usage.form == HTTP_USAGE_SSE &&
           x->usage.done && http_usage_place(&x->usage) == HTTP_USAGE_BETWEEN;
}

void exchange_note_told(struct exchange *x)
{
    x->told |=
        exchange_is_whole(x) && x->client->broken == CLIENT_END_DONE && x->client->out_bytes == 0;
}

void exchange_hold_drop(struct exchange *x)
{
    buf_free(&x->now.held);
    x->now.held_head = 0;
    x->now.hold = EXCHANGE_HOLD_NONE;
    deadline_clear(&x->deadline);
}

/* Drops the answer's state, which is not read again. */
static void drop_answer(struct exchange *x)
{
    exchange_hold_drop(x);
    exchange_ids_forget(x);
    http_usage_cut_free(&x->now.cut);
    http_decoder_free(x->now.unpack);
    free(x->now.unpacked);
    segment_pool_discharge(&x->proxy->segments, x->now.unpack_bytes);
}

/* Ends the exchange. All ends lead here. */
static void end(struct exchange *x, enum client_end why, enum node_outcome outcome)
{
    struct proxy_stats *stats = &x->proxy->stats;
    enum node_result result = result_of(x, why);
    if (!x->client->surplus && x->client->port == PROXY_PORT_CLIENT) {
        if (x->now.status >= 100 && x->now.status < 600)
            stats->responses[x->now.status / 100]++;
        stats->results[result]++;
        stats->unauthorized += result == NODE_RESULT_CLIENT_ERROR && x->now.status == 401;
        stats->hidden += result == NODE_RESULT_OK && x->failed_before;
    }
    if (why == CLIENT_END_GONE && !x->endless)
        stats->client_gone++;
    if ((exchange_is_committed(x) || x->alive) && why != CLIENT_END_DONE)
        stats->answers_cut[why]++;
    if (why == CLIENT_END_DONE)
        note_timing(x);
    x->reached |= !x->asking && x->now.upstream != NULL && x->now.upstream->head_sent > 0;
    exchange_hang_up(x);
    deadline_clear(&x->request_deadline);
    admission_leave(&x->proxy->admission, &x->admission, x->proxy->now_ms);
    if (x->forget != NULL)
        x->forget(x->forget_context);
    exchange_release_booking(x, outcome);
    drop_answer(x);
    exchange_ids_free(x);
    node_decisions_result(x->proxy->config.decisions, x->now.decision.number, result);
    exchange_kept_drop(x);
    if (why != CLIENT_END_GONE) /* no other answer has shown that the request is at fault */
        exchange_blame(x);
    log_access(x, why);
    exchange_trace_end(x, client_end_name(why), reason_of(x, why), node_result_failed(result));
    exchange_spent(x);
    exchange_alias_count(x);
    exchange_free(x);
}

void exchange_finish(struct exchange *x)
{
    struct client *c = x->client;
    /* If the client disconnected after the terminal event was sent, nothing was cut. */
    end(x, x->told && c->broken == CLIENT_END_GONE ? CLIENT_END_DONE : c->broken, x->now.outcome);
    client_answered(c);
}

void exchange_finish_cut(struct exchange *x)
{
    struct client *c = x->client;
    bool by_reset = x->out_framing == HTTP_BODY_UNTIL_CLOSE;
    bool late = x->refusal == REFUSED_REQUEST_TIMEOUT;
    end(x, late ? CLIENT_END_LATE : CLIENT_END_ENGINE, x->now.outcome);
    client_answer_cut(c, by_reset);
}

void exchange_cut(struct exchange *x, enum client_end why, bool reset)
{
    struct client *c = x->client;
    /* OpenAI's clients disconnect at [DONE], without waiting for the end of the HTTP body. */
    exchange_note_told(x);
    bool whole = why == CLIENT_END_GONE && x->told;
    bool begun = exchange_is_committed(x) || x->alive;
    c->exchange = NULL;
    client_discard(c);
    /* By reset, because the client would take a plain end for the end of the answer. */
    client_close(c, reset || (begun && x->out_framing == HTTP_BODY_UNTIL_CLOSE));
    end(x, whole ? CLIENT_END_DONE : why, whole ? x->now.outcome : NODE_OUTCOME_CLIENT_GONE);
}

void exchange_forget_answer(struct exchange *x)
{
    client_discard(x->client);
    drop_answer(x);
    struct attempt *a = &x->now;
    if (a->status != 0 && !x->alive) /* after `alive` the sent head says if the connection stays */
        x->client->last = a->last_asked;
    const size_t answer = offsetof(struct attempt, status);
    memset((char *)a + answer, 0, sizeof *a - answer);
    a->follows = x->alive;
    if (a->phase >= ATTEMPT_HELD)
        exchange_goes(x, a->booked ? ATTEMPT_CHOSEN : ATTEMPT_NONE);
}

struct upstream *exchange_disconnected(struct exchange *x)
{
    struct upstream *u = x->now.upstream;
    x->now.upstream = NULL;
    if (x->now.phase == ATTEMPT_SENT)
        exchange_goes(x, x->now.booked ? ATTEMPT_CHOSEN : ATTEMPT_NONE);
    return u;
}

void exchange_hang_up(struct exchange *x)
{
    struct upstream *u = exchange_disconnected(x);
    if (u != NULL)
        upstream_abort(u);
}
