/* The replica table: which replicas are in use, and what probes say of them. Its names,
 * incarnations and wishes are the registry's (crdt/registry.h); slots and indexes are the same
 * numbers. */
#include <math.h>

#include "base/check.h"
#include "base/err.h"
#include "node/route/router_internal.h"

/* Start times nearer than this are the same one: they are computed from a clock that may be
 * adjusted (node/replica/replica.c). */
static const uint64_t started_grain_ms = 2000;

struct node_replica *node_router_replica_at(const struct node_router *r, unsigned replica)
{
    CHECK(replica < r->replica_count);
    return &r->replicas[replica];
}

/* The cache is empty. What was learned of its speed stays: it is the same machine. */
static void forget(struct node_replica *k, uint32_t rkey)
{
    k->rkey = rkey;
    k->belief_held = false;
    node_belief_init(&k->belief);
}

void node_router_registry_take(struct node_router *r)
{
    const struct crdt_registry *registry = crdt_state_registry(r->crdt);
    uint64_t version = crdt_registry_version(registry);
    unsigned count = crdt_registry_count(registry);
    if (version == r->registry_taken && count == r->replica_count)
        return;
    r->registry_taken = version;
    CHECK(count <= NODE_REPLICAS_MAX);
    struct node_replica_config prior = node_router_prior(r);
    for (unsigned slot = 0; slot < count; slot++) {
        const struct crdt_replica *row = crdt_registry_at(registry, slot);
        struct node_replica *k = &r->replicas[slot];
        if (slot == r->replica_count) {
            struct slice name = slice_of(row->name, row->name_len);
            node_replica_init(k, name, NODE_ENGINE_AUTO,
                              hash64(&r->common->secret, name.at, name.len), &prior);
            k->absent = k->announced_absent = true;
            k->rkey = k->rkey_scraped = k->rkey_probed = row->rkey;
            r->replica_count++;
            r->fleet_stale = true; /* it is believed to be like the others */
        }
        if (k->rkey != row->rkey)
            forget(k, row->rkey);
        k->draining = row->draining || k->vanishing;
    }
}

void node_router_presence_update(struct node_router *r)
{
    const struct crdt_registry *registry = crdt_state_registry(r->crdt);
    for (unsigned slot = 0; slot < r->replica_count; slot++) {
        struct node_replica *k = &r->replicas[slot];
        enum crdt_wish wish = crdt_registry_at(registry, slot)->wish;
        k->absent =
            wish == CRDT_WISH_REMOVED || (wish != CRDT_WISH_ADDED && !k->configured && !k->named);
        if (k->absent == k->announced_absent)
            continue;
        k->announced_absent = k->absent;
        if (k->absent) { /* if it comes back, it is as if it were new */
            k->health = NODE_HEALTH_UNKNOWN;
            k->probe_failures = 0;
            k->probes_refused = 0;
        }
        node_router_touch(r, slot);
        if (r->watch)
            r->watch(r->watch_context, slot, !k->absent);
    }
}

void node_router_watch(struct node_router *r,
                       void (*replica)(void *context, unsigned replica, bool present),
                       void *context)
{
    r->watch = replica;
    r->watch_context = context;
}

/* --- adding and removing -------------------------------------------------------------------- */

static bool name_fits(struct slice name)
{
    return name.len > 0 && name.len <= NODE_NAME_MAX && name.len <= CRDT_NAME_MAX;
}

static int slot_of(struct node_router *r, struct slice name)
{
    int slot = crdt_state_replica(r->crdt, name);
    if (slot >= 0)
        node_router_registry_take(r);
    return slot;
}

int node_router_replica_add(struct node_router *r, struct slice name, enum node_engine engine)
{
    if (!name_fits(name))
        return ERR_RANGE;
    int slot = slot_of(r, name);
    if (slot < 0)
        return slot;
    struct node_replica *k = &r->replicas[slot];
    if (k->configured)
        return ERR_EXISTS;
    k->configured = true;
    k->engine = engine;
    /* The caller knows that it is there: the watcher need not say so. */
    k->announced_absent = false;
    node_router_presence_update(r);
    node_router_touch(r, (unsigned)slot);
    return slot;
}

int node_router_name(struct node_router *r, struct slice name, enum node_engine engine)
{
    if (!name_fits(name))
        return ERR_RANGE;
    int slot = slot_of(r, name);
    if (slot < 0)
        return slot;
    struct node_replica *k = &r->replicas[slot];
    k->configured = true;
    if (k->engine == NODE_ENGINE_AUTO)
        k->engine = engine;
    node_router_vanish(r, (unsigned)slot, false);
    node_router_presence_update(r);
    return slot;
}

