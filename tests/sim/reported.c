/* Nodes' copies of one another's reports (crdt/reports.h), checked as they happen: a moment later
 * the next report of the same row would hide an error. */
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "tests/sim/sim.h"

enum {
    NODES_MAX = 16,      /* larger clusters are not watched, to save memory */
    AGREED_US = 2000000, /* two reports of a router that reads metrics once a second */
};

/* The last seen number of the row, by router, engine and kind; 0: none. */
static uint64_t *last_of(const struct sim_world *w, const struct world_node *n, unsigned router,
                         unsigned engine, enum crdt_report_kind kind)
{
    return &sim_of(n)->reported[(router * w->config.engines + engine) * CRDT_REPORTS + kind];
}

static size_t rows_of(const struct sim_world *w)
{
    return (size_t)w->config.nodes * w->config.engines * CRDT_REPORTS;
}

void sim_reported_open(struct sim_world *w, struct world_node *n)
{
    if (w->config.nodes > NODES_MAX)
        return;
    sim_of(n)->reported = calloc(rows_of(w), sizeof *sim_of(n)->reported);
    CHECK(sim_of(n)->reported != NULL);
}

void sim_reported_forget(struct sim_world *w, struct world_node *n)
{
    for (size_t i = 0; sim_of(n)->reported && i < rows_of(w); i++)
        sim_of(n)->reported[i] = 0;
}

void sim_reported_close(struct world_node *n)
{
    free(sim_of(n)->reported);
}

static void row_check(struct sim_world *w, struct world_node *n, unsigned at, unsigned router,
                      unsigned slot)
{
    int engine = sim_engine_of_slot(w, n, slot);
    if (engine < 0)
        return;
    for (unsigned kind = 0; kind < CRDT_REPORTS; kind++) {
        struct crdt_report row = {0};
        uint64_t *last = last_of(w, n, router, (unsigned)engine, (enum crdt_report_kind)kind);
        if (crdt_reports_row(crdt_state_reports(world_state(n)), at, (enum crdt_report_kind)kind,
                             slot, &row)) {
            /* Epochs are milliseconds, and a life has far fewer deltas than 2^20 here. */
            uint64_t number = row.epoch << 20 | row.seq;
            if (number < *last)
                sim_broken(w, "report regressed",
                           "%s had report %llu of %s about %s, and took in the older %llu", n->name,
                           (unsigned long long)(*last & 0xfffff), w->world.nodes[router].name,
                           w->engines[engine].name, (unsigned long long)row.seq);
            *last = number;
        } else {
            *last = 0;
        }
    }
}

/* A node that dropped the rows of a router, believed dead, may get older rows from a peer that lags
 * (seed 63, join). */
static void dropped_forget(struct sim_world *w, struct world_node *n)
{
    const struct crdt_reports *reports = crdt_state_reports(world_state(n));
    for (unsigned of = 0; of < w->config.nodes; of++) {
        uint64_t *last = last_of(w, n, of, 0, 0);
        if (crdt_reports_knows(reports, w->world.nodes[of].id))
            continue;
        for (unsigned i = 0; i < w->config.engines * CRDT_REPORTS; i++)
            last[i] = 0;
    }
}

/* Checks only if no engine is removed: the engine's rows go with it. */
void sim_reported_check(struct sim_world *w, struct world_node *n)
{
    if (!sim_of(n)->reported || w->config.profile >= SIM_STORM)
        return;
    dropped_forget(w, n);
    struct crdt_state *s = world_state(n);
    const struct crdt_reports *reports = crdt_state_reports(s);
    unsigned slots = crdt_registry_count(crdt_state_registry(s));
    for (unsigned i = 0; i < crdt_reports_routers(reports); i++) {
        int router = sim_number_of(w, crdt_reports_router_at(reports, i).router);
        for (unsigned slot = 0; router >= 0 && slot < slots; slot++)
            row_check(w, n, i, (unsigned)router, slot);
    }
}

