/* LoRA adapters: the adapter of a request, the replicas that have it (node/replica/adapters.h), and
 * the use by other routers. A router's load report about a replica includes the last used
 * adapter. */
#include "base/check.h"
#include "base/hash.h"
#include "node/replica/constants.h"
#include "node/route/router_internal.h"

/* The number of an adapter: a hash of the name, with 32 bits as in load reports, never 0. With some
 * thousands of adapters, a rare collision does no harm. */
static uint32_t adapter_named(const struct node_router *r, struct slice name)
{
    return (uint32_t)hash64(&r->common->secret, name.at, name.len) | 1;
}

/* SGLang's "base:adapter" and the separate field for an adapter give the same number. */
uint32_t node_router_adapter_of(struct node_router *r, const struct node_request *request)
{
    if (request->lora.len > 0)
        return adapter_named(r, request->lora);
    struct slice name = request->model;
    if (name.len == 0)
        return 0;
    if (node_models_is_adapter(r->models, name))
        return adapter_named(r, name);
    struct slice base = node_models_base(r->models, name);
    if (base.len > 0)
        return adapter_named(r, slice_skip(name, base.len + 1));
    bool unlisted = !node_models_known(r->models, name) && node_models_any_on_demand(r->models);
    return unlisted ? adapter_named(r, name) : 0;
}

struct seen {
    struct node_router *router;
    const struct crdt_reports *reports;
    unsigned replica;
};

static bool seen_by(void *context, uint64_t router, const struct crdt_load *load,
                    const struct crdt_sight *sight, const struct crdt_learned *learned)
{
    struct seen *s = context;
    struct node_router *r = s->router;
    (void)sight;
    (void)learned;
    if (!load || load->adapter == 0 || crdt_reports_is_self(s->reports, router))
        return true;
    uint64_t place = hash_mix(router + s->replica);
    uint32_t told = (uint32_t)hash_mix(place + load->adapter_uses) | 1;
    uint32_t *known = &r->adapters_told[place % ARRAY_LEN(r->adapters_told)];
    if (*known == told)
        return true;
    *known = told;
    node_adapters_asked(r->adapters, load->adapter, r->now_ms);
    node_adapters_seen(r->adapters, s->replica, load->adapter, r->now_ms);
    return true;
}

void node_router_adapters_joined(struct node_router *r)
{
    const struct crdt_reports *reports = crdt_state_reports(r->crdt);
    uint64_t version = crdt_reports_load_version(reports);
    if (version == r->adapters_taken)
        return;
    r->adapters_taken = version;
    for (unsigned k = 0; k < r->replica_count; k++) {
        struct crdt_load sum;
        crdt_reports_load_sum(reports, k, &sum);
        if (sum.adapter_uses == r->slots[k].adapter_uses_heard)
            continue;
        r->slots[k].adapter_uses_heard = sum.adapter_uses;
        struct seen s = {r, reports, k};
        crdt_reports_each(reports, k, seen_by, &s);
    }
}

bool node_router_adapter_held(const struct node_router *r, uint32_t adapter)
{
    for (unsigned i = 0; i < r->candidate_count && adapter != 0; i++) {
        if (node_adapters_hold(r->adapters, r->candidates[i].replica, adapter))
            return true;
    }
    return false;
}

/* If some candidate has the adapter, loading another copy here evicts an adapter that is needed
 * here later. The cost includes this later load. */
struct node_adapter_cost node_router_adapter_cost(const struct node_router *r, unsigned k,
                                                  const struct node_size *size, uint64_t now_ms)
{
    struct node_adapter_cost cost = {0, 0};
    if (size->adapter == 0)
        return cost;
    struct node_adapter_need need = node_adapters_need(r->adapters, k, size->adapter, now_ms);
    if (!need.loads)
        return cost;
    double weight = RULE(ADAPTER_WANTED) * need.wanted + RULE(ADAPTER_UNLIKE) * need.unlike +
                    (size->adapter_held ? 1 : 0);
    cost.load_s = node_adapters_load_s(r->adapters, k);
    cost.unloaded_s = weight * cost.load_s;
    if (need.waits) /* waits until a running request with another adapter is done */
        cost.load_s += r->replicas[k].believed.step_base_s * size->output_tokens / 2;
    return cost;
}

void node_router_adapter_use(struct node_router *r, unsigned replica, uint32_t adapter,
                             uint64_t now_ms)
{
    struct node_slot *slot = &r->slots[replica];
    if (adapter == 0)
        return;
    node_adapters_asked(r->adapters, adapter, now_ms);
    node_adapters_use(r->adapters, replica, adapter, now_ms);
    slot->adapter_last = adapter;
    slot->adapter_uses = (slot->adapter_uses + 1) % CRDT_LOAD_USES_MAX;
}

void node_router_adapters_scraped(struct node_router *r, unsigned replica,
                                  const struct node_scrape *s, uint64_t now_ms)
{
    node_adapters_slots(r->adapters, replica, node_replica_adapter_slots(&r->replicas[replica]));
    struct slice rest = s->adapters;
    while (rest.len > 0) {
        struct slice name = slice_trim(slice_cut(&rest, ','));
        if (name.len == 0)
            continue;
        node_adapters_seen(r->adapters, replica, adapter_named(r, name), now_ms);
    }
}

void node_router_adapters_tick(struct node_router *r, uint64_t now_ms)
{
    uint64_t slots = 0, holders = 0;
    for (unsigned k = 0; k < r->replica_count; k++) {
        const struct node_replica *replica = &r->replicas[k];
        if (replica->absent)
            continue;
        node_adapters_slots(r->adapters, k, node_replica_adapter_slots(replica));
        if (node_adapters_held(r->adapters, k) > 0) {
            slots += node_adapters_slots_of(r->adapters, k);
            holders++;
        }
    }
    if (holders > 1) /* one replica's slots are left for rarely used adapters */
        slots -= slots / holders;
    node_adapters_tick(r->adapters, slots, now_ms);
}
