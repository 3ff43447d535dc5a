/* The replica table: the replicas in use, and probe results. The registry (crdt/registry.h) owns
 * names, incarnations and wishes. A slot there and an index here are the same number. */
#include "base/check.h"
#include "base/err.h"
#include "node/route/shade.h"

/* --- following the registry ----------------------------------------------------------------- */

void node_router_cache_renewed(struct node_router *r, unsigned replica, uint32_t rkey)
{
    node_adapters_forget(r->adapters, replica);
    node_replica_cache_renewed(&r->replicas[replica], rkey);
    node_router_shadow_cache_renewed(r, replica);
    node_renderings_forget(r->renderings, replica);
}

/* Resets the slot to an absent replica with this name, or without a name. */
static void slot_set(struct node_router *r, unsigned slot, struct slice name)
{
    uint64_t hash = name.len > 0 ? hash64(&r->common->secret, name.at, name.len) : 0;
    node_replica_anew(&r->replicas[slot], slot, name, hash, &r->config.prior);
    r->slots[slot] = (struct node_slot){0};
    node_router_shadow_slot_set(r, slot);
}

/* Frees the slot, which becomes an absent replica in loops over the table. */
static void slot_clear(struct node_router *r, unsigned slot)
{
    slot_set(r, slot, slice_of("", 0));
    node_renderings_forget(r->renderings, slot);
}

/* Applies the label `model`, after a change of the label or after the replica's list of models was
 * forgotten. */
static void model_label_take(struct node_router *r, unsigned replica)
{
    struct node_replica *k = node_router_replica_at(r, replica);
    struct slice model = k->said.model;
    bool listed = node_models_listed(r->models, replica);
    if (!listed)
        node_fleet_join(k, &r->common->secret, model);
    /* If the table is full, the replica counts as a replica without a list of models. */
    if (model.len == 0)
        node_models_unlist(r->models, replica);
    else if (node_models_listed(r->models, replica))
        DISCARD(node_models_also(r->models, replica, model));
    else
        DISCARD(node_models_set(r->models, replica, &model, 1));
}

void node_router_labels(struct node_router *r, unsigned replica, const struct node_labels *labels)
{
    struct node_replica *k = node_router_replica_at(r, replica);
    if (labels->engine != NODE_ENGINE_AUTO && labels->engine != k->engine)
        node_router_replica_engine_set(r, replica, labels->engine);
    bool other = node_replica_say(k, labels);
    node_router_contexts_follow(r);
    node_models_on_demand(r->models, replica, labels->adapters_on_demand);
    if (other)
        model_label_take(r, replica);
}

/* Operators take precedence over sources: a replica added by operators stays in use after the
 * source drops it. */
static void draining_follow(struct node_replica *k, const struct crdt_replica *row, bool vanishing)
{
    node_replica_drain(k, vanishing, row && row->draining, row && row->wish == CRDT_WISH_ADDED);
}

/* Applies labels and drain from this router's sources, for a name that had another slot or none. */
static void told_take(struct node_router *r, unsigned slot)
{
    struct node_replica *k = &r->replicas[slot];
    const struct crdt_replica *row = node_router_row(r, slot);
    struct node_labels labels;
    bool draining;
    if (r->sources == NULL ||
        !discover_told(r->sources, node_router_source_name(r, node_replica_name(k)), &labels,
                       &draining))
        return;
    node_router_labels(r, slot, &labels);
    draining_follow(k, row, draining && row && row->ours);
}

/* Takes the slot for a name. No other name gets the slot before slot_leave(). */
static void slot_take(struct node_router *r, unsigned slot, const struct crdt_replica *row)
{
    slot_set(r, slot, slice_of(row->name, row->name_len));
    node_replica_cache_renewed(&r->replicas[slot], row->rkey);
    r->slots[slot].rkey_scraped = r->slots[slot].rkey_probed = row->rkey;
    r->fleet_stale = true; /* a new replica is believed to be like the others */
    told_take(r, slot);
    crdt_state_hold(r->crdt, slot, true);
}

/* Clears everything tied to the slot, and frees the slot for another name. */
static void slot_leave(struct node_router *r, unsigned slot)
{
    node_models_forget(r->models, slot);
    node_answered_forget(r->answered, slot);
    node_adapters_leave(r->adapters, slot);
    node_replica_set_remove(&r->touched, slot);
    node_replica_set_remove(&r->lined, slot);
    node_replica_set_remove(&r->backing_off, slot);
    slot_clear(r, slot);
    crdt_state_hold(r->crdt, slot, false);
}

