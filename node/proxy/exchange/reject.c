/* Answers of 4xx, and whose fault each is (node/replica/reject.h): which of them is tried at
 * another replica, and what follows of the answer there.
 *
 *   rejected ── not worth a try ──> the client gets it
 *      │
 *      └─ kept, and tried elsewhere ──┬── accepted ──> contradicted: it counts against the replica
 *                                     ├── rejected ──> confirmed: the client gets the first one
 *                                     └── no answer ─> nobody knows: the same
 *
 * Of one that is too long to be kept only the beginning is. If another replica rejects the request
 * too, the client gets that answer; if none answers, an error with that beginning.
 *
 * Of a replica that is known to reject what others accept the client gets nothing, as long as
 * another one says anything at all. */
#include "node/proxy/exchange/exchange_internal.h"

#include <stdio.h>

#include "base/hash.h"

/* The same prompt, or one that begins alike, may be of one program among many behind an address. */
static struct node_reject_from from_of(const struct exchange *x)
{
    struct node_reject_from from = {.client = x->client_id};
    if (from.client == 0 || !x->skimming || !x->skim.understood)
        return from;
    const struct chain *chain = http_skim_chain(&x->skim);
    if (chain->length > 0)
        from.prompt = hash_mix(from.client ^ chain->points[0].id) | 1;
    return from;
}

static uint64_t model_of(const struct exchange *x)
{
    struct node_request request;
    exchange_describe(x, &request);
    return node_router_reject_model(x->proxy->config.router, &request);
}

static struct node_rejection rejection_of(const struct exchange *x, unsigned status)
{
    return (struct node_rejection){.replica = x->now.decision.server,
                                   .kind = exchange_reject_kind(x),
                                   .model = model_of(x),
                                   .status = status,
                                   .from = from_of(x),
                                   .sent_ms = x->began_ms,
                                   .rejected_ms = x->proxy->now_ms};
}

/* --- whether it is tried --------------------------------------------------------------------- */

static bool is_rejection(unsigned status)
{
    return status >= 400 && status < 500 && status != 429;
}

static bool is_caught(const struct exchange *x, const struct node_rejection *what)
{
    return node_router_rejects(x->proxy->config.router, what);
}

static bool is_worth_it(const struct exchange *x, const struct node_rejection *what)
{
    return node_reject_is_worth(node_router_reject_own(x->proxy->config.router, what));
}

static bool is_likely(const struct exchange *x, const struct node_rejection *what)
{
    return node_reject_is_likely(node_router_reject_own(x->proxy->config.router, what));
}

bool exchange_reject_waits(const struct exchange *x, unsigned status)
{
    if (!is_rejection(status) || exchange_is_committed(x) || x->alive ||
        !exchange_reject_again(x, status))
        return x->kept.open && is_rejection(status);
    struct node_rejection what = rejection_of(x, status);
    return x->kept.open || is_worth_it(x, &what);
}

/* It is held, so that it can be kept. */
static bool can_be_kept(const struct exchange *x, const struct node_engine_error *said)
{
    if (said != NULL)
        return x->now.hold == EXCHANGE_HOLD_STREAM;
    return x->now.hold == EXCHANGE_HOLD_ERROR && x->now.held_head > 0;
}

/* A peer is asked. False: none is, and all is as it was but for the booking. If it is rather the
 * replica's fault, that is a failure like others: a peer in a back-off will do. */
static bool try_elsewhere(struct exchange *x, const struct node_rejection *what,
                          enum verdict_reason why)
{
    x->free_retry = why != RETRY_REJECTED || is_caught(x, what);
    if (!exchange_may_try(x, why, is_likely(x, what)))
        return false;
    return exchange_move(x, NODE_OUTCOME_REJECTED, why) == 0;
}

