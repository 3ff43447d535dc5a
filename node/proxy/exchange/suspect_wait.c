#include "node/proxy/exchange/suspect_wait.h"

#include "base/check.h"
#include "node/proxy/exchange/suspect.h"
#include "node/proxy/proxy_internal.h"

/* --- replicas that are kept ------------------------------------------------------------------ */

static bool wants_one(const struct exchange *x)
{
    return x->suspect.company == NODE_COMPANY_ALONE;
}

static void keep_quietest(struct exchange *x, const struct node_request *request)
{
    struct proxy *p = x->proxy;
    struct suspect_queue *s = &p->exchanges.suspects;
    if (s->kept != 0 || p->now_ms < s->pause_until_ms)
        return;
    int quietest = node_router_quietest(p->config.router, request, x->excluded, p->now_ms);
    if (quietest < 0)
        return;
    s->kept = (unsigned)quietest + 1;
    node_router_keep(p->config.router, (unsigned)quietest, true);
}

/* None is kept for nobody. */
static void settle(struct proxy *p)
{
    struct suspect_queue *s = &p->exchanges.suspects;
    if (s->kept == 0 || s->waiting_alone > 0)
        return;
    node_router_keep(p->config.router, s->kept - 1, false);
    s->kept = 0;
    s->moved = true;
}

void suspect_placed(struct exchange *x)
{
    struct suspect *s = &x->suspect;
    struct proxy *p = x->proxy;
    s->wait_until_ms = 0;
    if (s->company == NODE_COMPANY_ANY)
        return;
    CHECK(!s->kept);
    s->kept = true;
    s->kept_alone = wants_one(x);
    s->kept_replica = x->decision.server;
    node_router_keep(p->config.router, s->kept_replica, true);
    if (s->kept_alone) {
        p->exchanges.suspects.placed++;
        p->exchanges.suspects.placed_until_ms = p->now_ms + SUSPECT_KEEP_MS;
    }
}

void suspect_left(struct exchange *x)
{
    struct suspect *s = &x->suspect;
    struct suspect_queue *all = &x->proxy->exchanges.suspects;
    all->moved = true;
    if (!s->kept)
        return;
    s->kept = false;
    node_router_keep(x->proxy->config.router, s->kept_replica, false);
    all->placed -= s->kept_alone;
}

/* --- those that wait ------------------------------------------------------------------------- */

bool suspect_has_place(const struct exchange *x)
{
    const struct proxy *p = x->proxy;
    uint64_t others =
        p->exchanges.suspects.waiting + p->exchanges.queue.length - queue_waits(&x->waiter);
    return others < p->exchanges.queue.length_max;
}

void suspect_describe(const struct exchange *x, struct node_request *out)
{
    const struct suspect_queue *s = &x->proxy->exchanges.suspects;
    uint64_t now = x->proxy->now_ms;
    bool kept = s->kept != 0 || (s->placed > 0 && now < s->placed_until_ms);
    bool patient = x->suspect.wait_until_ms == 0 || now < x->suspect.wait_until_ms;
    patient = patient && suspect_has_place(x);
    out->company = x->suspect.company;
    out->kept_for_it = (int)s->kept - 1;
    out->may_wait = kept && patient && x->skimming;
}

static void join_list(struct exchange *x)
{
    struct suspect_queue *all = &x->proxy->exchanges.suspects;
    struct suspect *s = &x->suspect;
    s->waiting = true;
    s->next = NULL;
    s->before = all->last;
    if (all->last != NULL)
        all->last->suspect.next = x;
    else
        all->first = x;
    all->last = x;
    all->waiting++;
    all->waiting_alone += wants_one(x);
}

/* Until when it waits, from now on if it does not yet. */
static uint64_t wait_until_ms(const struct exchange *x)
{
    if (x->suspect.wait_until_ms != 0)
        return x->suspect.wait_until_ms;
    uint64_t now = x->proxy->now_ms;
    uint64_t latest = x->started_ms + SUSPECT_OPEN_MS;
    uint64_t until = now + (wants_one(x) ? SUSPECT_WAIT_MS : SUSPECT_OTHERS_MS);
    return wants_one(x) && until > latest ? latest : until;
}