static void slot_follow(struct node_router *r, unsigned slot)
{
    const struct crdt_registry *registry = crdt_state_registry(r->crdt);
    struct node_replica *k = &r->replicas[slot];
    if (!crdt_registry_has(registry, slot))
        return;
    const struct crdt_replica *row = crdt_registry_at(registry, slot);
    if (k->name_len == 0)
        slot_take(r, slot, row);
    if (k->rkey != row->rkey)
        node_router_cache_renewed(r, slot, row->rkey);
    draining_follow(k, row, k->vanishing);
}

void node_router_registry_take(struct node_router *r)
{
    const struct crdt_registry *registry = crdt_state_registry(r->crdt);
    uint64_t version = crdt_registry_version(registry);
    if (version == r->registry_taken)
        return;
    r->registry_taken = version;
    CHECK(crdt_registry_count(registry) <= NODE_REPLICAS_MAX);
    while (r->replica_count < crdt_registry_count(registry))
        slot_clear(r, r->replica_count++);
    for (unsigned slot = 0; slot < r->replica_count; slot++)
        slot_follow(r, slot);
    node_router_ranks_follow(r);
}

/* True if the replica's own row puts the replica in use, without regard to the row of the
 * address. */
static bool is_named(const struct node_router *r, unsigned slot)
{
    enum crdt_wish wish = node_router_wish(r, slot);
    bool named = node_router_is_ours(r, slot) || node_naming_in_use(&r->slots[slot].naming);
    return node_router_may_use(r, slot) &&
           (wish == CRDT_WISH_ADDED || (wish != CRDT_WISH_REMOVED && named));
}

/* True if the replica is in use. A rank is in use only if the address is. */
static bool is_in_use(const struct node_router *r, unsigned slot)
{
    const struct node_replica *k = &r->replicas[slot];
    if (k->rank.is_one && (k->rank.server == slot || !is_named(r, k->rank.server)))
        return false;
    return is_named(r, slot);
}

void node_router_presence_update(struct node_router *r)
{
    node_router_registry_take(r);
    for (unsigned slot = 0; slot < r->replica_count; slot++) {
        struct node_replica *k = &r->replicas[slot];
        bool absent = !is_in_use(r, slot);
        if (absent == k->absent)
            continue;
        node_replica_present(k, !absent, &r->config.prior);
        if (!absent)
            node_router_recalled_take(r, slot);
        if (absent) {
            r->slots[slot].guessed_ms = 0;
            r->fleet_stale = true;
            r->learned_ms = 0; /* reports at once that the replica has no figures */
        }
        node_router_touch(r, slot);
        if (r->watch)
            r->watch(r->watch_context, slot, !absent);
    }
    node_ranks_count(r->replicas, r->replica_count);
    node_router_ranks_inherit(r);
}

void node_router_presence_check(const struct node_router *r)
{
    for (unsigned slot = 0; slot < r->replica_count; slot++) {
        const struct node_replica *k = &r->replicas[slot];
        const struct node_naming *n = &r->slots[slot].naming;
        CHECK(k->name_len > 0 || (k->absent && n->state == NODE_NAMING_NONE));
        CHECK((n->router == 0) == (n->state == NODE_NAMING_NONE));
    }
}

/* A forgotten name keeps the slot while a request or a connection is at the replica, or would be in
 * shadow mode. */
void node_router_slots_leave(struct node_router *r)
{
    for (unsigned slot = 0; slot < r->replica_count; slot++) {
        const struct node_replica *k = &r->replicas[slot];
        bool forgotten = k->name_len > 0 && node_router_row(r, slot) == NULL;
        bool booked = node_replica_own_requests(k) > 0 || node_router_shadow_is_booked(r, slot);
        if (forgotten && k->absent && !booked &&
            (!r->watch_forgotten || r->watch_forgotten(r->watch_context, slot)))
            slot_leave(r, slot);
    }
}

void node_router_saw(struct node_router *r, unsigned replica)
{
    const struct node_replica *process = node_router_process_at(r, replica);
    if (node_router_row(r, replica) == NULL || process->health == NODE_HEALTH_UNKNOWN)
        return;
    bool up = process->health == NODE_HEALTH_UP || process->asleep;
    crdt_state_seen(r->crdt, replica, up);
}

void node_router_watch(struct node_router *r,
                       void (*replica)(void *context, unsigned replica, bool present),
                       bool (*forgotten)(void *context, unsigned replica), void *context)
{
    r->watch = replica;
    r->watch_forgotten = forgotten;
    r->watch_context = context;
}

/* --- adding and removing -------------------------------------------------------------------- */

static bool name_fits(struct slice name)
{
    return name.len > 0 && name.len <= NODE_NAME_MAX && name.len <= CRDT_NAME_MAX;
}

