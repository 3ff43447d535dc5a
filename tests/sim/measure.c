#include "tests/sim/measure.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "tests/sim/sim.h"

enum { SETTLE_S = 3, REQUESTS_S = 2, STEP_US = 250, GIVE_UP_US = 20000000 };

/* True if all nodes hold the observation. */
static bool all_hold(struct sim_world *w, const struct sim_fact *f)
{
    for (unsigned i = 0; i < w->config.nodes; i++) {
        struct crdt_state *s = world_state(&w->world.nodes[i]);
        struct slice name = slice_of_cstr(w->engines[f->engine].name);
        int slot = crdt_registry_by_name(crdt_state_registry(s), name);
        uint32_t generation;
        if (slot < 0 || crdt_index_get(crdt_state_index(s), f->id48, (unsigned)slot, f->code,
                                       &generation) != ERR_OK)
            return false;
    }
    return true;
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static unsigned at_p50(unsigned count)
{
    return count / 2;
}

static unsigned at_p99(unsigned count)
{
    return (unsigned)((uint64_t)count * 99 / 100);
}

static struct sim_world *open_calm(uint64_t seed, unsigned nodes, double loss)
{
    struct sim_config c;
    sim_config_of_seed(&c, seed, SIM_CALM, (int)nodes);
    c.relay_above = 0;
    c.loss = loss;
    c.check_every = UINT64_MAX;
    c.generation_ms = 10000;
    c.ttl_ms = 80000; /* few sketches, because 256 nodes need much memory */
    c.spread_start = nodes > 16;
    c.requests_s = REQUESTS_S * nodes;
    struct sim_world *w = sim_world_open(&c);
    w->measuring = true;
    sim_start(w);
    world_run_until(&w->world, w->world.now_us + SETTLE_S * SIM_S);
    return w;
}

/* Makes new observations at random nodes and moments; returns how long each took to be everywhere,
 * in ascending order. */
static uint64_t *measure_spread(struct sim_world *w, unsigned count)
{
    unsigned nodes = w->config.nodes;
    uint64_t *times = calloc(count, sizeof *times);
    CHECK(times != NULL);
    for (unsigned k = 0; k < count; k++) {
        world_run_until(&w->world,
                        w->world.now_us + 20 * SIM_MS + prng_below(&w->world.prng, 100 * SIM_MS));
        struct world_node *n = &w->world.nodes[prng_below(&w->world.prng, nodes)];
        struct sim_fact f;
        uint64_t begin = w->world.now_us;
        sim_work_request(w, n, 1000000 + k, &f);
        while (!all_hold(w, &f)) {
            if (w->world.now_us - begin > GIVE_UP_US)
                sim_broken(w, "latency", "an observation did not arrive everywhere");
            world_run_until(&w->world, w->world.now_us + STEP_US);
        }
        times[k] = w->world.now_us - begin;
    }
    qsort(times, count, sizeof *times, ascending);
    return times;
}

void sim_measure_latency(uint64_t seed, unsigned nodes, double loss, unsigned count)
{
    struct sim_world *w = open_calm(seed, nodes, loss);
    sim_work_begin(w);
    uint64_t *times = measure_spread(w, count);
    printf("simulated: N=%-3u loss %.1f %%: all nodes hold one observation after p50 %.1f ms, "
           "p99 %.1f ms, max %.1f ms (%u observations, beside %u requests/s at each)\n",
           nodes, loss * 100, (double)times[at_p50(count)] / 1e3,
           (double)times[at_p99(count)] / 1e3, (double)times[count - 1] / 1e3, count, REQUESTS_S);
    (void)fflush(stdout);
    free(times);
    sim_world_close(w);
}

static bool far_apart(const struct sim_world *w, unsigned a, unsigned b)
{
    return (a < w->config.nodes / 2) != (b < w->config.nodes / 2);
}

static void regions(struct sim_world *w, uint64_t one_way_us, double loss, bool cut)
{
    w->world.net.far_us = one_way_us;
    w->world.net.far_loss = loss;
    for (unsigned a = 0; a < w->config.nodes; a++) {
        w->world.net.region[a] = a < w->config.nodes / 2;
        for (unsigned b = 0; b < w->config.nodes; b++)
            if (far_apart(w, a, b))
                world_link(&w->world, a, b)->cut = cut;
    }
}

/* The time until all nodes that are up agree. */
static uint64_t measure_agreement(struct sim_world *w)
{
    char why[256];
    uint64_t begin = w->world.now_us;
    while (!sim_rest_agreed(w, why, sizeof why)) {
        if (w->world.now_us - begin > 2 * (uint64_t)GIVE_UP_US)
            sim_broken(w, "regions", "no agreement: %s", why);
        world_run_until(&w->world, w->world.now_us + 10 * SIM_MS);
    }
    return w->world.now_us - begin;
}

static uint64_t measure_joins(struct sim_world *w, unsigned count)
{
    uint64_t most_us = 0;
    for (unsigned k = 0; k < count; k++) {
        unsigned node = 1 + (unsigned)prng_below(&w->world.prng, w->config.nodes - 1);
        sim_node_crash(w, node);
        world_run_until(&w->world, w->world.now_us + 500 * SIM_MS);
        sim_node_start(w, node, false);
        uint64_t begin = w->world.now_us;
        while (!node_replication_ready(w->world.nodes[node].node->replication) &&
               w->world.now_us - begin < GIVE_UP_US)
            world_run_until(&w->world, w->world.now_us + SIM_MS);
        if (w->world.now_us - begin > most_us)
            most_us = w->world.now_us - begin;
        world_run_until(&w->world, w->world.now_us + 5 * SIM_S);
    }
    return most_us;
}

void sim_measure_regions(uint64_t seed, unsigned nodes, unsigned one_way_ms, double loss,
                         unsigned count)
{
    enum { JOINS = 20 };
    struct sim_world *w = open_calm(seed, nodes, 0);
    regions(w, (uint64_t)one_way_ms * SIM_MS, loss, false);
    sim_work_begin(w);
    world_run_until(&w->world, w->world.now_us + SETTLE_S * SIM_S);
    uint64_t *times = measure_spread(w, count);
    uint64_t joined_us = measure_joins(w, JOINS);
    regions(w, (uint64_t)one_way_ms * SIM_MS, loss, true);
    world_run_until(&w->world, w->world.now_us + 5 * SIM_S);
    regions(w, (uint64_t)one_way_ms * SIM_MS, loss, false);
    w->working = false;
    uint64_t agreed_us = measure_agreement(w);
    printf(
        "simulated: N=%u in two regions, %u ms and %.1f %% between them: all hold one "
        "observation after p50 %.0f ms, p99 %.0f ms, max %.0f ms; a router is ready at most %.1f "
        "s after its start (%d starts); after 5 s apart all agree in %.1f s\n",
        nodes, one_way_ms, loss * 100, (double)times[at_p50(count)] / 1e3,
        (double)times[at_p99(count)] / 1e3, (double)times[count - 1] / 1e3, (double)joined_us / 1e6,
        JOINS, (double)agreed_us / 1e6);
    (void)fflush(stdout);
    free(times);
    sim_world_close(w);
}

static uint64_t observations_out(const struct sim_world *w)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < w->config.nodes; i++) {
        struct crdt_state_stats s;
        crdt_state_stats(world_state(&w->world.nodes[i]), &s);
        sum += s.observations_out;
    }
    return sum;
}

