/* Rules after healing: all nodes see all nodes, hold the same, and nothing is missing. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "tests/sim/sim.h"

enum { LOOK_EVERY_MS = 100 };

/* --- members -------------------------------------------------------------------------------- */

static bool members_agree(struct sim_world *w, struct world_node *n, char *why, size_t why_size)
{
    for (unsigned i = 0; i < w->config.nodes; i++) {
        const struct world_node *other = &w->world.nodes[i];
        struct gossip_member m;
        int err = gossip_member_find(world_gossip(n), other->id, world_mono_us(n), &m);
        bool alive = err == ERR_OK && m.state == GOSSIP_ALIVE;
        bool known = err == ERR_OK && m.state <= GOSSIP_SUSPECT;
        bool good = other->up ? alive && (other == n || m.session) : !known;
        if (good)
            continue;
        (void)snprintf(why, why_size, "%s sees %s, which is %s, as %s%s", n->name, other->name,
                       other->up ? "up" : "dead",
                       err == ERR_OK ? gossip_state_text(m.state) : "unknown",
                       err == ERR_OK && !m.session ? " without a session" : "");
        return false;
    }
    return true;
}

/* --- load ----------------------------------------------------------------------------------- */

struct load_walk {
    const struct sim_world *w;
    const struct world_node *n;
    const char *wrong;
};

static bool load_look(void *context, uint64_t router, const struct crdt_load *load,
                      const struct crdt_sight *sight, const struct crdt_learned *learned)
{
    struct load_walk *l = context;
    (void)sight;
    (void)learned;
    const struct world_node *of = NULL;
    for (unsigned i = 0; i < l->w->config.nodes; i++) {
        if (l->w->world.nodes[i].id == router)
            of = &l->w->world.nodes[i];
    }
    bool loaded = load && (load->requests > 0 || load->prefill_tokens > 0 ||
                           load->context_tokens > 0 || load->decoding_tokens > 0);
    if (loaded && (!of || !of->up))
        l->wrong = "the load of a dead router counts";
    else if (loaded && sim_of(of)->bookings_open == 0)
        l->wrong = "a load is stuck";
    return l->wrong == NULL;
}

static bool loads_are_right(struct sim_world *w, struct world_node *n, char *why, size_t why_size)
{
    struct crdt_state *s = world_state(n);
    unsigned slots = crdt_registry_count(crdt_state_registry(s));
    unsigned open = 0;
    for (unsigned i = 0; i < w->config.nodes; i++)
        open += w->world.nodes[i].up ? sim_of(&w->world.nodes[i])->bookings_open : 0;
    for (unsigned slot = 0; slot < slots; slot++) {
        struct load_walk l = {w, n, NULL};
        crdt_reports_each(crdt_state_reports(s), slot, load_look, &l);
        struct crdt_load sum;
        crdt_reports_load_sum(crdt_state_reports(s), slot, &sum);
        if (!l.wrong && open == 0 &&
            (sum.requests | sum.prefill_tokens | sum.context_tokens | sum.decoding_tokens))
            l.wrong = "the sum of loads is not zero";
        if (l.wrong) {
            (void)snprintf(why, why_size, "at %s: %s", n->name, l.wrong);
            return false;
        }
    }
    if (open > 0)
        (void)snprintf(why, why_size, "%u requests are open", open);
    return open == 0;
}

struct load_of {
    uint64_t router;
    bool counts;
};

static bool load_of(void *context, uint64_t router, const struct crdt_load *load,
                    const struct crdt_sight *sight, const struct crdt_learned *learned)
{
    struct load_of *l = context;
    (void)sight;
    (void)learned;
    l->counts = l->counts || (router == l->router && load && load->requests > 0);
    return !l->counts;
}

bool sim_rest_load_of(struct world_node *n, uint64_t router)
{
    struct crdt_state *s = world_state(n);
    struct load_of l = {.router = router};
    for (unsigned slot = 0; slot < crdt_registry_count(crdt_state_registry(s)); slot++)
        crdt_reports_each(crdt_state_reports(s), slot, load_of, &l);
    return l.counts;
}

/* --- state ---------------------------------------------------------------------------------- */

static uint32_t common_floor(const struct sim_world *w)
{
    uint32_t floor = 0;
    for (unsigned i = 0; i < w->config.nodes; i++) {
        if (!w->world.nodes[i].up)
            continue;
        uint32_t own = crdt_index_floor(crdt_state_index(world_state(&w->world.nodes[i])));
        floor = own > floor ? own : floor;
    }
    return floor;
}

