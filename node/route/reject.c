/* Rejections of replicas (node/replica/reject.h): what answers of 4xx and of others to the same
 * request teach, and which replicas are avoided for it. */
#include "base/check.h"
#include "node/route/router_internal.h"

static struct node_reject *of(struct node_router *r, unsigned replica)
{
    return &node_router_process_at(r, replica)->reject;
}

/* A set of those to look at when one is chosen: empty on nearly every day. */
static void note(struct node_router *r, unsigned replica)
{
    unsigned server = node_router_server(r, replica);
    bool any = node_reject_any(&r->replicas[server].reject);
    bool had = node_replica_set_has(&r->rejecting, server);
    if (any && !had)
        node_replica_set_add(&r->rejecting, server);
    else if (!any && had)
        node_replica_set_remove(&r->rejecting, server);
    r->rejecting_count += (unsigned)any - (unsigned)had;
    if (r->replicas[server].reject.kinds != r->replicas[server].reject.reported)
        node_router_touch(r, server);
}

double node_router_reject_own(const struct node_router *r, const struct node_rejection *x)
{
    struct node_reject_prior prior = node_reject_prior_of(&r->clients, x->client);
    return node_reject_own(&node_router_process_at(r, x->replica)->reject, x, &prior);
}

bool node_router_rejects(const struct node_router *r, unsigned replica, uint8_t kind)
{
    const struct node_reject *j = &node_router_process_at(r, replica)->reject;
    return ((j->kinds | j->heard) >> kind & 1) != 0;
}

void node_router_reject_passed(struct node_router *r, const struct node_rejection *x)
{
    struct node_reject_prior prior = node_reject_prior_of(&r->clients, x->client);
    struct node_reject *j = of(r, x->replica);
    double own = node_reject_own(j, x, &prior);
    node_reject_passed(j, x, &prior);
    node_reject_client_passed(&r->clients, x->client, own);
}

void node_router_reject_doubt(struct node_router *r, const struct node_rejection *x, bool open)
{
    node_reject_doubt(of(r, x->replica), x, open);
    note(r, x->replica);
}

bool node_router_reject_contradicted(struct node_router *r, const struct node_rejection *x,
                                     uint64_t now_ms)
{
    bool news = node_reject_contradicted(of(r, x->replica), x, now_ms);
    node_reject_tried(&r->clients, true);
    note(r, x->replica);
    return news;
}

void node_router_reject_confirmed(struct node_router *r, const struct node_rejection *x,
                                  unsigned by)
{
    node_reject_confirmed(of(r, x->replica));
    node_reject_agreed(of(r, by));
    node_reject_tried(&r->clients, false);
    node_reject_client_confirmed(&r->clients, x->client);
}

bool node_router_accepted(struct node_router *r, unsigned replica, uint8_t kind, uint64_t client,
                          uint64_t sent_ms)
{
    node_reject_client_accepted(&r->clients, client);
    struct node_reject *j = of(r, replica);
    bool any = node_reject_any(j);
    bool over = node_reject_accepted(j, kind, sent_ms);
    if (any)
        note(r, replica);
    return over;
}

/* Those of `serving` that are avoided for this request, and how many there are in all. */
static unsigned avoided_of(const struct node_router *r, const struct node_replica_set *serving,
                           const struct node_request *request, uint64_t now_ms,
                           struct node_replica_set *out, unsigned *all)
{
    unsigned count = 0;
    *out = (struct node_replica_set){0};
    *all = 0;
    for (unsigned i = 0; i < r->replica_count; i++) {
        const struct node_replica *k = &r->replicas[i];
        if (k->server != i || !node_replica_set_has(serving, i) ||
            !node_replica_usable(k, NODE_HEALTH_UP))
            continue;
        ++*all;
        if (!node_replica_set_has(&r->rejecting, i) ||
            !node_reject_avoids(&k->reject, request->kind, request->again, now_ms))
            continue;
        node_replica_set_add(out, i);
        count++;
    }
    return count;
}

/* Whether so many of them were caught before that one that it is beyond half of all. */
static bool is_beyond(const struct node_router *r, const struct node_replica_set *avoided,
                      unsigned slot, unsigned half)
{
    uint64_t since = node_reject_since(&r->replicas[slot].reject);
    unsigned before = 0;
    for (unsigned i = 0; i < r->replica_count; i++) {
        if (i == slot || !node_replica_set_has(avoided, i))
            continue;
        uint64_t other = node_reject_since(&r->replicas[i].reject);
        before += other < since || (other == since && i < slot);
    }
    return before >= half;
}

void node_router_reject_find(struct node_router *r, const struct node_replica_set *serving,
                             const struct node_request *request, uint64_t now_ms)
{
    struct node_replica_set avoided;
    unsigned all;
    r->rejected_any = false;
    if (r->rejecting_count == 0)
        return;
    unsigned count = avoided_of(r, serving, request, now_ms, &avoided, &all), half = all / 2;
    r->rejected = avoided;
    for (unsigned i = 0; i < r->replica_count && count > half; i++) {
        if (node_replica_set_has(&avoided, i) && is_beyond(r, &avoided, i, half) &&
            !node_reject_paces(&r->replicas[i].reject, now_ms))
            node_replica_set_remove(&r->rejected, i);
    }
    r->rejected_any = count > 0;
}

void node_router_reject_sent(struct node_router *r, unsigned replica, uint8_t kind, uint64_t now_ms)
{
    struct node_reject *j = of(r, replica);
    if (!node_reject_any(j))
        return;
    node_reject_sent(j, kind, now_ms);
}

void node_router_reject_hear(struct node_router *r, unsigned replica,
                             const struct node_reject_heard *h, uint64_t now_ms)
{
    struct node_reject *j = &r->replicas[replica].reject;
    if (h->kinds == 0 && j->heard == 0)
        return;
    node_reject_hear(j, h, now_ms);
    note(r, replica);
}

void node_router_reject_note(struct node_router *r, unsigned replica)
{
    note(r, replica);
}

void node_router_reject_check(const struct node_router *r)
{
    unsigned count = 0;
    for (unsigned i = 0; i < r->replica_count; i++) {
        bool has = node_replica_set_has(&r->rejecting, i);
        CHECK(!has || node_reject_any(&r->replicas[i].reject));
        count += has;
    }
    CHECK(count == r->rejecting_count);
}