void sim_reported_dead_check(struct sim_world *w, struct world_node *n)
{
    const struct crdt_reports *reports = crdt_state_reports(world_state(n));
    for (unsigned i = 0; i < crdt_reports_routers(reports); i++) {
        struct gossip_member m;
        uint64_t router = crdt_reports_router_at(reports, i).router;
        if (gossip_member_find(world_gossip(n), router, world_mono_us(n), &m) == ERR_OK &&
            !m.self && m.state > GOSSIP_SUSPECT)
            sim_broken(w, "reports of the dead", "%s holds %s for %s and still counts its load",
                       n->name, m.name, gossip_state_text(m.state));
        int number = sim_number_of(w, router);
        const struct world_node *of = number >= 0 ? &w->world.nodes[number] : NULL;
        struct gossip_versions own = n->config.replication.gossip.speaks;
        struct gossip_versions its = of ? of->config.replication.gossip.speaks : own;
        bool foreign = own.greatest > 0 && (own.greatest < its.least || its.greatest < own.least);
        bool met = m.speaks.least == its.least && m.speaks.greatest == its.greatest;
        if (foreign && met)
            sim_broken(w, "reports of the foreign",
                       "%s counts the load of %s, with which it has no version in common", n->name,
                       m.name);
    }
}

/* --- all the same --------------------------------------------------------------------------- */

static bool digest_of(const struct world_node *n, uint64_t router, struct crdt_reporter_digest *out)
{
    const struct crdt_reports *reports = crdt_state_reports(world_state(n));
    for (unsigned i = 0; i < crdt_reports_routers(reports); i++) {
        *out = crdt_reports_router_at(reports, i);
        if (out->router == router)
            return true;
    }
    return false;
}

void sim_reported_look(struct sim_world *w)
{
    for (unsigned of = 0; of < w->config.nodes; of++) {
        const struct world_node *author = &w->world.nodes[of];
        struct crdt_reporter_digest own, known;
        if (!author->up || !digest_of(author, author->id, &own))
            continue;
        for (unsigned i = 0; i < w->config.nodes; i++) {
            const struct world_node *n = &w->world.nodes[i];
            if (n->up && digest_of(n, author->id, &known) && known.epoch == own.epoch &&
                known.loads == own.loads && known.others == own.others)
                sim_of(n)->seen[of].reports_us = w->world.now_us;
        }
    }
}

bool sim_reported_agreed(struct sim_world *w, char *why, size_t why_size)
{
    for (unsigned of = 0; of < w->config.nodes; of++) {
        for (unsigned i = 0; i < w->config.nodes; i++) {
            const struct world_node *n = &w->world.nodes[i];
            if (!n->up || !w->world.nodes[of].up)
                continue;
            uint64_t then_us = sim_of(n)->seen[of].reports_us;
            if (then_us > 0 && w->world.now_us - then_us <= AGREED_US)
                continue;
            (void)snprintf(why, why_size, "%s and %s differ in: reports of the second", n->name,
                           w->world.nodes[of].name);
            return false;
        }
    }
    return true;
}

/* --- when all is healed --------------------------------------------------------------------- */

struct rest {
    struct sim_world *w;
    const struct world_node *n;
    unsigned engine;
    unsigned routers; /* with reports */
};

static bool rest_look(void *context, uint64_t router, const struct crdt_load *load,
                      const struct crdt_sight *sight, const struct crdt_learned *learned)
{
    struct rest *r = context;
    (void)load;
    (void)learned;
    int number = sim_number_of(r->w, router);
    const struct world_node *of = number >= 0 ? &r->w->world.nodes[number] : NULL;
    const char *name = r->w->engines[r->engine].name;
    if (!of || !of->up)
        sim_broken(r->w, "reports", "%s has a report of %s by a router that is dead", r->n->name,
                   name);
    if (sight && sight->configured != sim_of(of)->configured[r->engine])
        sim_broken(r->w, "reports", "%s believes that %s is %s at %s", r->n->name, name,
                   sight->configured ? "configured" : "not configured", of->name);
    r->routers += sight && sight->configured;
    return true;
}

void sim_reported_rest_check(struct sim_world *w, struct world_node *n)
{
    const struct crdt_registry *registry = crdt_state_registry(world_state(n));
    if (sim_pure_stream(w))
        return; /* a joiner ignores reports of unknown members */
    for (unsigned i = 0; i < w->config.engines; i++) {
        int slot = crdt_registry_by_name(registry, slice_of_cstr(w->engines[i].name));
        unsigned configured = 0;
        for (unsigned k = 0; k < w->config.nodes; k++)
            configured += w->world.nodes[k].up && sim_of(&w->world.nodes[k])->configured[i];
        struct rest r = {w, n, i, 0};
        if (slot >= 0)
            crdt_reports_each(crdt_state_reports(world_state(n)), (unsigned)slot, rest_look, &r);
        if (r.routers != configured)
            sim_broken(w, "reports", "%s knows %u routers that have %s configured, there are %u",
                       n->name, r.routers, w->engines[i].name, configured);
    }
}