static bool digests_agree(struct sim_world *w, char *why, size_t why_size)
{
    uint32_t from = common_floor(w);
    struct crdt_digest first;
    const struct world_node *one = NULL;
    for (unsigned i = 0; i < w->config.nodes; i++) {
        struct world_node *n = &w->world.nodes[i];
        if (!n->up)
            continue;
        struct crdt_digest d;
        crdt_state_digest(world_state(n), from, &d);
        if (!one) {
            one = n;
            first = d;
            continue;
        }
        /* A joiner ignores reports of members not known yet. Anti-entropy repairs this, but some
         * profiles have no anti-entropy. Loads are checked separately. In a wide network some
         * report of a scrape is always under way. */
        bool reports =
            d.reports == first.reports || sim_pure_stream(w) || w->config.profile == SIM_WAN;
        const char *what = d.registry != first.registry ? "registry"
                           : d.index != first.index     ? "index"
                           : d.poison != first.poison   ? "poison"
                           : !reports                   ? "reports"
                                                        : NULL;
        if (what) {
            (void)snprintf(why, why_size, "%s and %s differ in: %s", one->name, n->name, what);
            return false;
        }
    }
    return true;
}

bool sim_rest_agreed(struct sim_world *w, char *why, size_t why_size)
{
    if (w->config.profile == SIM_WAN)
        sim_reported_look(w);
    for (unsigned i = 0; i < w->config.nodes; i++) {
        struct world_node *n = &w->world.nodes[i];
        if (!n->up)
            continue;
        if (n->leaving || !node_replication_ready(n->node->replication)) {
            (void)snprintf(why, why_size, "%s is not ready", n->name);
            return false;
        }
        if (!members_agree(w, n, why, why_size) || !loads_are_right(w, n, why, why_size))
            return false;
    }
    return digests_agree(w, why, why_size) &&
           (w->config.profile != SIM_WAN || sim_reported_agreed(w, why, why_size));
}

/* --- the whole ------------------------------------------------------------------------------ */

/* In calm weather nothing is missed, suspected, refused or repaired. */
static void calm_check(struct sim_world *w)
{
    if (w->config.profile != SIM_CALM)
        return;
    for (unsigned i = 0; i < w->config.nodes; i++) {
        struct gossip_stats g;
        gossip_stats(world_gossip(&w->world.nodes[i]), &g);
        const struct gossip_stats *b = &sim_of(&w->world.nodes[i])->begun;
        if (g.gaps > b->gaps || g.suspected > 0 || g.died > 0 || g.messages_failed > 0 ||
            g.refused_replay > 0 || g.refused_malformed > 0)
            sim_broken(w, "calm",
                       "%s in calm weather: %llu gaps, %llu suspected, %llu died, %llu messages "
                       "failed, %llu refused",
                       w->world.nodes[i].name, (unsigned long long)(g.gaps - b->gaps),
                       (unsigned long long)g.suspected, (unsigned long long)g.died,
                       (unsigned long long)g.messages_failed,
                       (unsigned long long)(g.refused_malformed + g.refused_replay));
    }
}

/* Distance alone must not kill a node, despite lost packets. A suspicion, which needs a lost ping
 * and the loss of all indirect pings, occurs in one of many runs, and is refuted. */
static void wan_check(struct sim_world *w)
{
    for (unsigned i = 0; w->config.quiet && i < w->config.nodes; i++) {
        struct gossip_stats g;
        gossip_stats(world_gossip(&w->world.nodes[i]), &g);
        if (g.suspected > 1 || g.died > 0 || g.messages_failed > 0 || g.gaps_lost > 0)
            sim_broken(w, "wan",
                       "%s far from others: %llu suspected, %llu died, %llu messages "
                       "failed, %llu deltas lost",
                       w->world.nodes[i].name, (unsigned long long)g.suspected,
                       (unsigned long long)g.died, (unsigned long long)g.messages_failed,
                       (unsigned long long)g.gaps_lost);
    }
}

void sim_beliefs_say(struct sim_world *w)
{
    for (unsigned i = 0; i < w->config.nodes; i++) {
        struct world_node *n = &w->world.nodes[i];
        if (!n->up)
            continue;
        struct gossip *g = world_gossip(n);
        struct gossip_stats s;
        struct crdt_state_stats c;
        gossip_stats(g, &s);
        crdt_state_stats(world_state(n), &c);
        sim_say(w,
                "%s: floor %u, now %u, refused %llu by key, %llu replays, %llu stale, %llu future, "
                "%llu full, %llu of unknown replicas, %llu of unknown routers",
                n->name, crdt_index_floor(crdt_state_index(world_state(n))),
                crdt_index_now(crdt_state_index(world_state(n))), (unsigned long long)s.refused_key,
                (unsigned long long)s.refused_replay, (unsigned long long)c.stale,
                (unsigned long long)c.future, (unsigned long long)c.full,
                (unsigned long long)c.unknown_replica, (unsigned long long)c.unknown_router);
        const struct crdt_reports *reports = crdt_state_reports(world_state(n));
        for (unsigned k = 0; k < crdt_reports_routers(reports); k++) {
            struct crdt_reporter_digest d = crdt_reports_router_at(reports, k);
            for (unsigned j = 0; j < w->config.nodes; j++) {
                if (w->world.nodes[j].id == d.router)
                    sim_say(w, "    reports of %s life %llu: %016llx %016llx",
                            w->world.nodes[j].name, (unsigned long long)d.epoch,
                            (unsigned long long)d.loads, (unsigned long long)d.others);
            }
        }
        const struct crdt_registry *names = crdt_state_registry(world_state(n));
        for (unsigned k = 0; k < crdt_registry_count(names); k++) {
            if (!crdt_registry_has(names, k))
                continue;
            const struct crdt_replica *row = crdt_registry_at(names, k);
            sim_say(
                w, "    slot %u %s: named %u born %u, started %llu.%u, wish %u.%u, drain %u.%u%s",
                k, row->name, row->named, row->born, (unsigned long long)row->incarnation.started,
                row->incarnation.raises, row->wish_version, row->wish, row->drain_version,
                row->draining, row->ours ? ", ours" : "");
        }
        for (unsigned k = 0; k < gossip_member_count(g); k++) {
            struct gossip_member m;
            uint64_t now = world_mono_us(n);
            gossip_member_at(g, k, now, &m);
            sim_say(
                w,
                "    %s %s incarnation %llu.%llu session %d heard %.1f s ago, applied %llu of %llu",
                m.name, gossip_state_text(m.state), (unsigned long long)(m.incarnation >> 16),
                (unsigned long long)(m.incarnation & 0xffff), m.session,
                m.heard_us ? (double)(now - m.heard_us) / 1e6 : -1.0,
                (unsigned long long)m.seq_applied, (unsigned long long)m.seq_known);
        }
    }
}

