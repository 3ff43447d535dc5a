/* Reacts to a replica's failure: decides if the request or the replica is at fault (verdict.c),
 * tries another replica, or answers the client. */
#include "node/proxy/exchange/exchange_internal.h"

#include <stdio.h>

#include "base/check.h"
#include "base/err.h"
#include "node/proxy/engine/prober.h"
#include "node/proxy/exchange/suspect.h"

/* --- the search for a stored response ------------------------------------------------------- */

/* Asks the next replica, because this replica does not have the stored response, or did not
 * answer. */
static void ask_next(struct exchange *x, enum node_outcome outcome)
{
    if (exchange_move(x, outcome, RETRY_STORED) != 0)
        exchange_asked(x);
}

void exchange_answered(struct exchange *x, unsigned status)
{
    struct proxy *p = x->proxy;
    if (status / 100 != 2) {
        ask_next(x, status >= 500 ? NODE_OUTCOME_IN_DOUBT : NODE_OUTCOME_OK);
        return;
    }
    node_affinity_put(p->config.affinity, exchange_stored_response(x), x->now.decision.replica);
    exchange_hang_up(x);
    exchange_release_booking(x, NODE_OUTCOME_OK);
    exchange_asked(x);
}

/* --- failures with an answer ---------------------------------------------------------------- */

/* Returns true if a 404 may mean an unknown model. */
static bool may_deny_the_model(const struct exchange *x)
{
    struct node_request request;
    if (x->asking_around)
        return false;
    exchange_describe(x, &request);
    return request.model.len > 0;
}

/* Returns true if the request names an adapter of SGLang, in a field or as "base:adapter". */
static bool names_adapter(const struct node_request *request)
{
    return request->lora.len > 0 || slice_find(request->model, ':') < request->model.len;
}

bool exchange_may_fit_elsewhere(const struct exchange *x)
{
    struct node_router *router = x->proxy->config.router;
    struct node_request request;
    if (x->asking_around || exchange_is_committed(x) || x->alive || x->dropped)
        return false;
    exchange_describe(x, &request);
    bool adapter =
        node_router_replica_engine(router, x->now.decision.replica) == NODE_ENGINE_SGLANG &&
        names_adapter(&request);
    return adapter || exchange_longer(x, &request) != NODE_LONGER_NONE;
}

bool exchange_body_decides(const struct exchange *x, unsigned status)
{
    if (x->request.to_head)
        return false;
    if (exchange_reject_waits(x, status) ||
        (status == 400 && (x->now.decision.rank >= 0 || exchange_may_fit_elsewhere(x))))
        return true;
    return status == 404 ? may_deny_the_model(x)
                         : verdict_needs_body(status, x->route.kind == HTTP_PATH_RESPONSES);
}

/* Logs a failure. `then`: the router's reaction. `to`: the next replica; -1: none. */
static void log_failure(const struct exchange *x, unsigned replica, const char *what,
                        const char *then, int to)
{
    const struct proxy *p = x->proxy;
    const struct node_router *router = p->config.router;
    struct log_field fields[] = {
        LOG_STR("id", x->request_id), LOG_STR("replica", node_router_replica_name(router, replica)),
        LOG_CSTR("what", what),       LOG_BOOL("answering", exchange_is_committed(x)),
        LOG_CSTR("then", then),       LOG_STR("to", slice_of("", 0)),
    };
    size_t count = ARRAY_LEN(fields) - (to < 0);
    if (to >= 0)
        fields[count - 1].value.str = node_router_replica_name(router, (unsigned)to);
    if (log_heard(p->config.log, LOG_WARN))
        log_event_write(p->config.log, LOG_WARN, "upstream_failed", fields, count);
}

/* Logs the reaction after a search for another replica. */
static void log_moved(const struct exchange *x, unsigned from, const char *what)
{
    static const char *const then[] = {
        [ADMISSION_GO] = "moved", [ADMISSION_WAIT] = "waits", [ADMISSION_REFUSE] = "refused"};
    bool goes = x->plan.verdict == ADMISSION_GO;
    log_failure(x, from, what, then[x->plan.verdict], goes ? (int)x->plan.decision.replica : -1);
}

/* Drops an error that may be the replica's fault or the request's, and tries another replica. The
 * next answer decides. */
static bool let_go_in_doubt(struct exchange *x)
{
    unsigned first = x->now.decision.server;
    x->doubt =
        (struct exchange_doubt){.open = true,
                                .replica = first,
                                .life = node_router_replica(x->proxy->config.router, first)->life};
    if (exchange_rebook(x, NODE_OUTCOME_IN_DOUBT) == 0)
        return true;
    exchange_blame(x); /* no other replica can be tried */
    return false;
}

/* Ends the doubt in favour of the first replica: the request is at fault, because another replica
 * fails in the same way or names the mistake. */
static void acquit(struct exchange *x)
{
    x->doubt.open = false;
}

/* Returns true if the replica's last answers were errors too: then this error says nothing about
 * the request. */
