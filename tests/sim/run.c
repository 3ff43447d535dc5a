#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/hash.h"
#include "tests/sim/sim.h"

enum {
    TABLE_BUCKETS = 8192,          /* buckets of every index: some 50,000 entries */
    TABLE_BUCKETS_PRESSURE = 1024, /* far fewer than are observed */
    ARMED_S = 9, /* until all have met; digests find everything lost until then, a peer a second */
};

/* The budget of an index of `buckets` buckets. */
static uint64_t index_bytes_for(uint64_t buckets, const struct sim_config *c, uint64_t *got)
{
    struct node_config node;
    CHECK(node_config_default(&node) == ERR_OK);
    for (uint64_t bytes = 1 << 20;; bytes += 64 * (uint64_t)(1 << 10)) {
        struct crdt_index *x;
        struct crdt_index_config config = {
            .bytes_max = bytes,
            .replicas_max = node.state.replicas_max,
            .ttl_generations = (c->ttl_ms + c->generation_ms - 1) / c->generation_ms,
            .generation = 1,
            .replicated = true,
        };
        CHECK(bytes < 1 << 30);
        if (crdt_index_create(&x, &config) != ERR_OK)
            continue;
        struct crdt_index_stats stats;
        crdt_index_stats(x, &stats);
        crdt_index_destroy(x);
        *got = stats.buckets;
        if (stats.buckets >= buckets)
            return bytes;
    }
}

void sim_config_of_seed(struct sim_config *c, uint64_t seed, int profile, int nodes)
{
    struct prng p;
    prng_seed(&p, seed * 7919 + 1);
    uint64_t draw[4];
    for (unsigned i = 0; i < 4; i++)
        draw[i] = prng_next(&p);
    *c = (struct sim_config){
        .seed = seed,
        .profile = profile >= 0 ? (enum sim_profile)profile : seed % SIM_PROFILES,
        .nodes = nodes > 0 ? (unsigned)nodes : 3 + (unsigned)(draw[0] % 6),
        .engines = 6,
        .seconds = 20,
        .requests_s = 40,
        .generation_ms = 1000,
        .ttl_ms = 40000,
        .seeds = WORLD_SEEDS_MAX,
        .check_every = 500,
        .away_ms_max = 6000,
        .elsewhere = 0.2,
    };
    if (c->profile == SIM_CALM && nodes <= 0)
        c->nodes++; /* enough nodes for relays: without relays a gap is no fault of theirs */
    bool relays = c->profile == SIM_CALM ? seed / SIM_PROFILES % 4 > 0 : draw[1] % 3 == 0;
    if (relays && c->nodes > 3)
        c->relay_above = c->nodes / 2;
    if (c->profile == SIM_STRICT || c->profile == SIM_JOIN)
        c->reconcile_us = UINT32_MAX;
    if (c->profile == SIM_JOIN)
        c->requests_s = 80; /* much news while a snapshot is on the way */
    /* Routers that listen on all addresses, and join by way of a single router or of several. */
    c->unadvertised = (unsigned)(draw[3] % 4); /* none, all, every second, every third */
    /* A storm may leave an only seed dead, or make the seed refuse a node that returns with an
     * earlier clock. */
    if (c->profile < SIM_STORM && draw[3] / 4 % 2 == 0)
        c->seeds = 1;
    /* Short memories of a node's own deltas, so that some are lost and must be reconciled. */
    if (c->profile >= SIM_STORM && draw[2] % 2 == 0)
        c->ring_bytes = 16384;
    if (c->profile == SIM_LONG) {
        c->nodes = nodes > 0 ? (unsigned)nodes : 3 + (unsigned)(draw[0] % 2);
        c->seconds = 3600;
        c->requests_s = 2;
        c->generation_ms = 10000;
        c->ttl_ms = 600000;
        c->forget_us = 300 * SIM_S;
        c->away_ms_max = 500000;
        c->check_every = 3000;
    }
    if (c->profile == SIM_ONE_SEED) {
        c->seeds = c->unadvertised = 1;
        c->elsewhere = 1;
        c->clocks_rise = true;
    }
    if (c->profile == SIM_CHURN) {
        c->seconds = 120;
        c->requests_s = 10;
        c->ttl_ms = 16000;
        c->engines = 8;
        c->clocks_rise = true;
    }
    if (c->profile == SIM_WAN)
        c->quiet = seed / SIM_PROFILES % 2 == 0;
    c->far_all = seed / SIM_PROFILES % 4 > 1;
}

/* Places nodes, beyond the places common to all profiles. */
static void place_nodes(struct sim_world *w)
{
    struct world_net *net = &w->world.net;
    for (unsigned i = 0; i < w->config.nodes; i++) {
        if (w->config.profile == SIM_ONE_SEED)
            net->behind[i] = i % 2; /* the seed is not behind a translator */
        if (w->config.profile == SIM_WAN)
            net->region[i] = w->config.far_all ? i : i % 2;
    }
    net->far_us = w->config.far_all ? 100 * SIM_MS : 75 * SIM_MS;
    net->far_loss = 0.005;
}

