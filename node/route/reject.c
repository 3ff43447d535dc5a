/* Rejections by replicas (node/replica/reject.h): learns from 4xx and other answers to the same
 * request, and chooses the replicas to avoid because of rejections. */
#include "node/replica/standing.h"
#include "node/route/router_internal.h"

static struct node_reject *of(struct node_router *r, unsigned replica)
{
    return &node_router_process_at(r, replica)->reject;
}

static bool is_proven(const struct node_router *r, unsigned server, uint8_t kind)
{
    const struct node_replica *k = &r->replicas[server];
    return k->rank.server == server && node_replica_usable(k, NODE_HEALTH_UP) &&
           node_reject_proven(&k->reject, kind);
}

static struct node_reject_prior prior_of(const struct node_router *r,
                                         const struct node_rejection *x)
{
    struct node_reject_prior out = node_reject_prior_of(&r->clients, x->from, x->status);
    unsigned server = node_router_server(r, x->replica);
    for (unsigned i = 0; i < r->replica_count && !out.peers; i++)
        out.peers = i != server && is_proven(r, i, x->kind);
    return out;
}

enum node_reject_guilt node_router_reject_guilt(const struct node_router *r,
                                                const struct node_rejection *x)
{
    struct node_reject_prior prior = prior_of(r, x);
    return node_reject_guilt(&node_router_process_at(r, x->replica)->reject, x, &prior);
}

uint64_t node_router_reject_model(const struct node_router *r, const struct node_request *request)
{
    const struct hash_secret *secret = &r->common->secret;
    uint64_t out = 0;
    if (request->model.len > 0)
        out = hash64(secret, request->model.at, request->model.len) | 1;
    if (request->lora.len > 0)
        out = hash_mix(out + hash64(secret, request->lora.at, request->lora.len)) | 1;
    return out;
}

void node_router_reject_passed(struct node_router *r, const struct node_rejection *x)
{
    struct node_reject_prior prior = prior_of(r, x);
    double own = node_reject_passed(of(r, x->replica), x, &prior);
    node_reject_client_rejected(&r->clients, x->from, x->status, own);
}

void node_router_reject_doubt(struct node_router *r, const struct node_rejection *x, bool open)
{
    node_reject_doubt(of(r, x->replica), x, open);
}

bool node_router_reject_contradicted(struct node_router *r, const struct node_rejection *x,
                                     uint64_t now_ms)
{
    struct node_rejection told = *x;
    unsigned models = 0, server = node_router_server(r, x->replica);
    struct slice name;
    for (unsigned at = 0; node_models_next(r->models, server, &at, &name);)
        models++;
    told.model = models > 1 ? x->model : 0;
    bool news = node_reject_contradicted(of(r, x->replica), &told, now_ms);
    node_reject_tried(&r->clients, true);
    node_router_touch(r, node_router_server(r, x->replica));
    return news;
}

void node_router_reject_confirmed(struct node_router *r, const struct node_rejection *x,
                                  unsigned by)
{
    of(r, x->replica)->confirmed++;
    node_reject_agreed(of(r, x->replica));
    node_reject_agreed(of(r, by));
    node_reject_tried(&r->clients, false);
    node_reject_client_rejected(&r->clients, x->from, x->status, 0);
}

bool node_router_accepted(struct node_router *r, unsigned replica,
                          const struct node_request *request, struct node_reject_from from,
                          uint64_t sent_ms)
{
    struct node_reject *j = of(r, replica);
    uint64_t model = node_reject_any(j) ? node_router_reject_model(r, request) : 0;
    node_reject_client_accepted(&r->clients, from);
    return node_reject_accepted(j, request->kind, model, sent_ms);
}

/* --- at most half ------------------------------------------------------------------------------
 *
 * Some replicas of a model may reject some kinds of requests. At most half of the model's replicas
 * are avoided for this: the first in the order below, each for the kinds it rejects. Rejecting
 * replicas beyond the half get their fair share of requests and no more, although a replica that
 * rejects at once has an empty queue. So each request meets at most one such rejection, and is then
 * tried where it is accepted. The order is the same at each router, so routers with the same
 * reports avoid the same replicas. */

struct halves {
    struct node_replica_set against; /* replicas with evidence or doubt against them */
    unsigned count;                  /* number of replicas in `against` */
    unsigned all;                    /* number of all replicas that serve the model */
};

static struct halves halves_of(const struct node_router *r, const struct node_replica_set *serving)
{
    struct halves out = {.count = 0};
    for (unsigned i = 0; i < r->replica_count; i++) {
        const struct node_replica *k = &r->replicas[i];
        if (k->rank.server != i || !node_replica_set_has(serving, i) ||
            !node_replica_usable(k, NODE_HEALTH_UP))
            continue;
        out.all++;
        if (!node_reject_any(&k->reject))
            continue;
        node_replica_set_add(&out.against, i);
        out.count++;
    }
    return out;
}

/* The order of rejecting replicas: replicas with evidence against them before replicas in doubt,
 * then by a hash of the name. */
static bool is_before(const struct node_router *r, unsigned a, unsigned b)
{
    const struct node_replica *x = &r->replicas[a], *y = &r->replicas[b];
    bool holds_x = node_reject_kinds(&x->reject) != 0, holds_y = node_reject_kinds(&y->reject) != 0;
    if (holds_x != holds_y)
        return holds_x;
    return x->name_hash != y->name_hash ? x->name_hash < y->name_hash : a < b;
}

