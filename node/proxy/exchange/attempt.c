/* Attempts: sends a request to the chosen replica. After a failure sends it to another, as long as
 * the client has no part of an answer. */
#include "node/proxy/exchange/exchange_internal.h"

#include "base/bug.h"
#include "base/check.h"
#include "base/err.h"
#include "base/hash.h"
#include "node/proxy/exchange/suspect.h"
#include "node/replica/model.h"
#include "node/route/poison.h"

/* --- sending -------------------------------------------------------------------------------- */

/* Returns true if a retry may need the sent bytes. */
static bool body_is_kept(const struct exchange *x)
{
    return x->asking || ((!exchange_is_committed(x) || BUG(RETRY_ANSWERED)) &&
                         (x->whole || x->request.body->bytes <= EXCHANGE_RETRY_BYTES));
}

static void release_sent(struct exchange *x)
{
    if (x->now.upstream != NULL && (!body_is_kept(x) || BUG(BODY_LET_GO)) &&
        upstream_release_sent(x->now.upstream, x->request.body))
        x->dropped = !BUG(BODY_LET_GO);
}

void exchange_answering(struct exchange *x)
{
    exchange_goes(x, ATTEMPT_ANSWERING);
    release_sent(x);
}

void exchange_push(struct exchange *x)
{
    struct upstream *u = x->now.upstream;
    if (u == NULL)
        return;
    upstream_push(u);
    release_sent(x);
    if (x->asking)
        return;
    uint64_t unsent = x->request.body->bytes - u->body_sent;
    if (unsent > EXCHANGE_SEND_BYTES_HIGH && !x->whole)
        client_hold_body(x->client);
    else if (unsent < EXCHANGE_SEND_BYTES_HIGH / 2)
        client_resume_body(x->client);
}

/* Returns true for a limit or shortage of the router, which is no failure of the replica. */
bool exchange_is_ours(int err)
{
    return err == ERR_FULL || err == ERR_NOMEM;
}

/* --- permission for another attempt --------------------------------------------------------- */

/* Returns true if a repetition is harmless. Computing a prompt twice changes nothing but the
 * load. */
static bool may_be_done_twice(const struct exchange *x)
{
    return x->asking || exchange_is_idempotent(x->method) || exchange_computes(x->route.kind);
}

/* Returns true if the request may be sent again. After silence until the timeout, the engine has
 * most likely queued the prompt, and another engine would queue the prompt again. */
static bool is_safe(const struct exchange *x)
{
    return !x->reached || exchange_begins_nothing(x->method, x->now.judged) || BUG(DEED_TWICE) ||
           (exchange_computes(x->route.kind) && (!x->timed_out || exchange_may_leave_silent(x)));
}

/* Returns true if the retry counts against retries-max and the budget. Some failures cost the
 * engines nothing, and do not count: a refused connection, an engine during a shutdown, and a
 * question about the model or the stored response. */
static bool is_charged(const struct exchange *x, enum verdict_reason why)
{
    return !(why == RETRY_REJECTED && x->free_retry) && why != RETRY_CONNECT &&
           why != RETRY_DRAINS && why != RETRY_MODEL && why != RETRY_STORED && why != RETRY_RANK &&
           why != RETRY_CONTEXT;
}

static bool is_left(const struct exchange *x, enum verdict_reason why)
{
    uint64_t max = x->proxy->config.options->retries_max;
    bool left =
        is_charged(x, why) ? x->retries < max : x->attempts <= max + EXCHANGE_FREE_RETRIES_MAX;
    bool committed = exchange_is_committed(x) && !BUG(RETRY_ANSWERED);
    return !committed && !x->dropped && max > 0 && left && is_safe(x);
}

/* Returns true if the request was under way when the replica died or was found to hang. All such
 * requests need a retry at once, so they may exceed the budget. Each replica gets this exception
 * rarely, so if a replica breaks on every request, the budget decides. */
static bool was_lost(const struct exchange *x)
{
    const struct proxy *p = x->proxy;
    struct pool *pool = &x->proxy->engines.pools[x->now.decision.server];
    uint64_t died_ms = pool->death.at_ms;
    if (died_ms == 0 || x->began_ms > died_ms || p->now_ms - died_ms >= SUSPECT_DEATH_MS)
        return false;
    if (pool->spared_ms == 0 || died_ms >= pool->spared_ms + BUDGET_SPARED_MS)
        pool->spared_ms = died_ms;
    return died_ms < pool->spared_ms + SUSPECT_DEATH_MS; /* the same death may be judged again */
}