struct sim_world *sim_world_open(const struct sim_config *config)
{
    struct sim_world *w = calloc(1, sizeof *w);
    CHECK(w != NULL);
    w->config = *config;
    world_open(&w->world, config->nodes, config->seed);
    w->world.now_us = 0;
    w->world.wall_ms = UINT64_C(1790000000000);
    w->world.seeds = config->seeds;
    w->world.checks = false; /* the oracles check at times of their own */
    w->config.index_bytes =
        index_bytes_for(config->profile == SIM_PRESSURE ? TABLE_BUCKETS_PRESSURE : TABLE_BUCKETS,
                        config, &w->index_buckets);
    w->book = sim_book_create();
    /* Calls are slow in profiles in which news during a call may not be lost. */
    bool slow = config->profile == SIM_JOIN;
    w->world.call_bytes_max = (slow ? 500 : 4000) + prng_below(&w->world.prng, slow ? 3500 : 26000);
    w->world.call_pause_us =
        1 + prng_below(&w->world.prng, (sim_pure_stream(w) ? 100 : 30) * SIM_MS);
    if (config->profile == SIM_WAN)
        w->world.call_bytes_max = 65536; /* a window */
    place_nodes(w);
    sim_net_open(w);
    sim_engines_open(w);
    sim_nodes_open(w);
    for (unsigned i = 0; i < config->nodes; i++) {
        struct sim_record *record = &w->records[i];
        record->seen = calloc(config->nodes, sizeof *record->seen);
        CHECK(record->seen != NULL);
        sim_reported_open(w, &w->world.nodes[i]);
    }
    return w;
}

void sim_world_close(struct sim_world *w)
{
    for (unsigned i = 0; i < w->config.nodes; i++) {
        free(w->records[i].seen);
        sim_reported_close(&w->world.nodes[i]);
    }
    world_close(&w->world);
    sim_net_close(w);
    sim_book_free(w->book);
    free(w);
}

static void start_one(void *context, struct world_event *e)
{
    struct sim_world *w = context;
    if (!w->world.closing)
        sim_node_start(w, e->node, false);
}

void sim_start(struct sim_world *w)
{
    unsigned n = w->config.nodes;
    for (unsigned i = 0; i < n; i++) {
        uint64_t spread = w->config.spread_start ? i * 10 * SIM_MS : 0;
        world_queue_put(&w->world.queue,
                        &(struct world_event){.at_us = w->world.now_us + spread +
                                                       prng_below(&w->world.prng, 300 * SIM_MS),
                                              .happen = start_one,
                                              .node = i});
    }
    /* In a wide network, lost reports come later, by comparisons. */
    uint64_t far_s = w->config.profile == SIM_WAN ? 6 : 0;
    uint64_t most = w->world.now_us + (ARMED_S + far_s + n / 8) * SIM_S;
    char why[256] = "";
    do {
        if (w->world.now_us >= most)
            sim_broken(w, "start", "not everybody met: %s", why);
        world_run_until(&w->world, w->world.now_us + 100 * SIM_MS);
    } while (w->world.now_us < 2 * SIM_S + (w->config.spread_start ? n * 10 * SIM_MS : 0) ||
             !sim_rest_agreed(w, why, sizeof why));
    for (unsigned i = 0; i < n; i++)
        gossip_stats(world_gossip(&w->world.nodes[i]), &sim_of(&w->world.nodes[i])->begun);
    sim_say(w, "all have met");
}

void sim_run(struct sim_world *w)
{
    sim_start(w);
    sim_work_begin(w);
    sim_trouble_begin(w);
    uint64_t until = w->world.now_us + w->config.seconds * SIM_S;
    while (w->world.now_us < until) {
        world_run_until(&w->world,
                        w->world.now_us + (w->config.profile == SIM_LONG ? 1000 : 200) * SIM_MS);
        sim_oracle_all(w);
    }
    w->working = false;
    sim_trouble_end(w);
    sim_rest(w);
}

void sim_say(const struct sim_world *w, const char *format, ...)
{
    if (!w->config.verbose)
        return;
    va_list args;
    va_start(args, format);
    printf("%10.6f ", (double)w->world.now_us / 1e6);
    vprintf(format, args);
    putchar('\n');
    va_end(args);
}

void sim_broken(const struct sim_world *w, const char *rule, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("BROKEN %s: seed %llu, %s, %u nodes, at %.6f s: ", rule,
           (unsigned long long)w->config.seed, sim_profile_text(w->config.profile), w->config.nodes,
           (double)w->world.now_us / 1e6);
    vprintf(format, args);
    putchar('\n');
    va_end(args);
    (void)fflush(stdout);
    _Exit(1);
}
