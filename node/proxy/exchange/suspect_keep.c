/* Replicas that are kept for requests that may be poison, and how long such a request may wait for
 * one. */
#include "base/check.h"
#include "base/err.h"
#include "node/proxy/exchange/suspect.h"
#include "node/proxy/proxy_internal.h"

static bool wants_one(const struct exchange *x)
{
    return x->suspect.company == NODE_COMPANY_ALONE;
}

void suspect_keep(struct exchange *x, const struct node_request *request)
{
    struct proxy *p = x->proxy;
    struct suspect_kept *s = &p->exchanges.suspects;
    if (!wants_one(x) || s->kept != 0 || p->now_ms < s->pause_until_ms)
        return;
    int quietest = node_router_quietest(p->config.router, request, x->excluded, p->now_ms);
    if (quietest < 0)
        return;
    s->kept = (unsigned)quietest + 1;
    node_router_keep(p->config.router, (unsigned)quietest, true);
}

void suspect_settle(struct proxy *p)
{
    struct suspect_kept *s = &p->exchanges.suspects;
    if (s->kept == 0 || p->exchanges.queue.lines[QUEUE_ALONE].length > 0)
        return;
    node_router_keep(p->config.router, s->kept - 1, false);
    s->kept = 0;
    p->exchanges.queue_due = true;
}

void suspect_placed(struct exchange *x, unsigned server)
{
    struct proxy *p = x->proxy;
    x->waited_ms[QUEUE_ALONE] = x->waited_ms[QUEUE_APART] = 0;
    if (x->suspect.company == NODE_COMPANY_ANY)
        return;
    CHECK(x->suspect.kept == NODE_COMPANY_ANY);
    x->suspect.kept = x->suspect.company;
    node_router_keep(p->config.router, server, true);
    if (wants_one(x)) {
        p->exchanges.suspects.placed++;
        p->exchanges.suspects.placed_until_ms = p->now_ms + SUSPECT_KEEP_MS;
    }
}

void suspect_left(struct exchange *x)
{
    struct proxy *p = x->proxy;
    if (x->suspect.kept == NODE_COMPANY_ANY)
        return;
    node_router_keep(p->config.router, x->now.decision.server, false);
    p->exchanges.suspects.placed -= x->suspect.kept == NODE_COMPANY_ALONE;
    p->exchanges.queue_due = true;
    x->suspect.kept = NODE_COMPANY_ANY;
}

void suspect_describe(const struct exchange *x, struct node_request *out)
{
    const struct suspect_kept *s = &x->proxy->exchanges.suspects;
    bool kept = s->kept != 0 || (s->placed > 0 && x->proxy->now_ms < s->placed_until_ms);
    bool patient = x->waited_ms[QUEUE_APART] < SUSPECT_OTHERS_MS &&
                   queue_has_place(&x->proxy->exchanges.queue, &x->waiter);
    out->company = x->suspect.company;
    out->kept_for_it = (int)s->kept - 1;
    out->may_wait = kept && patient && x->skimming;
}

uint64_t suspect_waited_ms(const struct exchange *x)
{
    uint64_t open_ms = x->proxy->now_ms - x->started_ms + SUSPECT_WAIT_MS;
    uint64_t by_age_ms = open_ms > SUSPECT_OPEN_MS ? open_ms - SUSPECT_OPEN_MS : 0;
    uint64_t waited_ms = x->waited_ms[QUEUE_ALONE];
    return waited_ms > by_age_ms ? waited_ms : by_age_ms;
}

/* What is to be said to its client if it may not wait; NULL: it may. */
static const char *why_not_wait(const struct exchange *x)
{
    if (x->plan.err == ERR_AGAIN || !wants_one(x))
        return NULL;
    if (!queue_has_place(&x->proxy->exchanges.queue, &x->waiter))
        return "An engine died after this request, and too many wait for one that is free of "
               "other requests.";
    if (x->plan.err == ERR_LIMIT)
        return "An engine died after this request. It is not sent to the only other one, which "
               "others use.";
    if (suspect_waited_ms(x) >= SUSPECT_WAIT_MS)
        return "An engine died after this request, and no other one was free of other requests in "
               "time.";
    return NULL;
}

bool suspect_may_wait(const struct exchange *x)
{
    return why_not_wait(x) == NULL;
}

void suspect_give_up(struct exchange *x)
{
    struct suspect_kept *s = &x->proxy->exchanges.suspects;
    suspect_refuse(x, why_not_wait(x));
    if (s->kept != 0)
        s->pause_until_ms = x->proxy->now_ms + SUSPECT_PAUSE_MS;
}