static void agreement_await(struct sim_world *w, uint64_t least_us)
{
    uint64_t begin = w->world.now_us, until = begin + least_us;
    char why[256] = "";
    while (!sim_rest_agreed(w, why, sizeof why) || w->world.now_us < until) {
        if (w->world.now_us > until + sim_patience_us(w)) {
            sim_beliefs_say(w);
            sim_broken(w, "no agreement", "%llu s after all was healed: %s",
                       (unsigned long long)(w->world.now_us - begin) / 1000000, why);
        }
        world_run_until(&w->world, w->world.now_us + LOOK_EVERY_MS * SIM_MS);
        sim_oracle_all(w);
    }
}

/* All routers have seen all wishes. Now every second replica is drained at one router, and each is
 * added at another at the same moment: neither may undo the other. */
static void last_wishes(struct sim_world *w, int *drained)
{
    for (unsigned i = 0; i < w->config.engines; i++) {
        struct world_node *up[SIM_NODES_MAX];
        unsigned count = 0;
        for (unsigned k = 0; k < w->config.nodes; k++) {
            if (w->world.nodes[k].up)
                up[count++] = &w->world.nodes[k];
        }
        struct world_node *a = up[prng_below(&w->world.prng, count)];
        struct world_node *b = up[prng_below(&w->world.prng, count)];
        struct slice name = slice_of_cstr(w->engines[i].name);
        int at_a = node_router_replica_find(a->node->router, name);
        drained[i] = -1; /* not known */
        if (at_a < 0 || node_router_replica_find(b->node->router, name) < 0)
            continue;
        if (a != b)
            DISCARD(node_router_replica_wish(b->node->router, name, NODE_REPLICA_ADD,
                                             NODE_ENGINE_VLLM));
        /* A router that adds a draining replica wants that replica used. */
        if (crdt_registry_at(crdt_state_registry(world_state(a)), (unsigned)at_a)->draining)
            continue;
        drained[i] = i % 2 == 0;
        node_router_replica_drain(a->node->router, (unsigned)at_a, drained[i] == 1);
        world_touch(a);
        world_touch(b);
    }
}

static void wishes_check(struct sim_world *w, const int *drained)
{
    for (unsigned k = 0; k < w->config.nodes; k++) {
        struct world_node *n = &w->world.nodes[k];
        for (unsigned i = 0; n->up && i < w->config.engines; i++) {
            const struct crdt_registry *r = crdt_state_registry(world_state(n));
            int slot = crdt_registry_by_name(r, slice_of_cstr(w->engines[i].name));
            if (slot >= 0 && drained[i] >= 0 &&
                crdt_registry_at(r, (unsigned)slot)->draining != (drained[i] == 1))
                sim_broken(w, "drain", "at %s %s is %s, which was the last wish of nobody", n->name,
                           w->engines[i].name, drained[i] == 1 ? "not draining" : "draining");
        }
    }
}

void sim_rest(struct sim_world *w)
{
    /* Everything that living nodes have now must survive. */
    for (unsigned i = 0; i < w->config.nodes; i++) {
        struct world_node *n = &w->world.nodes[i];
        if (n->up && !n->leaving)
            sim_oracle_visible(w, n);
    }
    uint64_t begin = w->world.now_us;
    agreement_await(w, 3 * SIM_S); /* until the open requests end */
    int drained[SIM_ENGINES_MAX];
    last_wishes(w, drained);
    agreement_await(w, SIM_S);
    wishes_check(w, drained);
    w->rest_us = w->world.now_us - begin;
    for (unsigned i = 0; i < w->config.nodes; i++) {
        struct world_node *n = &w->world.nodes[i];
        if (!n->up)
            continue;
        sim_oracle_visible(w, n);
        sim_book_processes(w, n);
        sim_reported_rest_check(w, n);
        node_replication_check(n->node->replication);
        node_router_check(n->node->router);
    }
    sim_book_spread(w);
    calm_check(w);
    wan_check(w);
}