void sim_measure_bytes(uint64_t seed, unsigned nodes, unsigned per_s)
{
    struct sim_world *w = open_calm(seed, nodes, 0);
    enum { SECONDS = 5, POINTS = 160 }; /* as in coding sessions */
    uint64_t bytes = w->world.net.bytes, made = observations_out(w);
    uint64_t requests = (uint64_t)SECONDS * per_s / POINTS;
    uint64_t begin = w->world.now_us;
    for (uint64_t k = 0; k < requests; k++) {
        world_run_until(&w->world, begin + k * SECONDS * SIM_S / requests);
        struct world_node *n = &w->world.nodes[prng_below(&w->world.prng, nodes)];
        sim_work_request_of(w, n, (unsigned)(1000000 + k), POINTS, NULL);
    }
    world_run_until(&w->world, w->world.now_us + 100 * SIM_MS);
    bytes = w->world.net.bytes - bytes;
    made = observations_out(w) - made;
    printf("simulated: N=%-3u %u observations/s: %.2f bytes on the wire per observation and peer, "
           "all headers, keep-alives and reports counted\n",
           nodes, per_s, (double)bytes / (double)made / (nodes - 1));
    sim_world_close(w);
}

static bool load_counts(struct sim_world *w, unsigned dead)
{
    for (unsigned i = 0; i < w->config.nodes; i++) {
        if (w->world.nodes[i].up && sim_rest_load_of(&w->world.nodes[i], w->world.nodes[dead].id))
            return true;
    }
    return false;
}