void node_router_vanish(struct node_router *r, unsigned replica, bool vanishing)
{
    struct node_replica *k = node_router_replica_at(r, replica);
    const struct crdt_replica *row = crdt_registry_at(crdt_state_registry(r->crdt), replica);
    k->vanishing = vanishing && k->configured;
    k->draining = row->draining || k->vanishing;
    node_router_touch(r, replica);
}

void node_router_unname(struct node_router *r, unsigned replica)
{
    node_router_replica_at(r, replica)->configured = false;
    node_router_vanish(r, replica, false);
    node_router_presence_update(r);
}

bool node_router_replica_busy(const struct node_router *r, unsigned replica)
{
    return node_router_replica_at(r, replica)->load.requests > 0;
}

int node_router_replica_find(const struct node_router *r, struct slice name)
{
    return name_fits(name) ? crdt_registry_by_name(crdt_state_registry(r->crdt), name) : -1;
}

int node_router_replica_wish(struct node_router *r, struct slice name, enum node_replica_wish wish,
                             enum node_engine engine)
{
    static const enum crdt_wish wishes[] = {
        [NODE_REPLICA_ADD] = CRDT_WISH_ADDED,
        [NODE_REPLICA_REMOVE] = CRDT_WISH_REMOVED,
    };
    if (!name_fits(name))
        return ERR_RANGE;
    int slot = node_router_replica_find(r, name);
    bool is_new = slot < 0;
    if (is_new && wish != NODE_REPLICA_ADD)
        return ERR_NOT_FOUND;
    if (is_new)
        slot = slot_of(r, name);
    if (slot < 0)
        return slot;
    const struct crdt_replica *row = crdt_registry_at(crdt_state_registry(r->crdt), (unsigned)slot);
    if (row->wish == wishes[wish])
        return ERR_EXISTS;
    /* A replica that is added is to be used. */
    bool draining = wish == NODE_REPLICA_ADD ? false : row->draining;
    int err = crdt_state_wish(r->crdt, (unsigned)slot, wishes[wish], draining);
    if (err < 0)
        return err;
    if (is_new)
        r->replicas[slot].engine = engine;
    node_router_registry_take(r);
    node_router_presence_update(r);
    return slot;
}

bool node_router_replica_present(const struct node_router *r, unsigned replica)
{
    return !node_router_replica_at(r, replica)->absent;
}

void node_router_replica_drain(struct node_router *r, unsigned replica, bool draining)
{
    struct node_replica *k = node_router_replica_at(r, replica);
    const struct crdt_replica *row = crdt_registry_at(crdt_state_registry(r->crdt), replica);
    if (row->draining != draining)
        CHECK(crdt_state_wish(r->crdt, replica, row->wish, draining) >= 0);
    k->draining = draining || k->vanishing;
    node_router_registry_take(r);
}

/* --- what it is ----------------------------------------------------------------------------- */

unsigned node_router_replica_count(const struct node_router *r)
{
    return r->replica_count;
}

struct slice node_router_replica_name(const struct node_router *r, unsigned replica)
{
    return node_replica_name(node_router_replica_at(r, replica));
}

enum node_health node_router_replica_health(const struct node_router *r, unsigned replica)
{
    return node_replica_health(node_router_replica_at(r, replica));
}

bool node_router_replica_backing_off(const struct node_router *r, unsigned replica, uint64_t now_ms)
{
    return node_replica_backing_off(node_router_replica_at(r, replica), now_ms);
}

enum node_engine node_router_replica_engine(const struct node_router *r, unsigned replica)
{
    return node_router_replica_at(r, replica)->engine;
}

void node_router_replica_engine_set(struct node_router *r, unsigned replica, enum node_engine e)
{
    node_router_replica_at(r, replica)->engine = e;
    node_router_touch(r, replica);
}

int node_router_models(struct node_router *r, unsigned replica, const struct slice *ids,
                       unsigned count)
{
    const struct node_replica *k = node_router_replica_at(r, replica);
    int err = node_models_set(r->models, replica, ids, count);
    if (k->model_len > 0 && err == ERR_OK)
        err = node_models_also(r->models, replica, slice_of(k->model, k->model_len));
    return err;
}