/* The first to reject it. True: another replica is asked now. */
static bool try_first(struct exchange *x, const struct node_rejection *what,
                      const struct node_engine_error *said, enum verdict_reason why)
{
    bool worth = why != RETRY_REJECTED || is_worth_it(x, what);
    if (!worth || exchange_is_committed(x) || x->alive || !exchange_reject_again(x, what->status) ||
        !can_be_kept(x, said) || exchange_kept_keep(x, what, said) != 0)
        return false;
    if (why != RETRY_REJECTED)
        exchange_kept_says_why(x);
    if (try_elsewhere(x, what, why))
        return true;
    exchange_kept_unkeep(x);
    return false;
}

/* --- what follows ---------------------------------------------------------------------------- */

static void log_caught(const struct exchange *x, const struct node_rejection *what)
{
    const struct proxy *p = x->proxy;
    const struct node_router *router = p->config.router;
    char status[8];
    (void)snprintf(status, sizeof status, "%u", what->status);
    log_event(p->config.log, LOG_WARN, "replica_rejects", LOG_STR("id", x->request_id),
              LOG_STR("replica", node_router_replica_name(router, what->replica)),
              LOG_CSTR("status", status), LOG_CSTR("path", x->path),
              LOG_STR("accepted_by", node_router_replica_name(router, x->now.decision.replica)));
}

/* Another replica rejected it too. True: the first answer goes to the client, and it is over. */
static bool judge_second(struct exchange *x, const struct node_rejection *what)
{
    struct node_router *router = x->proxy->config.router;
    const struct node_rejection first = x->kept.what;
    if (is_caught(x, what) && try_elsewhere(x, what, RETRY_REJECTED))
        return true;
    if (!is_caught(x, what) && !x->kept.says_why)
        node_router_reject_confirmed(router, &first, what->replica);
    if (!exchange_kept_stands(x) || x->kept.cut) {
        exchange_kept_drop(x);
        return false;
    }
    exchange_hang_up(x);
    exchange_release_booking(x, NODE_OUTCOME_REJECTED);
    return exchange_answer_kept(x);
}

bool exchange_rejected(struct exchange *x, unsigned status, const struct node_engine_error *said,
                       enum verdict_reason why)
{
    if (!is_rejection(status) || BUG(REJECT_COUNTS_AS_SPARE))
        return false;
    struct node_rejection what = rejection_of(x, status);
    x->reached = true;
    x->timed_out = false;
    x->now.judged = status;
    x->now.outcome = NODE_OUTCOME_REJECTED;
    bool tells_nothing = x->kept.open && is_caught(x, &x->kept.what) && !is_caught(x, &what);
    if (tells_nothing && !x->kept.says_why)
        exchange_kept_drop(x); /* this one is the first that may say something of the request */
    if (x->kept.open)
        return judge_second(x, &what);
    if (try_first(x, &what, said, why))
        return true;
    if (exchange_weighs_rejections(x->route.kind) && !x->asking)
        node_router_reject_passed(x->proxy->config.router, &what);
    return false;
}

void exchange_note_denied(struct exchange *x, struct slice model)
{
    struct node_router *router = x->proxy->config.router;
    unsigned server = x->now.decision.server;
    bool lists = node_router_models_listed(router, server) &&
                 node_router_replica_serves(router, server, model);
    if (x->denied_by > 0)
        node_router_model_tried(router, x->denied_by - 1, false);
    x->denied_by = lists ? server + 1 : 0;
    if (!node_router_model_denied(router, server, model, x->proxy->now_ms))
        return;
    char status[8];
    (void)snprintf(status, sizeof status, "%u", x->now.status);
    log_event(x->proxy->config.log, LOG_WARN, "replica_rejects", LOG_STR("id", x->request_id),
              LOG_STR("replica", node_router_replica_name(router, server)),
              LOG_CSTR("status", status), LOG_CSTR("path", x->path), LOG_STR("model", model));
}