/* Chooses different routers, and gives each a load that the others count. */
static void draw_dead(struct sim_world *w, unsigned *dead, unsigned count, unsigned unique)
{
    for (unsigned i = 0; i < count; i++) {
        bool again = true;
        while (again) {
            dead[i] = (unsigned)prng_below(&w->world.prng, w->config.nodes);
            again = false;
            for (unsigned j = 0; j < i; j++)
                again = again || dead[j] == dead[i];
        }
        sim_work_request(w, &w->world.nodes[dead[i]], unique + i, NULL);
    }
    world_run_until(&w->world, w->world.now_us + 15 * SIM_MS);
    for (unsigned i = 0; i < count; i++)
        CHECK(load_counts(w, dead[i]));
}

static bool any_load_counts(struct sim_world *w, const unsigned *dead, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (load_counts(w, dead[i]))
            return true;
    }
    return false;
}

void sim_measure_idle(uint64_t seed, unsigned nodes)
{
    enum { SECONDS = 130 }; /* about the interval at which a session is renewed */
    struct sim_world *w = open_calm(seed, nodes, 0.001);
    world_run_until(&w->world, w->world.now_us + SETTLE_S * SIM_S);
    uint64_t packets = w->world.net.packets, bytes = w->world.net.bytes;
    world_run_until(&w->world, w->world.now_us + SECONDS * SIM_S);
    double router_seconds = (double)nodes * SECONDS;
    printf("simulated: N=%-3u idle: each router sends %.1f packets/s, %.0f bytes/s\n", nodes,
           (double)(w->world.net.packets - packets) / router_seconds,
           (double)(w->world.net.bytes - bytes) / router_seconds);
    (void)fflush(stdout);
    sim_world_close(w);
}

void sim_measure_death(uint64_t seed, unsigned nodes, unsigned at_once, unsigned count)
{
    struct sim_world *w = open_calm(seed, nodes, 0.001);
    uint64_t *times = calloc(count, sizeof *times);
    unsigned *dead = calloc(at_once, sizeof *dead);
    CHECK(times != NULL && dead != NULL && at_once > 0 && at_once < nodes);
    for (unsigned k = 0; k < count; k++) {
        draw_dead(w, dead, at_once, 2000000 + k * at_once);
        uint64_t begin = w->world.now_us;
        for (unsigned i = 0; i < at_once; i++)
            sim_node_crash(w, dead[i]);
        while (any_load_counts(w, dead, at_once) && w->world.now_us - begin < GIVE_UP_US)
            world_run_until(&w->world, w->world.now_us + 10 * SIM_MS);
        times[k] = w->world.now_us - begin;
        for (unsigned i = 0; i < at_once; i++)
            sim_node_start(w, dead[i], false);
        world_run_until(&w->world, w->world.now_us + 5 * SIM_S + prng_below(&w->world.prng, SIM_S));
    }
    qsort(times, count, sizeof *times, ascending);
    printf("simulated: N=%-3u %u killed at once: the load of all is gone everywhere after p50 "
           "%.2f s, p99 %.2f s, max %.2f s (%u times)\n",
           nodes, at_once, (double)times[at_p50(count)] / 1e6, (double)times[at_p99(count)] / 1e6,
           (double)times[count - 1] / 1e6, count);
    (void)fflush(stdout);
    free(dead);
    free(times);
    sim_world_close(w);
}