void node_router_model_label_take(struct node_router *r, unsigned replica)
{
    const struct node_replica *k = node_router_replica_at(r, replica);
    struct slice model = slice_of(k->model, k->model_len);
    /* Without room in the table it counts as one that has not listed its models. */
    if (model.len == 0)
        node_models_unlist(r->models, replica);
    else if (node_models_listed(r->models, replica))
        DISCARD(node_models_also(r->models, replica, model));
    else
        DISCARD(node_models_set(r->models, replica, &model, 1));
}

bool node_router_models_listed(const struct node_router *r, unsigned replica)
{
    CHECK(replica < r->replica_count);
    return node_models_listed(r->models, replica);
}

void node_router_probe_answered(struct node_router *r, unsigned replica, enum node_probe probe,
                                unsigned status)
{
    struct node_replica *k = node_router_replica_at(r, replica);
    bool refused = status == 401 || status == 403;
    if (refused)
        k->probes_refused |= 1u << probe;
    else
        k->probes_refused &= ~(1u << probe);
    if (refused && probe == NODE_PROBE_MODELS) {
        node_models_unlist(r->models, replica);
        if (k->model_len > 0)
            node_router_model_label_take(r, replica);
    }
}

unsigned node_router_probes_refused(const struct node_router *r, unsigned replica)
{
    return node_router_replica_at(r, replica)->probes_refused;
}

void node_router_model_served(struct node_router *r, unsigned replica, struct slice model)
{
    if (node_router_replica_engine(r, replica) != NODE_ENGINE_SGLANG)
        node_models_learn(r->models, replica, model);
}

void node_router_model_listed(struct node_router *r, unsigned replica, struct slice model)
{
    CHECK(replica < r->replica_count);
    node_models_learn_listed(r->models, replica, model);
}

void node_router_model_denied(struct node_router *r, unsigned replica, struct slice model,
                              uint64_t now_ms)
{
    CHECK(replica < r->replica_count);
    node_models_deny(r->models, replica, model, now_ms);
}

/* --- lost caches ---------------------------------------------------------------------------- */

static void raise_incarnation(struct node_router *r, unsigned replica, uint64_t started_ms)
{
    struct node_replica *k = &r->replicas[replica];
    (void)crdt_state_restarted(r->crdt, replica, started_ms);
    forget(k, crdt_registry_at(crdt_state_registry(r->crdt), replica)->rkey);
}

/* The start time of a process, if the engine tells it. Routers that notice a restart at their own
 * times raise the incarnation to the same value. */
static uint64_t started_ms(const struct node_replica *k)
{
    double s = k->scrape.start_time_s;
    return s > 0 && s < 1e12 ? (uint64_t)llround(s * 1000) : 0;
}

void node_router_probed(struct node_router *r, unsigned replica, bool ok, bool refused,
                        uint64_t now_ms)
{
    node_router_clock(r, now_ms);
    struct node_replica *k = node_router_replica_at(r, replica);
    enum node_health before = k->health;
    bool gone = node_replica_probed(k, ok, refused, now_ms);
    if (k->health != before)
        node_router_touch(r, replica);
    /* If the incarnation has risen since the last good probe, another router has noticed already.
     * Among routers an engine that tells its start time is asked for it when it is back. */
    bool told_later = r->common->replicated && started_ms(k) > 0;
    if (gone && k->rkey_probed == k->rkey && !told_later)
        raise_incarnation(r, replica, 0);
    if (ok || gone)
        k->rkey_probed = k->rkey;
}

void node_router_found_router(struct node_router *r, unsigned replica, struct slice who,
                              uint64_t now_ms)
{
    node_router_clock(r, now_ms);
    struct node_replica *k = node_router_replica_at(r, replica);
    node_replica_found_router(k, who);
    node_router_touch(r, replica);
}

bool node_router_scraped(struct node_router *r, unsigned replica, const struct node_scrape *s,
                         uint64_t now_ms)
{
    node_router_clock(r, now_ms);
    struct node_replica *k = node_router_replica_at(r, replica);
    node_router_others_take(r, replica);
    bool lost = node_replica_scraped(k, s, (double)r->config.cache_tokens, now_ms);
    bool noticed = k->rkey_scraped != k->rkey; /* by another router, since the last scrape */
    uint64_t started = r->common->replicated ? started_ms(k) : 0;
    uint64_t known = crdt_registry_at(crdt_state_registry(r->crdt), replica)->incarnation.started;
    if (started > known + started_grain_ms)
        raise_incarnation(r, replica, started);
    else if (lost && !noticed)
        raise_incarnation(r, replica, 0);
    k->rkey_scraped = k->rkey;
    node_router_touch(r, replica);
    return lost;
}