static bool errs_anyway(const struct exchange *x)
{
    return node_router_process(x->proxy->config.router, x->now.decision.replica)
               ->trouble.error_answers > 0;
}

/* Lets the client get the engine's error, without another attempt. Returns true if the client gets
 * another replica's earlier rejection instead. */
static bool let_pass(struct exchange *x, unsigned replica, const char *what)
{
    log_failure(x, replica, what, "answer", -1);
    if (!exchange_kept_stands(x))
        return false;
    enum node_outcome outcome = x->now.outcome;
    exchange_hang_up(x);
    exchange_release_booking(x, outcome);
    return exchange_answer_kept(x);
}

bool exchange_judge_answer(struct exchange *x, const struct verdict_judgement *j, unsigned status)
{
    unsigned from = x->now.decision.replica;
    bool event = x->now.status / 100 == 2;
    char what[32];
    if (status == 0)
        (void)snprintf(what, sizeof what, "aborted");
    else
        (void)snprintf(what, sizeof what, "%s %u", event ? "error event" : "status", status);
    x->reached = true;
    x->timed_out = false;
    x->now.outcome = j->outcome;
    if (j->core_dead) {
        x->now.first_token = false; /* the error's head had counted as a first token */
        suspect_ended(x, SUSPECT_END_CORE_DEAD);
        node_router_core_dead(x->proxy->config.router, from, x->proxy->now_ms);
        prober_ask_health(x->proxy, x->now.decision.server);
    }
    bool doubt = j->verdict == VERDICT_IN_DOUBT && !errs_anyway(x);
    x->now.judged = status;
    if (j->verdict == VERDICT_CLIENT) {
        acquit(x);
        return status >= 500 && let_pass(x, from, what);
    }
    if (!exchange_is_committed(x) && suspect_refused(x)) {
        log_failure(x, from, what, "refused", -1);
        exchange_hang_up(x);
        exchange_release_booking(x, j->outcome);
        exchange_refuse_suspect(x);
        return true;
    }
    if (doubt && x->doubt.open) {
        x->now.outcome = NODE_OUTCOME_IN_DOUBT;
        acquit(x);
        return let_pass(x, from, what);
    }
    enum verdict_reason why = exchange_retry_reason(x, j->reason);
    if (exchange_only_there(x) || !exchange_may_retry(x, why))
        return let_pass(x, from, what);
    if (doubt ? !let_go_in_doubt(x) : exchange_rebook(x, j->outcome) != 0)
        return let_pass(x, from, what); /* no other replica */
    log_moved(x, from, what);
    x->said = status;
    exchange_begin_anew(x, why);
    return true;
}

/* Tries the next replica after a 404 in the search for a stored response. Returns false if there is
 * none. No limit on retries applies: the request has no body, and each replica is asked at most
 * once. */
static bool is_asked_around(struct exchange *x, unsigned status)
{
    return x->asking_around && status == 404 && !exchange_is_committed(x) &&
           exchange_move(x, NODE_OUTCOME_OK, RETRY_STORED) == 0;
}

bool exchange_judge_status(struct exchange *x, unsigned status)
{
    if (is_asked_around(x, status))
        return true;
    if (status < 400 || exchange_body_decides(x, status))
        return false;
    struct verdict_judgement j = verdict_of_answer(status, slice_of("", 0));
    if (j.verdict == VERDICT_CLIENT && exchange_rejected(x, status, NULL))
        return true;
    return exchange_judge_answer(x, &j, status);
}

/* --- failures without an answer, or during it ----------------------------------------------- */

/* Tries the same replica again with the same booking, because the replica may not have failed.
 * Returns ERR_AGAIN if impossible, otherwise as upstream_start(). */
static int again(struct exchange *x, struct pool *pool, enum upstream_failure failure)
{
    bool stale = failure == UPSTREAM_STALE && !x->dropped;
    x->proxy->stats.upstream_stale += stale;
    bool other_address =
        failure == UPSTREAM_CONNECT_FAILED && ++x->now.addresses < pool->address_count;
    return stale || other_address ? exchange_same_again(x) : ERR_AGAIN;
}

/* Counts and logs the failure. Returns the outcome for the replica. */
static enum node_outcome note_failure(struct exchange *x, enum upstream_failure failure)
{
    struct proxy *p = x->proxy;
    enum node_outcome outcome = NODE_OUTCOME_BROKEN;
    if (failure == UPSTREAM_STALLED) {
        outcome = NODE_OUTCOME_STALLED;
    } else if (failure == UPSTREAM_CONNECT_FAILED) {
        p->stats.upstream_connect_failures++;
        outcome = NODE_OUTCOME_CONNECT_FAILED;
        pool_resolve(&p->engines.pools[x->now.decision.server], 5000);
        if (p->engines.pools[x->now.decision.server].refused_ms == p->now_ms)
            prober_process_gone(p, x->now.decision.server);
    } else if (failure != UPSTREAM_TIMEOUT) {
        p->stats.upstream_broken++;
        prober_hung_up(p, x->now.decision.server);
    } else if (exchange_replica_moves(x)) {
        outcome = NODE_OUTCOME_SLOW;
    }
    exchange_count_failure(x, failure);
    return outcome;
}