/* Returns the slot of a name that was named just now; ERR_FULL: the name waits for a slot. */
static int slot_named(struct node_router *r, int slot)
{
    node_router_registry_take(r);
    return slot == ERR_AGAIN ? ERR_FULL : slot;
}

int node_router_name(struct node_router *r, struct slice name, enum node_engine engine)
{
    char shared[NODE_NAME_MAX];
    if (!name_fits(name))
        return ERR_RANGE;
    name = node_router_shared_name(r, name, shared);
    int slot = slot_named(r, crdt_state_name(r->crdt, name));
    if (slot < 0)
        return slot;
    (void)node_replica_engine_hear(&r->replicas[slot], engine);
    node_router_vanish(r, (unsigned)slot, false);
    node_router_presence_update(r);
    return slot;
}

void node_router_vanish(struct node_router *r, unsigned replica, bool vanishing)
{
    struct node_replica *k = node_router_replica_at(r, replica);
    const struct crdt_replica *row = node_router_row(r, replica);
    draining_follow(k, row, vanishing && row && row->ours);
    node_router_touch(r, replica);
}

void node_router_unname(struct node_router *r, struct slice name)
{
    char shared[NODE_NAME_MAX];
    if (!name_fits(name))
        return;
    name = node_router_shared_name(r, name, shared);
    crdt_state_unname(r->crdt, name);
    int slot = node_router_replica_find(r, name);
    if (slot < 0)
        return;
    node_router_vanish(r, (unsigned)slot, false);
    node_router_presence_update(r);
}

bool node_router_replica_removed(const struct node_router *r, struct slice name)
{
    int slot = node_router_replica_find(r, name);
    return slot >= 0 && node_router_wish(r, (unsigned)slot) == CRDT_WISH_REMOVED;
}

bool node_router_replica_listed(const struct node_router *r, struct slice name)
{
    return crdt_registry_place_of(crdt_state_registry(r->crdt), name) >= 0;
}

bool node_router_replica_unnamed(const struct node_router *r, unsigned replica)
{
    const struct node_replica *k = node_router_replica_at(r, replica);
    return !k->absent && !node_router_is_ours(r, replica) &&
           node_naming_held(&r->slots[replica].naming) &&
           node_router_wish(r, replica) != CRDT_WISH_ADDED;
}

static int remove_replica(struct node_router *r, struct slice name)
{
    int news = crdt_state_remove(r->crdt, name);
    if (news <= 0)
        return news < 0 ? news : ERR_EXISTS;
    node_router_presence_update(r);
    int slot = node_router_replica_find(r, name);
    return slot >= 0 ? slot : 0; /* a name that waited for a slot */
}

int node_router_replica_wish(struct node_router *r, struct slice name, enum node_replica_wish wish,
                             enum node_engine engine)
{
    char shared[NODE_NAME_MAX];
    if (!name_fits(name))
        return ERR_RANGE;
    /* A listed name without a router's name may be from another router, before the two routers
     * met. */
    struct slice here = node_router_shared_name(r, name, shared);
    if (wish == NODE_REPLICA_ADD || node_router_replica_listed(r, here))
        name = here;
    if (wish == NODE_REPLICA_REMOVE)
        return remove_replica(r, name);
    int known = node_router_replica_find(r, name);
    if (known >= 0 && node_router_wish(r, (unsigned)known) == CRDT_WISH_ADDED)
        return ERR_EXISTS;
    int slot = crdt_state_add(r->crdt, name);
    if (slot < 0)
        return slot;
    node_router_registry_take(r);
    if (known < 0)
        node_router_replica_engine_set(r, (unsigned)slot, engine);
    node_router_presence_update(r);
    return slot;
}

bool node_router_replica_present(const struct node_router *r, unsigned replica)
{
    return !node_router_replica_at(r, replica)->absent;
}

void node_router_replica_drain(struct node_router *r, unsigned replica, bool draining)
{
    if (!node_router_row(r, replica))
        return;
    DISCARD(crdt_state_drain(r->crdt, replica, draining)); /* no change is fine */
    node_router_registry_take(r);
}

/* --- routers of other machines -------------------------------------------------------------- */

/* Renames a replica that got a name while all routers seemed to be on one machine: adds this
 * router's name, and keeps the labels. The next tick renames the ranks (ranks.c). */
