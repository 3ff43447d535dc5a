/* Rejections (4xx), which may be the request's fault or the replica's (node/replica/reject.h).
 * Decides which requests are tried at another replica, and reacts to the answer there.
 *
 *   rejected ── not worth a try ──> the client gets it
 *      │
 *      └─ kept, and tried elsewhere ──┬── accepted ──> contradicted: counts against the replica
 *                                     ├── rejected ──> confirmed: the client gets the first one
 *                                     └── no answer ─> undecided: the client gets the first one
 *
 * After a sign of life a client can get no 4xx: a rejection is then an ordinary failure. Only the
 * beginning of a long rejection is kept. If another replica rejects the request too, the client
 * gets the second rejection; without any answer, an error with the beginning.
 *
 * If a replica is known to reject acceptable requests, the client gets the rejection only if no
 * other replica answers. */
#include "node/proxy/exchange/exchange_internal.h"

#include <stdio.h>

#include "base/hash.h"
#include "node/replica/model.h"

/* Returns the client, and the beginning of the prompt, by which several programs at an address can
 * be distinguished. */
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

static struct node_rejection rejection_of(const struct exchange *x, unsigned status)
{
    struct node_request request;
    exchange_describe(x, &request);
    return (struct node_rejection){.replica = x->now.decision.server,
                                   .kind = request.kind,
                                   .model =
                                       node_router_reject_model(x->proxy->config.router, &request),
                                   .status = status,
                                   .from = from_of(x),
                                   .sent_ms = x->began_ms};
}

/* --- the decision to try -------------------------------------------------------------------- */

static bool is_rejection(unsigned status)
{
    return status >= 400 && status < 500 && status != 429;
}

static enum node_reject_guilt guilt_of(const struct exchange *x, const struct node_rejection *what)
{
    return node_router_reject_guilt(x->proxy->config.router, what);
}

static bool may_be_tried(const struct exchange *x, const struct node_rejection *what)
{
    return !exchange_is_committed(x) && !x->alive && exchange_reject_again(x, what->status) &&
           guilt_of(x, what) >= NODE_REJECT_WORTH;
}

bool exchange_reject_waits(const struct exchange *x, unsigned status)
{
    if (!is_rejection(status) || x->kept.open)
        return x->kept.open && is_rejection(status);
    struct node_rejection what = rejection_of(x, status);
    return may_be_tried(x, &what);
}

/* Returns true if the rejection is held, and so can be kept. */
static bool can_be_kept(const struct exchange *x, const struct node_engine_error *said)
{
    if (said != NULL)
        return x->now.hold == EXCHANGE_HOLD_STREAM;
    return x->now.hold == EXCHANGE_HOLD_ERROR && x->now.held_head > 0;
}

/* Tries another replica. Returns false if there is none; then only the booking has changed. If the
 * first replica is probably at fault, the other may be in a back-off, as after an ordinary
 * failure. */
static bool try_elsewhere(struct exchange *x, enum node_reject_guilt guilt)
{
    x->free_retry = guilt == NODE_REJECT_CAUGHT;
    return exchange_may_try(x, guilt >= NODE_REJECT_LIKELY) &&
           exchange_move(x, NODE_OUTCOME_REJECTED, RETRY_REJECTED) == 0;
}

/* Tries the request elsewhere after the first rejection. Returns true if another replica is asked
 * now. */
static bool try_first(struct exchange *x, const struct node_rejection *what,
                      const struct node_engine_error *said)
{
    if (!may_be_tried(x, what) || !can_be_kept(x, said) ||
        exchange_kept_keep(x, what, said, false) != 0)
        return false;
    if (try_elsewhere(x, guilt_of(x, what)))
        return true;
    exchange_kept_unkeep(x);
    return false;
}

/* Treats a rejection after a sign of life as an ordinary failure. No 4xx can follow the sign, so
 * nothing is kept. Returns true if another replica is asked now. */
static bool try_alive(struct exchange *x, const struct node_rejection *what)
{
    enum node_reject_guilt guilt = guilt_of(x, what);
    return x->alive && !exchange_is_committed(x) && exchange_reject_again(x, what->status) &&
           guilt >= NODE_REJECT_WORTH && try_elsewhere(x, guilt);
}

/* --- reactions ------------------------------------------------------------------------------ */

static void log_caught(const struct exchange *x, unsigned replica, unsigned status,
                       const char *word, struct slice by)
{
    const struct proxy *p = x->proxy;
    char text[8];
    (void)snprintf(text, sizeof text, "%u", status);
    log_event(p->config.log, LOG_WARN, "replica_rejects", LOG_STR("id", x->request_id),
              LOG_STR("replica", node_router_replica_name(p->config.router, replica)),
              LOG_CSTR("status", text), LOG_CSTR("path", x->path), LOG_STR(word, by));
}

/* Judges a second rejection. Returns true if the first rejection goes to the client, or a third
 * replica is asked. */
