/* Rejections of replicas (node/replica/reject.h): what answers of 4xx and of others to the same
 * request teach, and which replicas are avoided for it. */
#include "base/check.h"
#include "node/replica/standing.h"
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
    const struct node_reject *j = &r->replicas[server].reject;
    if ((j->about == 0 ? j->kinds : 0) != j->reported)
        node_router_touch(r, server);
}

static bool is_proven(const struct node_router *r, unsigned server, uint8_t kind)
{
    const struct node_replica *k = &r->replicas[server];
    return k->server == server && node_replica_usable(k, NODE_HEALTH_UP) &&
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

double node_router_reject_own(const struct node_router *r, const struct node_rejection *x)
{
    struct node_reject_prior prior = prior_of(r, x);
    return node_reject_own(&node_router_process_at(r, x->replica)->reject, x, &prior);
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

bool node_router_rejects(const struct node_router *r, const struct node_rejection *x)
{
    return node_reject_holds_for(&node_router_process_at(r, x->replica)->reject, x->kind, x->model);
}

bool node_router_rejects_any(const struct node_router *r, unsigned replica)
{
    return node_reject_any(&node_router_process_at(r, replica)->reject);
}

void node_router_reject_passed(struct node_router *r, const struct node_rejection *x)
{
    struct node_reject_prior prior = prior_of(r, x);
    struct node_reject *j = of(r, x->replica);
    double own = node_reject_own(j, x, &prior);
    node_reject_passed(j, x, &prior);
    node_reject_client_passed(&r->clients, x->from, x->status, own);
}

void node_router_reject_doubt(struct node_router *r, const struct node_rejection *x, bool open)
{
    node_reject_doubt(of(r, x->replica), x, open);
    note(r, x->replica);
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
    note(r, x->replica);
    return news;
}

void node_router_reject_confirmed(struct node_router *r, const struct node_rejection *x,
                                  unsigned by)
{
    node_reject_confirmed(of(r, x->replica));
    node_reject_agreed(of(r, by));
    node_reject_tried(&r->clients, false);
    node_reject_client_confirmed(&r->clients, x->from, x->status);
}

bool node_router_accepted(struct node_router *r, unsigned replica, uint8_t kind, uint64_t model,
                          struct node_reject_from from, uint64_t sent_ms)
{
    node_reject_client_accepted(&r->clients, from);
    struct node_reject *j = of(r, replica);
    bool any = node_reject_any(j);
    bool over = node_reject_accepted(j, kind, model, sent_ms);
    if (any)
        note(r, replica);
    return over;
}

/* --- at most half ------------------------------------------------------------------------------
 *
 * Of the replicas of a model that reject some kind of request, whatever kind, the first half of all
 * by the order below is avoided, each for its kinds. The others get their fair share of requests
 * and no more, however empty the queue of one is that answers at once. So each request reaches one
 * of these at most once, and is tried next where it is accepted. The order is the same at each
 * router, so all that have heard the same avoid the same. */

struct halves {
    struct node_replica_set against; /* something speaks against these, */
    unsigned count;                  /* and how many these are, */
    unsigned all;                    /* of so many */
};

/* Of requests of that kind and for that model. */
struct matter {
    uint8_t kind;
    uint64_t model;
};

/* `matter`: in doubt for such a request counts; NULL: only what is held. */
static struct halves halves_of(const struct node_router *r, const struct node_replica_set *serving,
                               const struct matter *matter)
{
    struct halves out = {.count = 0};
    for (unsigned i = 0; i < r->replica_count; i++) {
        const struct node_replica *k = &r->replicas[i];
        if (k->server != i || !node_replica_set_has(serving, i) ||
            !node_replica_usable(k, NODE_HEALTH_UP))
            continue;
        out.all++;
        if (!node_replica_set_has(&r->rejecting, i))
            continue;
        bool doubted =
            matter != NULL && node_reject_concerns(&k->reject, matter->kind, matter->model);
        if (!doubted && !node_reject_holds(&k->reject))
            continue;
        node_replica_set_add(&out.against, i);
        out.count++;
    }
    return out;
}

/* Evidence before doubt, then by a hash of the name. */
static bool is_before(const struct node_router *r, unsigned a, unsigned b)
{
    const struct node_replica *x = &r->replicas[a], *y = &r->replicas[b];
    bool holds_x = node_reject_holds(&x->reject), holds_y = node_reject_holds(&y->reject);
    if (holds_x != holds_y)
        return holds_x;
    return x->name_hash != y->name_hash ? x->name_hash < y->name_hash : a < b;
}

static bool is_beyond(const struct node_router *r, const struct halves *h, unsigned slot)
{
    unsigned before = 0;
    if (h->count <= h->all / 2)
        return false;
    for (unsigned i = 0; i < r->replica_count; i++)
        before += node_replica_set_has(&h->against, i) && is_before(r, i, slot);
    return before >= h->all / 2;
}

/* One beyond the half. What was tried elsewhere, or cannot be, goes where it is accepted. */
static bool waits_for_its_share(const struct halves *h, const struct node_reject *j,
                                const struct node_request *request)
{
    return h->count < h->all && (request->attempt > 1 || !request->again || j->passed + 1 < h->all);
}

void node_router_reject_ask(struct node_router *r, const struct node_replica_set *serving,
                            const struct node_request *request, const uint64_t *excluded,
                            uint64_t now_ms)
{
    struct node_replica_set others = {{0}};
    bool any = false;
    if (!request->rejected)
        return;
    for (unsigned i = 0; i < r->replica_count; i++) {
        if (!node_replica_set_has(serving, i) || r->replicas[i].server != i ||
            (excluded != NULL && (excluded[i / 64] >> (i % 64) & 1) != 0))
            continue;
        const struct node_replica *k = &r->replicas[i];
        bool has_room = !node_replica_avoided(k, now_ms) &&
                        !node_replica_is_full(k, r->config.replica_requests_max);
        if (is_proven(r, i, request->kind) && has_room && !node_router_reject_avoids(r, i))
            any = true;
        else
            node_replica_set_add(&others, i);
    }
    if (!r->rejected_any)
        r->rejected = (struct node_replica_set){0};
    for (unsigned word = 0; word < NODE_REPLICA_WORDS && any; word++)
        r->rejected.words[word] |= others.words[word];
    r->rejected_any = r->rejected_any || any;
}

void node_router_reject_find(struct node_router *r, const struct node_replica_set *serving,
                             const struct node_request *request, uint64_t now_ms)
{
    r->rejected_any = r->beyond_any = false;
    if (r->rejecting_count == 0)
        return;
    r->rejected = r->beyond = (struct node_replica_set){0};
    struct matter matter = {request->kind, node_router_reject_model(r, request)};
    struct halves h = halves_of(r, serving, &matter);
    for (unsigned i = 0; i < r->replica_count && h.count > 0; i++) {
        const struct node_reject *j = &r->replicas[i].reject;
        if (!node_replica_set_has(&h.against, i) ||
            !node_reject_concerns(j, matter.kind, matter.model))
            continue;
        bool beyond = is_beyond(r, &h, i);
        if (beyond)
            node_replica_set_add(&r->beyond, i);
        r->beyond_any = r->beyond_any || beyond;
        if (beyond ? !waits_for_its_share(&h, j, request)
                   : !node_reject_avoids(j, matter.kind, matter.model, request->again, now_ms))
            continue;
        node_replica_set_add(&r->rejected, i);
        r->rejected_any = true;
    }
}

void node_router_reject_sent(struct node_router *r, unsigned replica,
                             const struct node_request *request, uint64_t now_ms)
{
    unsigned server = node_router_server(r, replica);
    for (unsigned i = 0; i < r->replica_count && r->beyond_any && request->attempt <= 1; i++) {
        if (i != server && node_replica_set_has(&r->beyond, i))
            node_reject_passed_over(&r->replicas[i].reject);
    }
    if (node_reject_any(&r->replicas[server].reject))
        node_reject_sent(&r->replicas[server].reject, request->kind,
                         node_router_reject_model(r, request), now_ms);
}

/* `before`: who serves the last model, nearly always the same. */
static bool is_within(const struct node_router *r, unsigned server, struct slice model,
                      struct node_replica_set *before)
{
    struct node_replica_set serving;
    node_models_serving(r->models, model, &serving);
    if (memcmp(&serving, before, sizeof serving) == 0)
        return true;
    *before = serving;
    struct halves h = halves_of(r, &serving, NULL);
    return !is_beyond(r, &h, server);
}

/* Whether it is within the half for each model that it is known to serve. */
bool node_router_reject_within(const struct node_router *r, unsigned server)
{
    struct node_replica_set before = {0};
    struct slice model = slice_of("", 0); /* where it serves none that is known: of all */
    unsigned at = 0;
    (void)node_models_next(r->models, server, &at, &model);
    do {
        if (!is_within(r, server, model, &before))
            return false;
    } while (node_models_next(r->models, server, &at, &model));
    return true;
}

bool node_router_reject_is_avoided(const struct node_router *r, unsigned server)
{
    return node_reject_holds(&r->replicas[server].reject) && node_router_reject_within(r, server);
}

bool node_router_denies_listed(const struct node_router *r, unsigned server)
{
    return node_models_denials(r->models, server).held > 0;
}

void node_router_model_tried(struct node_router *r, unsigned replica, bool accepted)
{
    struct node_reject *j = of(r, replica);
    j->contradicted += accepted;
    j->confirmed += !accepted;
}

/* Weightier is all that keeps other models from it, too. */
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

/* Of its process, and what an operator wishes of the rank alone. */
struct node_standing node_router_replica_standing(const struct node_router *r, unsigned replica,
                                                  uint64_t now_ms)
{
    const struct node_replica *k = &r->replicas[replica];
    struct node_standing standing = node_replica_standing(&r->replicas[k->server], now_ms);
    if (standing.why == NODE_STANDING_REJECTS && !node_router_reject_within(r, k->server)) {
        standing.avoided = false;
        standing.beyond = true;
        standing.until_ms = 0;
    }
    add_denials(r, k->server, now_ms, &standing);
    if (standing.why == NODE_STANDING_WELL && k->is_rank && !k->draining)
        standing = node_rank_standing(k, now_ms);
    if (standing.why == NODE_STANDING_WELL && k->draining)
        standing.why = NODE_STANDING_DRAINED;
    return standing;
}

/* --- other routers -------------------------------------------------------------------------- */

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