/* What is to be said to its client if it may not wait; NULL: it may. */
static const char *why_not_wait(const struct exchange *x, bool soon)
{
    if (!suspect_has_place(x))
        return "An engine died after this request, and too many wait for one that is free of "
               "other requests.";
    if (!soon)
        return "An engine died after this request. It is not sent to the only other one, which "
               "others use.";
    if (x->proxy->now_ms >= wait_until_ms(x))
        return "An engine died after this request, and no other one was free of other requests in "
               "time.";
    return NULL;
}

bool suspect_may_wait(const struct exchange *x, bool soon)
{
    return why_not_wait(x, soon) == NULL;
}

bool suspect_wait(struct exchange *x, const struct node_request *request, uint64_t key, bool soon)
{
    struct proxy *p = x->proxy;
    struct suspect_queue *all = &p->exchanges.suspects;
    struct suspect *s = &x->suspect;
    s->key = key;
    if (s->wait_until_ms == 0) {
        s->since_ms = p->now_ms;
        s->wait_until_ms = wait_until_ms(x);
    }
    const char *why_not = why_not_wait(x, soon);
    if (why_not != NULL) {
        CHECK(wants_one(x)); /* others do not wait then */
        suspect_refuse(x, why_not);
        if (all->kept != 0)
            all->pause_until_ms = p->now_ms + SUSPECT_PAUSE_MS;
        return false;
    }
    if (wants_one(x))
        keep_quietest(x, request);
    else if (all->stuck_count < SUSPECT_STUCK_KEYS)
        all->stuck[all->stuck_count++] = key;
    join_list(x);
    return true;
}

static void leave_list(struct exchange *x)
{
    struct suspect_queue *all = &x->proxy->exchanges.suspects;
    struct suspect *s = &x->suspect;
    if (s->before != NULL)
        s->before->suspect.next = s->next;
    else
        all->first = s->next;
    if (s->next != NULL)
        s->next->suspect.before = s->before;
    else
        all->last = s->before;
    s->waiting = false;
    all->waiting--;
    all->waiting_alone -= wants_one(x);
}

void suspect_gone(struct exchange *x)
{
    CHECK(!x->suspect.kept);
    if (x->suspect.waiting)
        leave_list(x);
}

bool suspect_due(struct proxy *p)
{
    struct suspect_queue *all = &p->exchanges.suspects;
    settle(p);
    bool due = all->waiting > 0 && (all->moved || p->exchanges.queue_due);
    all->moved = false;
    all->stuck_count = 0;
    all->look = due ? all->waiting : 0;
    return due;
}

static bool is_stuck(const struct exchange *x)
{
    const struct suspect_queue *all = &x->proxy->exchanges.suspects;
    if (wants_one(x) || x->proxy->now_ms >= x->suspect.wait_until_ms)
        return false;
    for (unsigned i = 0; i < all->stuck_count; i++) {
        if (all->stuck[i] == x->suspect.key)
            return true;
    }
    return false;
}

struct exchange *suspect_next(struct proxy *p)
{
    struct suspect_queue *all = &p->exchanges.suspects;
    struct exchange *x;
    while (all->look > 0 && (x = all->first) != NULL) {
        all->look--;
        leave_list(x);
        if (!is_stuck(x))
            return x;
        join_list(x); /* in its order: those before it are behind it already */
    }
    return NULL;
}

unsigned suspect_waiting(const struct proxy *p, bool alone, const struct exchange **longest)
{
    const struct suspect_queue *all = &p->exchanges.suspects;
    *longest = NULL;
    for (const struct exchange *x = all->first; x != NULL; x = x->suspect.next) {
        bool older = *longest == NULL || x->suspect.since_ms < (*longest)->suspect.since_ms;
        if (wants_one(x) == alone && older)
            *longest = x;
    }
    return alone ? all->waiting_alone : all->waiting - all->waiting_alone;
}