static bool judge_second(struct exchange *x, const struct node_rejection *what)
{
    struct node_router *router = x->proxy->config.router;
    const struct node_rejection first = x->kept.what;
    enum node_reject_guilt guilt = guilt_of(x, what);
    if (guilt == NODE_REJECT_CAUGHT && try_elsewhere(x, guilt))
        return true;
    if (guilt != NODE_REJECT_CAUGHT && !x->kept.says_why)
        node_router_reject_confirmed(router, &first, what->replica);
    if (!exchange_kept_stands(x) || x->kept.cut) {
        exchange_kept_drop(x);
        return false;
    }
    exchange_hang_up(x);
    exchange_release_booking(x, NODE_OUTCOME_REJECTED);
    return exchange_answer_kept(x);
}

bool exchange_rejected(struct exchange *x, unsigned status, const struct node_engine_error *said)
{
    if (!is_rejection(status) || BUG(REJECT_COUNTS_AS_SPARE))
        return false;
    struct node_rejection what = rejection_of(x, status);
    x->reached = true;
    x->timed_out = false;
    x->now.judged = status;
    x->now.outcome = NODE_OUTCOME_REJECTED;
    bool tells_nothing = x->kept.open && !x->kept.says_why &&
                         guilt_of(x, &x->kept.what) == NODE_REJECT_CAUGHT &&
                         guilt_of(x, &what) != NODE_REJECT_CAUGHT;
    if (tells_nothing)
        exchange_kept_drop(x); /* the present rejection is the first about the request itself */
    if (x->kept.open)
        return judge_second(x, &what);
    if (try_first(x, &what, said) || try_alive(x, &what))
        return true;
    if (exchange_weighs_rejections(x->route.kind) && !x->asking)
        node_router_reject_passed(x->proxy->config.router, &what);
    return false;
}

void exchange_note_denied(struct exchange *x, struct slice model)
{
    struct node_router *router = x->proxy->config.router;
    unsigned server = x->now.decision.server;
    bool lists = node_models_listed(node_router_model_table(router), server) &&
                 node_router_replica_serves(router, server, model);
    if (x->denied_by > 0)
        node_router_model_tried(router, x->denied_by - 1, false);
    x->denied_by = lists ? server + 1 : 0;
    if (node_models_deny(node_router_model_table(router), server, model, x->proxy->now_ms))
        log_caught(x, server, x->now.status, "model", model);
}

/* Returns true for an ambiguous 404 if no other replica can be tried. */
static bool is_of_no_engine(struct exchange *x, const struct node_request *request)
{
    const struct node_router *router = x->proxy->config.router;
    return request->model.len > 0 && request->replica_wanted < 0 && !x->kept.open &&
           !exchange_is_committed(x) && !x->alive && exchange_reject_again(x, 404) &&
           can_be_kept(x, NULL) &&
           !node_models_listed(node_router_model_table(router), x->now.decision.server) &&
           !node_router_has_other(x->proxy->config.router, request, &x->excluded,
                                  x->now.decision.replica, false, x->proxy->now_ms);
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
    node_models_doubt(node_router_model_table(router), server, request.model);
    bool known = node_router_model_known(router, request.model);
    bool guess = node_router_is_guess(router, &request, server) && !x->looked;
    if ((!known && !guess) || exchange_kept_keep(x, &what, NULL, false) != 0)
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
    if (x->kept.open || !can_be_kept(x, said) || exchange_kept_keep(x, &what, said, true) != 0)
        return false;
    if (exchange_move(x, NODE_OUTCOME_REJECTED, RETRY_CONTEXT) == 0 || exchange_look_after(x))
        return true;
    exchange_hang_up(x);
    return exchange_answer_kept(x);
}

/* Counts a good answer against the replica with the earlier rejection, and against the last replica
 * that denied the model. */
static void contradict(struct exchange *x, const struct node_request *request)
{
    struct node_router *router = x->proxy->config.router;
    const struct exchange_kept *k = &x->kept;
    unsigned server = x->now.decision.server;
    if (x->denied_by > 0 && x->denied_by - 1 != server)
        node_router_model_tried(router, x->denied_by - 1, true);
    x->denied_by = 0;
    if (!k->open || k->what.replica == server)
        return;
    if (k->what.status == 404)
        node_models_doubt(node_router_model_table(router), k->what.replica, request->model);
    bool lives = k->life == node_router_replica(router, k->what.replica)->life;
    if (lives && !k->says_why &&
        node_router_reject_contradicted(router, &k->what, x->proxy->now_ms))
        log_caught(x, k->what.replica, k->what.status, "accepted_by",
                   node_router_replica_name(router, x->now.decision.replica));
}

void exchange_accepted(struct exchange *x)
{
    struct node_router *router = x->proxy->config.router;
    struct node_models *models = node_router_model_table(router);
    unsigned server = x->now.decision.server;
    struct node_request request = {.kind = exchange_reject_kind(x)};
    if (!exchange_weighs_rejections(x->route.kind) || x->asking)
        return;
    if (x->kept.open || node_reject_any(&node_router_process(router, server)->reject) ||
        node_models_denied_any(models))
        exchange_describe(x, &request);
    contradict(x, &request);
    exchange_kept_drop(x);
    bool again = node_router_accepted(router, server, &request, from_of(x), x->began_ms);
    again |= node_models_accepted(models, server, request.model, x->began_ms, x->proxy->now_ms);
    if (again)
        log_event(x->proxy->config.log, LOG_INFO, "replica_accepts", LOG_STR("id", x->request_id),
                  LOG_STR("replica", node_router_replica_name(router, x->now.decision.server)));
}
