/* The profiles: the troubles of each, how often they come, and how soon all must agree
 * afterwards. */
#include "base/check.h"
#include "tests/sim/sim.h"

static void trouble_strict(struct sim_world *w)
{
    switch (prng_below(&w->world.prng, 8)) {
    case 0:
    case 1:
        sim_bad_weather(w);
        break;
    case 6:
    case 7:
        sim_rejoin(w);
        break;
    case 2:
        sim_partition(w, sim_between(w, 50, 700) * SIM_MS); /* too short to be suspected */
        break;
    case 3:
        sim_clog_link(w);
        break;
    case 4:
        sim_pause_one(w, 20, 400);
        break;
    default:
        sim_intruder(w);
    }
}

static void trouble_join(struct sim_world *w)
{
    switch (prng_below(&w->world.prng, 8)) {
    case 0:
        sim_bad_weather(w);
        break;
    case 1:
        sim_clog_link(w);
        break;
    case 2:
        sim_narrow_one(w);
        break;
    case 3:
        sim_pause_one(w, 900, 1500); /* suspected, but not given up */
        break;
    case 4:
        sim_intruder(w);
        break;
    default:
        sim_rejoin(w);
    }
}

static void trouble_storm(struct sim_world *w)
{
    switch (prng_below(&w->world.prng, 12)) {
    case 0:
    case 1:
        sim_bad_weather(w);
        break;
    case 2:
        sim_partition(w, sim_between(w, 100, 6000) * SIM_MS);
        break;
    case 3:
        sim_clog_link(w);
        break;
    case 4:
    case 5:
        sim_node_goes(w, false);
        break;
    case 6:
        sim_node_goes(w, true);
        break;
    case 7:
        sim_pause_one(w, 20, 6000);
        break;
    case 8:
        sim_clock_moves(w);
        break;
    case 9:
    case 10:
        sim_engine_trouble(w);
        break;
    default:
        sim_intruder(w);
    }
}

/* Longer than the routers' memory: partitions, absences and suspended machines. */
static void trouble_long(struct sim_world *w)
{
    switch (prng_below(&w->world.prng, 10)) {
    case 5:
        sim_clock_ahead(w);
        break;
    case 0:
        sim_partition(w, sim_between(w, 1000, 60000) * SIM_MS);
        break;
    case 1:
        if (world_chance(&w->world, 0.3))
            sim_partition(w, w->config.forget_us + sim_between(w, 10, 60) * SIM_S);
        break;
    case 2:
        if (world_chance(&w->world, 0.5))
            sim_pause_one(w, w->config.forget_us / SIM_MS, w->config.forget_us / SIM_MS + 100000);
        break;
    case 3:
    case 4:
        sim_nonsense(w);
        break;
    default:
        trouble_storm(w);
    }
}

static void trouble_one_seed(struct sim_world *w)
{
    if (world_chance(&w->world, 0.3))
        sim_translated_anew(w);
    else
        trouble_storm(w);
}

static void trouble_wan(struct sim_world *w)
{
    if (!w->config.quiet)
        trouble_storm(w);
}

/* Routers come and go, and stop for longer than names live. */
static void trouble_churn(struct sim_world *w)
{
    switch (prng_below(&w->world.prng, 12)) {
    case 0:
        sim_bad_weather(w);
        break;
    case 1:
        sim_partition(w, sim_between(w, 100, 30000) * SIM_MS);
        break;
    case 2:
        sim_node_goes(w, world_chance(&w->world, 0.5));
        break;
    case 3:
        sim_pause_one(w, 1000, 40000);
        break;
    case 4:
        sim_intruder(w);
        break;
    default:
        sim_engine_replace(w, (unsigned)prng_below(&w->world.prng, w->config.engines));
    }
}

static const struct traits {
    const char *name;
    void (*trouble)(struct sim_world *w);
    unsigned every_ms; /* at most */
    unsigned patience_s;
} profiles[] = {
    [SIM_CALM] = {"calm", NULL, 0, 1},
    [SIM_STRICT] = {"strict", trouble_strict, 600, 6},
    [SIM_JOIN] = {"join", trouble_join, 600, 15}, /* a snapshot just begun takes time */
    [SIM_STORM] = {"storm", trouble_storm, 600, 45},
    [SIM_PRESSURE] = {"pressure", trouble_storm, 600, 45},
    [SIM_LONG] = {"long", trouble_long, 60000, 90}, /* a quarantine takes time */
    [SIM_ONE_SEED] = {"one-seed", trouble_one_seed, 600, 45},
    [SIM_WAN] = {"wan", trouble_wan, 1200, 45},
    [SIM_CHURN] = {"churn", trouble_churn, 1000, 45},
    [SIM_BUILDS] = {"builds", trouble_storm, 600, 45},
};
_Static_assert(ARRAY_LEN(profiles) == SIM_PROFILES, "each has its traits");

const char *sim_profile_text(enum sim_profile p)
{
    return p == SIM_SERVICE ? "service" : profiles[p].name;
}

uint64_t sim_patience_us(const struct sim_world *w)
{
    uint64_t quiet_s = 5;
    return (w->config.quiet ? quiet_s : profiles[w->config.profile].patience_s) * SIM_S;
}

static void trouble(void *context, struct world_event *e)
{
    struct sim_world *w = context;
    if (w->world.closing || !w->working)
        return;
    const struct traits *p = &profiles[w->config.profile];
    p->trouble(w);
    struct world_event next = *e;
    next.at_us += sim_between(w, 20, p->every_ms) * SIM_MS;
    world_queue_put(&w->world.queue, &next);
}

void sim_trouble_begin(struct sim_world *w)
{
    if (profiles[w->config.profile].trouble != NULL)
        sim_later(w, SIM_S, trouble, 0, 0);
}

void sim_trouble_end(struct sim_world *w)
{
    enum { PIPE_BYTES_MIN = 4000 };
    sim_say(w, "healed");
    sim_net_heal(w);
    if (w->world.call_bytes_max < PIPE_BYTES_MIN)
        w->world.call_bytes_max = PIPE_BYTES_MIN;
    for (unsigned i = 0; i < w->config.engines; i++) {
        if (!w->engines[i].up)
            sim_engine_restart(w, i);
    }
    unsigned dead = 0;
    bool may_die = w->config.profile >= SIM_STORM && w->config.nodes > 3 && !w->config.quiet;
    for (unsigned i = 0; i < w->config.nodes; i++) {
        struct world_node *n = &w->world.nodes[i];
        bool only_seed = i == 0 && w->config.seeds == 1;
        n->wall_offset_us = (int64_t)sim_between(w, 0, 200 * SIM_MS) - 100 * (int64_t)SIM_MS;
        if (n->paused_until_us > 0)
            world_pause(n, w->world.now_us + 1);
        bool foreign = n->config.replication.gossip.speaks.least > 1;
        if (w->config.profile == SIM_BUILDS && n->up && foreign)
            sim_node_crash(w, i); /* and comes back as another build */
        if (may_die && !only_seed && dead < w->config.nodes / 4 && !n->leaving &&
            world_chance(&w->world, 0.2)) {
            dead++;
            if (n->up)
                sim_node_crash(w, i);
            n->life++; /* makes the planned return void */
        } else if (!n->up) {
            sim_node_start(w, i, false);
        } else if (n->leaving) {
            sim_later(w, SIM_S, sim_start_again, i, n->life);
        }
    }
}