static bool accepts_again(struct exchange *x, struct slice model)
{
    struct node_router *router = x->proxy->config.router;
    unsigned server = x->now.decision.server;
    if (x->denied_by > 0 && x->denied_by - 1 != server)
        node_router_model_tried(router, x->denied_by - 1, true);
    x->denied_by = 0;
    uint64_t id = node_router_rejects_any(router, server) ? model_of(x) : 0;
    bool again =
        node_router_accepted(router, server, exchange_reject_kind(x), id, from_of(x), x->began_ms);
    return node_router_model_accepted(router, server, model, x->began_ms, x->proxy->now_ms) ||
           again;
}

/* A 404 in words that may mean anything, and nobody else could say otherwise. */
static bool is_of_no_engine(struct exchange *x, const struct node_request *request)
{
    const struct node_router *router = x->proxy->config.router;
    return request->model.len > 0 && request->replica_wanted < 0 && !x->kept.open &&
           !exchange_is_committed(x) && !x->alive && exchange_reject_again(x, 404) &&
           can_be_kept(x, NULL) && !node_router_models_listed(router, x->now.decision.replica) &&
           !node_router_has_other(x->proxy->config.router, request, x->excluded,
                                  x->now.decision.replica, x->proxy->now_ms);
}

bool exchange_doubted(struct exchange *x)
{
    struct node_router *router = x->proxy->config.router;
    unsigned server = x->now.decision.server;
    struct node_rejection what = rejection_of(x, 404);
    struct node_request request;
    exchange_describe(x, &request);
    if (!is_of_no_engine(x, &request))
        return false;
    node_router_model_doubted(router, server, request.model);
    bool known = node_router_model_known(router, request.model);
    bool guess = node_router_is_guess(router, &request, server) && !x->looked;
    if ((!known && !guess) || exchange_kept_keep(x, &what, NULL) != 0)
        return false;
    if (exchange_move(x, NODE_OUTCOME_REJECTED, RETRY_MODEL) == 0 ||
        (!known && exchange_look_after(x)))
        return true;
    exchange_hang_up(x);
    if (!known)
        return exchange_answer_kept(x);
    exchange_kept_drop(x);
    exchange_forget_answer(x);
    exchange_answer_error(x, 503, slice_of("", 0), "No replica that serves this model is up.");
    return true;
}

bool exchange_too_long(struct exchange *x, const struct node_engine_error *said)
{
    struct node_rejection what = rejection_of(x, 400);
    if (x->kept.open || !can_be_kept(x, said) || exchange_kept_keep(x, &what, said) != 0)
        return false;
    exchange_kept_says_why(x);
    if (exchange_move(x, NODE_OUTCOME_REJECTED, RETRY_CONTEXT) == 0 || exchange_look_after(x))
        return true;
    exchange_hang_up(x);
    return exchange_answer_kept(x);
}

void exchange_accepted(struct exchange *x)
{
    struct node_router *router = x->proxy->config.router;
    struct exchange_kept *k = &x->kept;
    struct node_request request;
    if (!exchange_weighs_rejections(x->route.kind) || x->asking)
        return;
    bool same = k->open && k->what.replica == x->now.decision.server;
    bool lives = k->open && k->life == node_router_replica(router, k->what.replica)->life;
    if (k->open && !same && k->what.status == 404) {
        exchange_describe(x, &request);
        node_router_model_doubted(router, k->what.replica, request.model);
    }
    if (k->open && !same && lives && !k->says_why &&
        node_router_reject_contradicted(router, &k->what, x->proxy->now_ms))
        log_caught(x, &k->what);
    exchange_kept_drop(x);
    struct slice model = slice_of("", 0);
    if (node_router_models_denied_any(router)) {
        exchange_describe(x, &request);
        model = request.model;
    }
    if (accepts_again(x, model))
        log_event(x->proxy->config.log, LOG_INFO, "replica_accepts", LOG_STR("id", x->request_id),
                  LOG_STR("replica", node_router_replica_name(router, x->now.decision.server)));
}