/* The number of replicas before this replica in the order. From half of h->all on, the replica is
 * beyond the half. */
static unsigned place_of(const struct node_router *r, const struct halves *h, unsigned slot)
{
    unsigned before = 0;
    for (unsigned i = 0; i < r->replica_count; i++)
        before += node_replica_set_has(&h->against, i) && is_before(r, i, slot);
    return before;
}

/* True if a replica beyond the half gets the request. It gets 1 request in h->all, but no retry,
 * and none that cannot be retried: these go where they are accepted. If all replicas reject, any
 * replica gets the request. */
static bool is_its_share(const struct node_router *r, const struct halves *h, unsigned place,
                         const struct node_request *request)
{
    bool may_go = request->attempt <= 1 && request->again;
    return h->count == h->all || (may_go && (r->first_attempts + place) % h->all == 0);
}

static bool is_any_against(const struct node_router *r)
{
    for (unsigned i = 0; i < r->replica_count; i++) {
        if (node_reject_any(&r->replicas[i].reject))
            return true;
    }
    return false;
}

void node_router_reject_find(struct node_router *r, const struct node_replica_set *serving,
                             const struct node_request *request, uint64_t now_ms)
{
    r->rejected_any = false;
    if (!is_any_against(r)) /* nearly always */
        return;
    struct halves h = halves_of(r, serving);
    r->rejected = (struct node_replica_set){0};
    uint64_t model = node_router_reject_model(r, request);
    for (unsigned i = 0; i < r->replica_count; i++) {
        if (!node_replica_set_has(&h.against, i))
            continue;
        unsigned place = place_of(r, &h, i);
        bool beyond = place >= h.all / 2;
        if ((beyond && is_its_share(r, &h, place, request)) ||
            !node_reject_avoids(&r->replicas[i].reject, request->kind, model,
                                request->again && !beyond, now_ms))
            continue;
        node_replica_set_add(&r->rejected, i);
        r->rejected_any = true;
    }
}

static bool is_within(const struct node_router *r, unsigned server, struct slice model)
{
    struct node_replica_set serving;
    node_models_serving(r->models, model, &serving);
    struct halves h = halves_of(r, &serving);
    return place_of(r, &h, server) < h.all / 2;
}

/* True if the replica is in the avoided half for each model known to be served there. */
bool node_router_reject_within(const struct node_router *r, unsigned server)
{
    struct slice model = slice_of("", 0); /* without a known model: all replicas */
    unsigned at = 0;
    (void)node_models_next(r->models, server, &at, &model);
    do {
        if (!is_within(r, server, model))
            return false;
    } while (node_models_next(r->models, server, &at, &model));
    return true;
}

bool node_router_reject_is_avoided(const struct node_router *r, unsigned server)
{
    return node_reject_kinds(&r->replicas[server].reject) != 0 &&
           node_router_reject_within(r, server);
}

void node_router_model_tried(struct node_router *r, unsigned replica, bool accepted)
{
    struct node_reject *j = of(r, replica);
    j->contradicted += accepted;
    j->confirmed += !accepted;
}

/* Adds to the standing that the replica denied listed models, unless the standing already has a
 * reason that concerns all models. */
static void add_denials(const struct node_router *r, unsigned server, uint64_t now_ms,
                        struct node_standing *standing)
{
    bool weightier = standing->why != NODE_STANDING_WELL && standing->why < NODE_STANDING_FULL;
    struct node_denials denials = node_models_denials(r->models, server);
    if (weightier || denials.held == 0)
        return;
    *standing = (struct node_standing){.why = NODE_STANDING_REJECTS,
                                       .status = 404,
                                       .denied = denials.held,
                                       .avoided = denials.until_ms > now_ms,
                                       .until_ms = denials.until_ms};
}

unsigned node_router_against(const struct node_router *r, unsigned replica, uint64_t now_ms)
{
    const struct node_replica *rank = &r->replicas[replica], *k = &r->replicas[rank->rank.server];
    unsigned out =
        node_replica_against(k, now_ms) | (unsigned)node_router_reject_avoids(r, rank->rank.server)
                                              << NODE_STANDING_REJECTS;
    return rank == k ? out : out | (node_replica_against(rank, now_ms) & NODE_STANDS_STILL);
}

/* The standing of the process, or of the rank if the rank itself is drained or stalled. */
struct node_standing node_router_replica_standing(const struct node_router *r, unsigned replica,
                                                  uint64_t now_ms)
{
    const struct node_replica *k = &r->replicas[replica];
    struct node_standing standing = node_replica_standing(&r->replicas[k->rank.server], now_ms);
    if (standing.why == NODE_STANDING_REJECTS && !node_router_reject_within(r, k->rank.server)) {
        standing.avoided = false;
        standing.beyond = true;
        standing.until_ms = 0;
    }
    add_denials(r, k->rank.server, now_ms, &standing);
    if (standing.why == NODE_STANDING_WELL && k->rank.is_one && !k->draining &&
        (node_replica_against(k, now_ms) & NODE_STANDS_STILL) != 0)
        standing = node_replica_standing(k, now_ms);
    if (standing.why == NODE_STANDING_WELL && k->draining)
        standing.why = NODE_STANDING_DRAINED;
    return standing;
}