/* Returns true if another replica may be tried. `failing`: a replica in a back-off counts too. */
static bool has_other(struct exchange *x, bool failing)
{
    struct node_request request;
    exchange_describe(x, &request);
    return node_router_has_other(x->proxy->config.router, &request, &x->excluded,
                                 x->now.decision.replica, failing, x->proxy->now_ms);
}

/* Returns true if a request refused by a full replica can go to a replica with room. Such a retry
 * costs little, because the full replica has computed nothing and is avoided from now on. */
static bool has_room_elsewhere(struct exchange *x, enum verdict_reason why)
{
    return why == RETRY_BUSY && has_other(x, false);
}

static bool is_in_budget(struct exchange *x, enum verdict_reason why)
{
    const struct budget *b = &x->proxy->admission.budget;
    return b->share > 0 &&
           (!is_charged(x, why) || budget_has(b) || was_lost(x) || has_room_elsewhere(x, why));
}

enum verdict_reason exchange_retry_reason(struct exchange *x, enum verdict_reason why)
{
    return why == RETRY_DRAINS && !has_other(x, false) ? RETRY_ERROR : why;
}

bool exchange_may_retry(struct exchange *x, enum verdict_reason why)
{
    if (!is_left(x, why))
        return false;
    if (is_in_budget(x, why))
        return true;
    x->proxy->stats.retry_budget_exhausted++;
    (void)exchange_because(x, REFUSED_RETRY_BUDGET);
    return false;
}

bool exchange_may_try(struct exchange *x, bool likely)
{
    const struct budget *b = &x->proxy->admission.budget;
    if (!is_left(x, RETRY_REJECTED) || b->share == 0)
        return false;
    return x->free_retry || (budget_has_half(b) && has_other(x, likely));
}

bool exchange_may_move(struct exchange *x)
{
    x->reached = true;
    x->timed_out = false;
    return x->now.booked && !x->now.first_token && is_left(x, RETRY_TIMEOUT) &&
           is_in_budget(x, RETRY_TIMEOUT) && has_other(x, false);
}

/* --- attempts ------------------------------------------------------------------------------- */

int exchange_choose_again(struct exchange *x, enum node_outcome outcome)
{
    exchange_release_booking(x, outcome);
    return exchange_choose(x);
}

int exchange_rebook(struct exchange *x, enum node_outcome outcome)
{
    exchange_exclude(x, outcome);
    return exchange_choose_again(x, outcome);
}

/* Called when the wait of QUEUE_ALONE or QUEUE_APART is over. An ordinary request may now share a
 * suspect's replica. A suspect is refused, unless a replica without other requests is free now. */
static void company_late(struct deadline *d)
{
    struct exchange *x = CONTAINER_OF(d, struct exchange, admission.deadline);
    admission_leave(&x->proxy->admission, &x->admission, x->proxy->now_ms);
    exchange_route(x);
}

/* Refuses the request with the reason given by admission. */
static void refuse(struct exchange *x)
{
    if (x->plan.why == REFUSED_KEY_LIMIT) {
        exchange_key_limited(x);
    } else if (x->plan.why == REFUSED_QUEUE_FULL) {
        exchange_queue_full(x);
    } else {
        if (x->plan.text != NULL)
            suspect_refuse(x, x->plan.text);
        exchange_refuse_suspect(x);
    }
}

/* Begins the planned attempt and ends the previous attempt. Returns false if the request waits for
 * a replica, or was refused. */
static bool begin(struct exchange *x)
{
    enum admission_verdict verdict = x->plan.verdict;
    if (verdict == ADMISSION_WAIT)
        exchange_queue(x, company_late);
    else if (verdict == ADMISSION_REFUSE)
        refuse(x);
    if (verdict != ADMISSION_GO)
        return false;
    CHECK(x->now.phase == ATTEMPT_NONE);
    x->now = (struct attempt){.decision = x->plan.decision, .booked = true, .follows = x->alive};
    exchange_goes(x, ATTEMPT_CHOSEN);
    exchange_trace_chosen(x);
    return true;
}

/* Called when the search for the stored response is over. Sends the request to the replica with the
 * response; if there is none, to any replica. */
void exchange_asked(struct exchange *x)
{
    exchange_hang_up(x);
    x->asking = false;
    x->asked = true;
    x->attempts = 0;
    x->excluded = (struct node_replica_set){0};
    exchange_route(x);
}

