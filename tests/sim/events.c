#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/hash.h"
#include "tests/sim/sim.h"

enum { EVENTS_MAX = 4096, EVENT_US = 100000, ADDED = 3, KEPT = 60, GAP_PERCENT = 20 };

/* Event v adds the ids 3v, 3v + 1, 3v + 2 (mixed) and removes those of event v - KEPT. */
struct sim_log {
    uint64_t salt;
    uint64_t version;
    uint64_t folds[EVENTS_MAX + 1]; /* of the state after each version */
    struct crdt_events *states;     /* made without gaps, for the folds */
};

void sim_events_reset(struct sim_engine *e, bool again)
{
    if (e->log) {
        crdt_events_destroy(e->log->states);
        free(e->log);
        e->log = NULL;
    }
    if (!again)
        return;
    e->log = calloc(1, sizeof *e->log);
    CHECK(e->log != NULL);
    e->log->salt = hash_mix(e->started_ms + (uint64_t)(uint8_t)e->name[7]);
    CHECK(crdt_events_create(&e->log->states, 1, 1 << 20) == ERR_OK);
}

static void ids_of(const struct sim_log *l, uint64_t version, uint64_t out[ADDED])
{
    for (unsigned i = 0; i < ADDED; i++)
        out[i] = hash_mix(l->salt + version * ADDED + i) & UINT64_C(0xffffffffffff);
}

static int feed(const struct sim_log *l, uint64_t version, struct crdt_state *state, unsigned slot)
{
    uint64_t added[ADDED], removed[ADDED];
    ids_of(l, version, added);
    bool removes = version > KEPT;
    if (removes)
        ids_of(l, version - KEPT, removed);
    struct crdt_event e = {
        .rkey = 1,
        .version = version,
        .added = added,
        .added_count = ADDED,
        .removed = removed,
        .removed_count = removes ? ADDED : 0,
    };
    return state ? crdt_state_event(state, slot, &e) : crdt_events_append(l->states, &e);
}

/* The slot of the engine's present process at that node, or -1. */
static int slot_of(const struct sim_world *w, const struct world_node *n, unsigned engine)
{
    const struct crdt_registry *r = crdt_state_registry(world_state(n));
    int slot = crdt_registry_by_name(r, slice_of_cstr(w->engines[engine].name));
    if (slot < 0)
        return -1;
    const struct crdt_incarnation *i = &crdt_registry_at(r, (unsigned)slot)->incarnation;
    return i->started == w->engines[engine].started_ms ? slot : -1;
}

/* One event reaches a follower, which asks for those that it missed before. */
static void follow(struct sim_world *w, struct world_node *n, unsigned engine)
{
    int slot = slot_of(w, n, engine);
    const struct sim_log *l = w->engines[engine].log;
    if (slot < 0 || prng_below(&w->world.prng, 100) < GAP_PERCENT)
        return;
    struct crdt_state *state = world_state(n);
    if (feed(l, l->version, state, (unsigned)slot) != ERR_AGAIN)
        return;
    struct crdt_events_head head = {0};
    uint32_t rkey = crdt_registry_at(crdt_state_registry(state), (unsigned)slot)->rkey;
    (void)crdt_events_find(crdt_state_log(state), rkey, &head);
    for (uint64_t v = head.version + 1; v <= l->version; v++)
        (void)feed(l, v, state, (unsigned)slot);
}

static void event(void *context, struct world_event *e)
{
    struct sim_world *w = context;
    if (w->world.closing || !w->working)
        return;
    for (unsigned i = 0; i < w->config.engines; i++) {
        struct sim_log *l = w->engines[i].log;
        if (!w->engines[i].up || l->version == EVENTS_MAX)
            continue;
        l->version++;
        CHECK(feed(l, l->version, NULL, 0) == 1);
        struct crdt_events_head head;
        CHECK(crdt_events_find(l->states, 1, &head));
        l->folds[l->version] = head.fold;
        for (unsigned k = 0; k < 2; k++) {
            struct world_node *n = &w->world.nodes[(i + k) % w->config.nodes];
            if (world_runs(n) && !n->leaving)
                follow(w, n, i);
        }
    }
    struct world_event next = *e;
    next.at_us += w->config.profile == SIM_LONG ? 10 * EVENT_US : EVENT_US;
    world_queue_put(&w->world.queue, &next);
}

void sim_events_begin(struct sim_world *w)
{
    /* Only anti-entropy carries them, which takes its time. */
    if (w->config.profile >= SIM_STORM)
        world_queue_put(&w->world.queue,
                        &(struct world_event){.at_us = w->world.now_us, .happen = event});
}

void sim_events_check(struct sim_world *w, struct world_node *n)
{
    struct crdt_state *s = world_state(n);
    for (unsigned i = 0; i < w->config.engines; i++) {
        int slot = slot_of(w, n, i);
        struct crdt_events_head head;
        if (slot < 0)
            continue;
        uint32_t rkey = crdt_registry_at(crdt_state_registry(s), (unsigned)slot)->rkey;
        if (!crdt_events_find(crdt_state_log(s), rkey, &head))
            continue;
        const struct sim_log *l = w->engines[i].log;
        if (head.version > l->version || head.fold != l->folds[head.version])
            sim_broken(w, "log", "%s holds of %s a version %llu that never was", n->name,
                       w->engines[i].name, (unsigned long long)head.version);
    }
}
