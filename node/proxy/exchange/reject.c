/* Answers of 4xx, and whose fault each is (node/replica/reject.h): which of them is tried at
 * another replica, and what follows of the answer there.
 *
 *   rejected ── not worth a try ──> the client gets it
 *      │
 *      └─ kept, and tried elsewhere ──┬── accepted ──> contradicted: it counts against the replica
 *                                     ├── rejected ──> confirmed: the client gets the first one
 *                                     └── no answer ─> nobody knows: the same
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

static struct node_rejection rejection_of(const struct exchange *x, unsigned status)
{
    return (struct node_rejection){.replica = x->decision.server,
                                   .kind = exchange_reject_kind(x),
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
    return node_router_rejects(x->proxy->config.router, what->replica, what->kind);
}

static bool is_worth_it(const struct exchange *x, const struct node_rejection *what)
{
    return node_reject_is_worth(node_router_reject_own(x->proxy->config.router, what));
}

bool exchange_reject_waits(const struct exchange *x, unsigned status)
{
    if (!is_rejection(status) || x->answering || x->alive || !exchange_reject_again(x))
        return x->kept.open && is_rejection(status);
    struct node_rejection what = rejection_of(x, status);
    return x->kept.open || is_worth_it(x, &what);
}

/* All of it is held, so that it can be kept. */
static bool can_be_kept(const struct exchange *x, const struct node_engine_error *said)
{
    if (said != NULL)
        return x->hold == EXCHANGE_HOLD_STREAM;
    return x->hold == EXCHANGE_HOLD_ERROR && x->held_head > 0 &&
           x->held.len - x->held_head <= EXCHANGE_HELD_ERROR_MAX;
}

/* A peer is asked. False: none is, and all is as it was but for the booking. */
static bool try_elsewhere(struct exchange *x, const struct node_rejection *what,
                          enum verdict_reason why)
{
    x->free_retry = why != RETRY_REJECTED || is_caught(x, what);
    if (!exchange_may_try(x, why))
        return false;
    return exchange_rebook(x, NODE_OUTCOME_REJECTED) == 0;
}

/* The first to reject it. True: another replica is asked now. */
static bool try_first(struct exchange *x, const struct node_rejection *what,
                      const struct node_engine_error *said, enum verdict_reason why)
{
    bool worth = why != RETRY_REJECTED || is_worth_it(x, what);
    if (!worth || x->answering || x->alive || !exchange_reject_again(x) || !can_be_kept(x, said) ||
        exchange_kept_keep(x, what, said) != 0)
        return false;
    x->kept.says_why = why != RETRY_REJECTED;
    if (try_elsewhere(x, what, why)) {
        exchange_begin_anew(x, why);
        return true;
    }
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
              LOG_STR("accepted_by", node_router_replica_name(router, x->decision.replica)));
}

/* Another replica rejected it too. True: the first answer goes to the client, and it is over. */
static bool judge_second(struct exchange *x, const struct node_rejection *what)
{
    struct node_router *router = x->proxy->config.router;
    const struct node_rejection first = x->kept.what;
    if (is_caught(x, what) && try_elsewhere(x, what, RETRY_REJECTED)) {
        exchange_begin_anew(x, RETRY_REJECTED);
        return true;
    }
    if (!is_caught(x, what) && !x->kept.says_why)
        node_router_reject_confirmed(router, &first, what->replica);
    if (!exchange_kept_stands(x)) {
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
    x->judged = status;
    x->outcome = NODE_OUTCOME_REJECTED;
    bool tells_nothing = x->kept.open && is_caught(x, &x->kept.what) && !is_caught(x, &what);
    if (tells_nothing && !x->kept.says_why)
        exchange_kept_drop(x); /* this one is the first that may say something of the request */
    if (x->kept.open)
        return judge_second(x, &what);
    if (try_first(x, &what, said, why))
        return true;
    if (exchange_computes(x->route.kind) && !x->asking)
        node_router_reject_passed(x->proxy->config.router, &what);
    return false;
}

void exchange_accepted(struct exchange *x)
{
    struct node_router *router = x->proxy->config.router;
    struct exchange_kept *k = &x->kept;
    if (!exchange_computes(x->route.kind))
        return;
    bool same = k->open && k->what.replica == x->decision.server;
    bool lives = k->open && k->life == node_router_replica_life(router, k->what.replica);
    if (k->open && !same && lives && !k->says_why &&
        node_router_reject_contradicted(router, &k->what, x->proxy->now_ms))
        log_caught(x, &k->what);
    exchange_kept_drop(x);
    if (node_router_accepted(router, x->decision.server, exchange_reject_kind(x), from_of(x),
                             x->began_ms))
        log_event(x->proxy->config.log, LOG_INFO, "replica_accepts", LOG_STR("id", x->request_id),
                  LOG_STR("replica", node_router_replica_name(router, x->decision.server)));
}
