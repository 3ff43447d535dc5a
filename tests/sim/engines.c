/* The inference engines as routers see them: names, start times, and the content of their
 * metrics. */
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "tests/sim/sim.h"

enum {
    PROBE_US = 500000,
    NAMED_US = 20000000, /* how much longer than the TTL a name is kept: clocks, and a sweep */
};

void sim_engines_open(struct sim_world *w)
{
    for (unsigned i = 0; i < w->config.engines; i++) {
        struct sim_engine *e = &w->engines[i];
        (void)snprintf(e->name, sizeof e->name, "10.1.0.%u:8000", i);
        e->up = true;
        /* The last engines are in no configuration: they are added at run time. */
        e->listed = i < 2 || i + 2 < w->config.engines;
        e->started_ms = sim_wall_ms(w) - 1000 * (1 + prng_below(&w->world.prng, 100000));
        sim_book_started(w, i);
    }
}

int sim_engine_of_slot(const struct sim_world *w, const struct world_node *n, unsigned slot)
{
    struct slice name = node_router_replica_name(n->node->router, slot);
    for (unsigned i = 0; i < w->config.engines; i++) {
        if (slice_equal(name, slice_of_cstr(w->engines[i].name)))
            return (int)i;
    }
    return -1;
}

/* Configurations differ: each router names some engines, and all routers together name all. */
void sim_engines_configure(struct sim_world *w, struct world_node *n)
{
    unsigned count = w->config.engines;
    unsigned first = (unsigned)prng_below(&w->world.prng, count);
    for (unsigned i = 0; i < count; i++) {
        unsigned engine = (first + i) % count;
        const struct sim_engine *e = &w->engines[engine];
        bool told = e->listed && (engine % w->config.nodes == n->number || engine == 0 ||
                                  prng_below(&w->world.prng, 3) > 0);
        if (!told)
            continue;
        int slot = node_router_name(n->node->router, slice_of_cstr(e->name), NODE_ENGINE_VLLM);
        CHECK(slot >= 0);
        sim_of(n)->slot_of_engine[engine] = slot;
        sim_of(n)->configured[engine] = true;
        sim_of(n)->turn_of_engine[engine] = e->turn;
    }
}

/* --- names ---------------------------------------------------------------------------------- */

void sim_engine_replace(struct sim_world *w, unsigned engine)
{
    struct sim_engine *e = &w->engines[engine];
    if (w->retired_count == SIM_RETIRED_MAX)
        return;
    struct sim_retired *r = &w->retired[w->retired_count++];
    *r = (struct sim_retired){.engine = engine, .turn = e->turn, .named_us = w->world.now_us};
    memcpy(r->name, e->name, sizeof r->name);
    e->turn++;
    (void)snprintf(e->name, sizeof e->name, "10.1.%u.%u:8000", e->turn, engine);
    sim_say(w, "%s takes the place of %s", e->name, r->name);
    sim_book_replaced(w, engine);
    for (unsigned i = 0; i < w->config.nodes; i++)
        w->records[i].slot_of_engine[engine] = -1;
    sim_engine_restart(w, engine);
}

static const struct sim_retired *retired_find(const struct sim_world *w, struct slice name)
{
    for (unsigned i = w->retired_count; i-- > 0;) {
        if (slice_equal(name, slice_of_cstr(w->retired[i].name)))
            return &w->retired[i];
    }
    return NULL;
}

bool sim_engine_retired(const struct sim_world *w, struct slice name)
{
    return retired_find(w, name) != NULL;
}

