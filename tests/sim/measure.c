#include "tests/sim/measure.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "tests/sim/sim.h"

enum { SETTLE_S = 3, REQUESTS_S = 2, STEP_US = 250, GIVE_UP_US = 20000000 };

/* A request that shows a point which nobody has: `unique` makes it. */
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
    c.ttl_ms = 80000; /* few sketches: memory of 256 nodes */
    c.spread_start = nodes > 16;
    c.requests_s = REQUESTS_S * nodes;
    struct sim_world *w = sim_world_open(&c);
    w->measuring = true;
    sim_start(w);
    world_run_until(&w->world, w->world.now_us + SETTLE_S * SIM_S);
    return w;
}

void sim_measure_latency(uint64_t seed, unsigned nodes, double loss, unsigned count)
{
    struct sim_world *w = open_calm(seed, nodes, loss);
    sim_work_begin(w);
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
    printf("simulated: N=%-3u loss %.1f %%: all nodes hold one observation after p50 %.1f ms, "
           "p99 %.1f ms, max %.1f ms (%u observations, beside %u requests/s at each)\n",
           nodes, loss * 100, (double)times[at_p50(count)] / 1e3,
           (double)times[at_p99(count)] / 1e3, (double)times[count - 1] / 1e3, count, REQUESTS_S);
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
    enum { SECONDS = 5, POINTS = 160 }; /* as coding sessions have */
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

void sim_measure_death(uint64_t seed, unsigned nodes, unsigned count)
{
    struct sim_world *w = open_calm(seed, nodes, 0.001);
    uint64_t *times = calloc(count, sizeof *times);
    CHECK(times != NULL);
    for (unsigned k = 0; k < count; k++) {
        unsigned dead = (unsigned)prng_below(&w->world.prng, nodes);
        sim_work_request(w, &w->world.nodes[dead], 2000000 + k, NULL);
        world_run_until(&w->world, w->world.now_us + 15 * SIM_MS);
        CHECK(load_counts(w, dead));
        uint64_t begin = w->world.now_us;
        sim_node_crash(w, dead);
        while (load_counts(w, dead) && w->world.now_us - begin < GIVE_UP_US)
            world_run_until(&w->world, w->world.now_us + 10 * SIM_MS);
        times[k] = w->world.now_us - begin;
        sim_node_start(w, dead, false);
        world_run_until(&w->world, w->world.now_us + 5 * SIM_S + prng_below(&w->world.prng, SIM_S));
    }
    qsort(times, count, sizeof *times, ascending);
    printf("simulated: N=%-3u the load of a killed router is gone everywhere after p50 %.2f s, "
           "max %.2f s (%u kills)\n",
           nodes, (double)times[at_p50(count)] / 1e6, (double)times[count - 1] / 1e6, count);
    free(times);
    sim_world_close(w);
}