static void answer_failure(struct exchange *x, enum upstream_failure failure,
                           enum node_outcome outcome)
{
    char text[EXCHANGE_LATE_TEXT] = "The replica failed before it answered.";
    exchange_release_booking(x, outcome);
    exchange_forget_answer(x);
    x->now.outcome = outcome;
    x->timed_out |= failure == UPSTREAM_STALLED && x->limit != NULL; /* stall-cut */
    if (x->timed_out || x->refusal == REFUSED_CONNECT)
        exchange_late_text(x, text);
    exchange_no_answer(x, text);
}

/* Reports the failure to the client: cuts a begun answer, or answers with an error. */
static void give_up(struct exchange *x, enum upstream_failure failure, enum node_outcome outcome)
{
    x->now.outcome = outcome;
    if (exchange_is_committed(x))
        exchange_end_cut(x, failure);
    else
        answer_failure(x, failure, outcome);
}

/* Moves the request to another replica. If none can be chosen, answers with the reason. */
static void ask_another(struct exchange *x, enum upstream_failure failure,
                        enum node_outcome outcome)
{
    unsigned from = x->now.decision.replica;
    x->silent_left |= x->timed_out;
    int err = exchange_rebook(x, outcome);
    if (err == 0) {
        log_moved(x, from, exchange_failures[failure].what);
        exchange_begin_anew(x, exchange_failures[failure].why);
        return;
    }
    log_failure(x, from, exchange_failures[failure].what, exchange_error_word(x), -1);
    exchange_forget_answer(x);
    x->now.outcome = outcome;
    exchange_no_replica(x, err);
}

/* Judges after a connection's end if the request may have killed the engine. A request is innocent
 * if the engine sleeps, or if only a stored response was asked for. */
static void note_death(struct exchange *x, enum upstream_failure failure)
{
    if (x->asking)
        return;
    const struct node_router *router = x->proxy->config.router;
    const struct pool *pool = &x->proxy->engines.pools[x->now.decision.server];
    bool refused = failure == UPSTREAM_CONNECT_FAILED && pool->refused_ms == x->proxy->now_ms;
    x->now.stale = x->now.stale || failure == UPSTREAM_STALE;
    if (failure == UPSTREAM_BROKEN)
        suspect_ended(x, SUSPECT_END_BROKEN);
    else if (failure == UPSTREAM_STALLED &&
             node_router_rank_stalled(router, x->now.decision.replica))
        suspect_of_nothing(x);
    else if (refused && x->now.stale)
        suspect_ended(x, SUSPECT_END_GONE);
    else if (failure == UPSTREAM_STALLED &&
             !node_router_process(router, x->now.decision.replica)->asleep)
        suspect_ended(x, SUSPECT_END_SILENT);
}

void exchange_failed(struct exchange *x, enum upstream_failure failure)
{
    struct pool *pool = &x->proxy->engines.pools[x->now.decision.server];
    if (failure == UPSTREAM_NO_PLACE) {
        (void)exchange_disconnected(x);
        exchange_place_anew(x);
        return;
    }
    note_death(x, failure);
    /* A stale connection was closed before the engine got the request. */
    bool sent = x->now.upstream != NULL && x->now.upstream->head_sent > 0;
    x->reached = failure != UPSTREAM_STALE && (sent || failure == UPSTREAM_UNFINISHED);
    (void)exchange_disconnected(x);
    x->timed_out = failure == UPSTREAM_TIMEOUT;
    int err = again(x, pool, failure);
    if (err == ERR_FULL)
        exchange_place_anew(x);
    if (err == 0 || err == ERR_FULL)
        return;
    enum node_outcome outcome = note_failure(x, failure);
    unsigned replica = x->now.decision.replica;
    if (failure == UPSTREAM_STALE && exchange_is_ours(err))
        outcome = NODE_OUTCOME_NOT_SENT;
    if (x->asking) {
        log_failure(x, replica, exchange_failures[failure].what, "asks_next", -1);
        ask_next(x, outcome);
    } else if (!exchange_is_committed(x) && suspect_refused(x)) {
        log_failure(x, replica, exchange_failures[failure].what, "refused", -1);
        exchange_release_booking(x, outcome);
        exchange_refuse_suspect(x);
    } else if (exchange_may_retry(x, exchange_failures[failure].why)) {
        ask_another(x, failure, outcome);
    } else {
        log_failure(x, replica, exchange_failures[failure].what, exchange_error_word(x), -1);
        give_up(x, failure, outcome);
    }
}

void exchange_stall_cut(struct exchange *x)
{
    x->limit = "stall-cut";
    exchange_failed(x, upstream_fail(x->now.upstream, UPSTREAM_STALLED));
}