/* Changes the names like a source of replicas that is looked up again. */
static void follow(struct sim_world *w, struct world_node *n)
{
    struct sim_record *record = sim_of(n);
    struct node_router *router = n->node->router;
    for (unsigned i = 0; i < w->config.engines; i++) {
        const struct sim_engine *e = &w->engines[i];
        if (!record->configured[i] || record->turn_of_engine[i] == e->turn)
            continue;
        for (unsigned k = 0; k < w->retired_count; k++) {
            const struct sim_retired *r = &w->retired[k];
            if (r->engine == i && r->turn == record->turn_of_engine[i])
                node_router_unname(router, slice_of_cstr(r->name));
        }
        record->turn_of_engine[i] = e->turn;
        int slot = node_router_name(router, slice_of_cstr(e->name), NODE_ENGINE_VLLM);
        record->slot_of_engine[i] = slot;
    }
}

void sim_engines_look(struct sim_world *w)
{
    for (unsigned i = 0; i < w->retired_count; i++) {
        struct sim_retired *r = &w->retired[i];
        for (unsigned k = 0; k < w->config.nodes; k++) {
            const struct sim_record *record = &w->records[k];
            if (w->world.nodes[k].up && record->configured[r->engine] &&
                record->turn_of_engine[r->engine] == r->turn)
                r->named_us = w->world.now_us;
        }
    }
}

void sim_engines_names_check(struct sim_world *w, struct world_node *n)
{
    const struct crdt_registry *registry = crdt_state_registry(world_state(n));
    uint64_t kept_us = (uint64_t)w->config.ttl_ms * SIM_MS * 9 / 8 + NAMED_US;
    for (unsigned slot = 0; slot < crdt_registry_count(registry); slot++) {
        if (!crdt_registry_has(registry, slot))
            continue;
        const struct crdt_replica *row = crdt_registry_at(registry, slot);
        const struct sim_retired *r = retired_find(w, slice_of(row->name, row->name_len));
        if (r && w->world.now_us > r->named_us + kept_us)
            sim_broken(w, "name returns", "%s has %s, which nobody named for %llu s", n->name,
                       r->name, (unsigned long long)(w->world.now_us - r->named_us) / SIM_S);
    }
}

/* --- probes --------------------------------------------------------------------------------- */

static void probe_one(struct sim_world *w, struct world_node *n, unsigned engine)
{
    const struct sim_engine *e = &w->engines[engine];
    unsigned slot = (unsigned)sim_of(n)->slot_of_engine[engine];
    uint64_t now_ms = world_mono_us(n) / 1000;
    node_router_probed(n->node->router, slot, (struct node_check){.ok = e->up, .refused = !e->up},
                       now_ms);
    if (!e->up)
        return;
    struct node_scrape s = node_scrape_unknown;
    s.vllm = true;
    s.running = e->running;
    s.waiting = 0;
    s.cache_tokens = 500000;
    s.start_time_s = (double)e->started_ms / 1000;
    if (!node_scraped_due(node_router_replica(n->node->router, slot), 0, now_ms))
        return;
    sim_book_read(w, n, engine);
    (void)node_router_scraped(n->node->router, slot, &s, now_ms);
}

static void probe(void *context, struct world_event *e)
{
    struct sim_world *w = context;
    struct world_node *n = &w->world.nodes[e->node];
    if (w->world.closing || !n->up || n->life != e->a)
        return;
    if (world_runs(n)) {
        follow(w, n);
        for (unsigned i = 0; i < w->config.engines; i++) {
            if (sim_of(n)->slot_of_engine[i] >= 0)
                probe_one(w, n, i);
        }
        world_touch(n);
    }
    struct world_event next = *e;
    next.at_us += PROBE_US;
    world_queue_put(&w->world.queue, &next);
}

void sim_engines_probe_begin(struct sim_world *w, struct world_node *n)
{
    world_queue_put(
        &w->world.queue,
        &(struct world_event){.at_us = w->world.now_us + prng_below(&w->world.prng, PROBE_US),
                              .happen = probe,
                              .node = n->number,
                              .a = n->life});
}

void sim_engine_restart(struct sim_world *w, unsigned engine)
{
    struct sim_engine *e = &w->engines[engine];
    sim_say(w, "engine %s restarts", e->name);
    e->up = true;
    e->started_ms = sim_wall_ms(w);
    sim_book_started(w, engine);
}