static void count_retry(struct exchange *x, enum verdict_reason why)
{
    struct proxy *p = x->proxy;
    p->stats.retries[why]++;
    x->failed_before |= why != RETRY_STORED; /* RETRY_STORED is part of the search */
    if (is_charged(x, why)) {
        x->retries++;
        budget_take(&p->admission.budget); /* even if empty, after was_lost() */
    }
}

/* Sends the request, or x->question, to the booked replica. Returns ERR_* as upstream_start(). */
static int start_upstream(struct exchange *x, bool fresh)
{
    const struct upstream_request *request = x->asking ? &x->question : &x->request;
    if (exchange_host_name(x) != 0)
        return ERR_NOMEM;
    if (x->usage_field != NULL)
        exchange_usage_aim(x);
    if (x->ids_field != NULL)
        exchange_ids_aim(x);
    exchange_trace_sent(x);
    int err = upstream_start(&x->proxy->engines.pools[x->now.decision.server], x, request, fresh,
                             &x->now.upstream);
    if (err == 0)
        exchange_goes(x, ATTEMPT_SENT);
    return err;
}

/* Called if nothing could be sent to the booked replica, which does not count as an attempt. Books
 * the best replica at this time, or queues the request. Returns false if it was queued or
 * answered. */
static bool place_anew(struct exchange *x)
{
    x->attempts--;
    int err = exchange_choose_again(x, NODE_OUTCOME_NOT_SENT);
    if (err == 0 && begin(x)) {
        exchange_pin(x);
        return true;
    }
    if (err != 0 && x->asking)
        exchange_asked(x);
    else if (err != 0)
        exchange_no_replica(x, err);
    return false;
}

/* Sends to the booked replica, or to another if sending fails at once. */
static void send_now(struct exchange *x)
{
    struct proxy *p = x->proxy;
    /* A request that must not run twice never uses a reused connection, which may already be
     * closed. Nor does a request after an engine's death: a stale connection would look like a
     * second death, though the engine never got the request. */
    bool fresh = !may_be_done_twice(x) || x->suspect.deaths > 0;
    int err;
    exchange_pin(x);
    while ((err = start_upstream(x, fresh)) != 0) {
        if (err == ERR_FULL) {
            if (!place_anew(x))
                return;
            continue;
        }
        bool full = exchange_is_ours(err);
        enum node_outcome outcome = full ? NODE_OUTCOME_NOT_SENT : NODE_OUTCOME_CONNECT_FAILED;
        if (!full)
            exchange_count_failure(x, UPSTREAM_CONNECT_FAILED);
        x->reached = false;
        bool again = exchange_may_retry(x, RETRY_CONNECT);
        err = again ? exchange_rebook(x, outcome) : ERR_UNREACHABLE;
        if (err != 0) {
            exchange_release_booking(x, outcome);
            if (x->asking)
                exchange_asked(x);
            else
                exchange_no_replica(x, full ? ERR_FULL : err);
            return;
        }
        p->stats.retries[RETRY_CONNECT]++;
        x->failed_before = true;
        if (!begin(x))
            return;
        exchange_pin(x);
    }
    x->began_ms = p->now_ms;
    exchange_push(x);
}

void exchange_place_anew(struct exchange *x)
{
    if (place_anew(x))
        send_now(x);
}

/* Sends after the back-off. Since the choice, the replica may have gone down or left, and the
 * request may have become known as poison. */
static void send_later(struct deadline *d)
{
    struct exchange *x = CONTAINER_OF(d, struct exchange, deadline);
    struct node_request request;
    if (suspect_refused(x)) {
        exchange_release_booking(x, NODE_OUTCOME_NOT_SENT);
        exchange_refuse_suspect(x);
        return;
    }
    exchange_describe(x, &request);
    if (node_router_still_fits(x->proxy->config.router, &request, &x->excluded,
                               x->now.decision.replica, x->proxy->now_ms))
        send_now(x);
    else
        exchange_place_anew(x);
}

/* Sends the first retry at once. Later retries wait for random times, to spread requests that
 * failed together. After an engine's death the first retry waits too: the chosen replica may be
 * dead as well, and after two deaths the request would look like the cause. */
static void start(struct exchange *x)
{
    struct proxy *p = x->proxy;
    bool died_now = x->suspect.deaths > 0 && x->suspect.at_ms == p->now_ms;
    if (x->retries < 2 && !died_now) {
        send_now(x);
        return;
    }
    uint64_t random = hash_mix(p->exchanges.id_key[0] + p->exchanges.back_offs++);
    x->deadline.expired = send_later;
    proxy_arm(p, PROXY_RETRY_FIRST + (enum proxy_limit)(random % PROXY_RETRY_WAITS), &x->deadline);
}