static void name_anew(struct node_router *r, unsigned slot)
{
    char text[NODE_NAME_MAX], old[NODE_NAME_MAX + 1];
    struct node_replica *k = &r->replicas[slot];
    const struct crdt_replica *row = node_router_row(r, slot);
    bool asked = row && row->asked, ours = row && row->ours;
    CHECK(slice_to_cstr(node_replica_name(k), old, sizeof old));
    struct slice name = slice_of_cstr(old);
    struct slice shared = node_router_shared_name(r, name, text);
    if (!row || slice_equal(shared, name) || (!ours && !asked))
        return;
    if (asked) {
        DISCARD(crdt_state_remove(r->crdt, name));
        DISCARD(crdt_state_add(r->crdt, shared)); /* the name may wait */
    }
    crdt_state_unname(r->crdt, name);
    if (ours)
        DISCARD(node_router_name(r, shared, k->engine)); /* on failure the source offers the name
                                                          * again */
}

void node_router_apart_follow(struct node_router *r)
{
    if (r->apart || !r->common->replicated ||
        !(r->config.apart || (r->names && node_replication_apart(r->names))))
        return;
    r->apart = true;
    for (unsigned slot = 0; slot < r->replica_count; slot++)
        name_anew(r, slot);
    node_router_presence_update(r); /* others' loopback replicas are no longer used */
}

/* --- identity -------------------------------------------------------------------------------- */

unsigned node_router_replica_count(const struct node_router *r)
{
    return r->replica_count;
}

void node_router_replica_packs_set(struct node_router *r, unsigned replica)
{
    node_router_replica_at(r, replica)->server.packs = true;
}

enum node_health node_router_replica_health(const struct node_router *r, unsigned replica)
{
    return node_replica_health(node_router_process_at(r, replica));
}

bool node_router_replica_backing_off(const struct node_router *r, unsigned replica, uint64_t now_ms)
{
    const struct node_replica *k = node_router_process_at(r, replica);
    return node_replica_backing_off(k, now_ms) || node_router_reject_is_avoided(r, k->rank.server);
}

enum node_engine node_router_replica_engine(const struct node_router *r, unsigned replica)
{
    return node_router_process_at(r, replica)->engine;
}

void node_router_replica_engine_set(struct node_router *r, unsigned replica, enum node_engine e)
{
    node_router_replica_at(r, replica)->engine = e;
    node_router_touch(r, replica);
}

bool node_router_engine_found(struct node_router *r, unsigned replica, enum node_engine e)
{
    bool news = node_replica_engine_found(node_router_replica_at(r, replica), e);
    if (news)
        node_router_touch(r, replica);
    return news;
}

struct node_models *node_router_model_table(const struct node_router *r)
{
    return r->models;
}

int node_router_models(struct node_router *r, unsigned replica, const struct slice *ids,
                       unsigned count)
{
    struct node_replica *k = node_router_replica_at(r, replica);
    int err = node_models_set(r->models, replica, ids, count);
    /* Engines list the base first, then the adapters. */
    node_fleet_join(k, &r->common->secret, count > 0 ? ids[0] : SLICE(""));
    r->fleet_stale = true;
    if (k->said.model.len > 0 && err == ERR_OK)
        err = node_models_also(r->models, replica, k->said.model);
    node_models_unlisted_let_go(r->models, replica);
    return err;
}

void node_router_models_asked(struct node_router *r, unsigned replica, uint64_t asked_ms)
{
    CHECK(replica < r->replica_count);
    node_models_listed_anew(r->models, replica, asked_ms);
    node_router_replica_at(r, replica)->server.list_status = 0;
}

bool node_router_models_none(struct node_router *r, unsigned replica, unsigned status)
{
    struct node_replica *k = node_router_replica_at(r, replica);
    bool news = k->server.list_status == 0;
    k->server.list_status = (uint16_t)status;
    if (node_models_listed(r->models, replica) || k->server.models_stale)
        node_models_unknow(r->models, replica);
    (void)node_router_context_listed(r, replica, 0);
    if (k->said.model.len > 0)
        model_label_take(r, replica);
    return news && !node_models_listed(r->models, replica);
}

void node_router_models_stale(struct node_router *r, unsigned replica, bool stale)
{
    node_router_process_at(r, replica)->server.models_stale = stale;
}

void node_router_probe_answered(struct node_router *r, unsigned replica, enum node_probe probe,
                                unsigned status)
{
    struct node_replica *k = node_router_replica_at(r, replica);
    bool refused = status == 401 || status == 403;
    if (refused)
        k->server.probes_refused |= 1u << probe;
    else
        k->server.probes_refused &= ~(1u << probe);
    if (refused && probe == NODE_PROBE_MODELS) {
        k->server.list_status = 0;
        node_models_unlist(r->models, replica);
        if (k->said.model.len > 0)
            model_label_take(r, replica);
    }
}

void node_router_model_served(struct node_router *r, unsigned replica, struct slice model)
{
    if (node_router_replica_engine(r, replica) != NODE_ENGINE_SGLANG)
        node_models_learn(r->models, node_router_server(r, replica), model, false);
}