static void follow_choice(struct exchange *x, int err);

static void look_over(struct deadline *d)
{
    struct exchange *x = CONTAINER_OF(d, struct exchange, deadline);
    x->looking = false;
    int err = exchange_choose(x);
    if (x->plan.verdict == ADMISSION_GO && x->looked_after)
        count_retry(x, x->too_long ? RETRY_CONTEXT : RETRY_MODEL);
    follow_choice(x, err);
}

bool exchange_look_after(struct exchange *x)
{
    if (exchange_is_committed(x) || x->alive || x->dropped || !exchange_look(x, look_over))
        return false;
    x->looked_after = true;
    exchange_release_booking(x, NODE_OUTCOME_REJECTED);
    exchange_hang_up(x);
    exchange_forget_answer(x); /* also drops the held part and its time limit */
    proxy_arm(x->proxy, PROXY_LISTS, &x->deadline);
    return true;
}

/* Returns true if the model lists should be read before the request is sent: the chosen replica may
 * run another engine since the last list, or was chosen as a guess, without a list. Another replica
 * may serve the model by now. */
static bool needs_lists(const struct exchange *x)
{
    const struct node_router *router = x->proxy->config.router;
    bool stale = node_router_replica(router, x->now.decision.server)->server.models_stale;
    struct node_request request;
    if (x->looked ||
        (!stale && node_models_listed(node_router_model_table(router), x->now.decision.server)))
        return false;
    exchange_describe(x, &request);
    return stale ? request.model.len > 0
                 : node_router_is_guess(router, &request, x->now.decision.server);
}

static void follow_choice(struct exchange *x, int err)
{
    if (err == ERR_NOT_FOUND && x->attempts == 0 && exchange_look(x, look_over))
        return;
    if (err != 0) {
        exchange_no_replica(x, err);
        return;
    }
    if (!begin(x))
        return;
    if (needs_lists(x) && exchange_look(x, look_over)) {
        exchange_release_booking(x, NODE_OUTCOME_NOT_SENT);
        x->attempts--;
        return;
    }
    bool asks = x->asking_around && x->method != HTTP_METHOD_GET && !x->asking;
    err = asks ? exchange_ask(x) : 0;
    if (err != 0)
        exchange_no_replica(x, err);
    else
        start(x);
}

void exchange_queue_run(struct proxy *p)
{
    struct queue_look look = {0};
    struct admission_request *r;
    while ((r = admission_next(&p->admission, &look)) != NULL) {
        struct exchange *x = CONTAINER_OF(r, struct exchange, admission);
        enum queue_class class = r->waiter.class;
        int err = exchange_choose(x);
        if (x->plan.verdict == ADMISSION_WAIT && x->plan.class == class)
            queue_pass(&look, &r->waiter);
        else
            follow_choice(x, err);
    }
}

void exchange_route(struct exchange *x)
{
    if (x->looking || queue_waits(&x->admission.waiter))
        return;
    if (x->route.kind == HTTP_PATH_GENERATE)
        exchange_exclude_other_engines(x);
    follow_choice(x, exchange_choose(x));
}

void exchange_refuse_suspect(struct exchange *x)
{
    bool poison = suspect_refused(x) && x->refusal == REFUSED_POISON;
    if (poison)
        node_poison_refused(x->proxy->config.router, x->suspect.hash);
    exchange_forget_answer(x);
    exchange_answer_error(x, 502, slice_of("", 0), "%s",
                          poison ? refusal_rows[REFUSED_POISON].text : x->suspect.refused_text);
}

void exchange_begin_anew(struct exchange *x, enum verdict_reason why)
{
    exchange_hang_up(x);
    exchange_forget_answer(x);
    count_retry(x, why);
    if (begin(x))
        start(x);
}

int exchange_move(struct exchange *x, enum node_outcome outcome, enum verdict_reason why)
{
    int err = exchange_rebook(x, outcome);
    if (err == 0)
        exchange_begin_anew(x, why);
    return err;
}

int exchange_same_again(struct exchange *x)
{
    exchange_forget_answer(x);
    int err = start_upstream(x, true);
    if (err == 0) {
        x->began_ms = x->proxy->now_ms;
        x->refusal = REFUSED_NONE; /* the failure was of the previous address */
        x->limit = NULL;
        exchange_push(x);
    }
    return err;
}
