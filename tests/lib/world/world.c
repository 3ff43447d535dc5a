#include "tests/lib/world/world.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "base/hash.h"

enum { INDEX_BYTES = 16 << 20, CALL_BYTES_MAX = 65536, CALL_STALL_US = 3000000 };

void world_open(struct world *w, unsigned count, uint64_t seed)
{
    *w = (struct world){
        .now_us = 1000000,
        .wall_ms = 1700000000000,
        .count = count,
        .seeds = 1,
        .checks = true,
        .call_bytes_max = CALL_BYTES_MAX,
        .call_pause_us = 1,
        .call_stall_us = CALL_STALL_US,
    };
    prng_seed(&w->prng, seed);
    world_queue_init(&w->queue);
    gossip_keyring_insecure(&w->keyring);
    world_net_open(w);
    world_calls_open(w);
    w->nodes = calloc(count, sizeof *w->nodes);
    struct node_config config;
    CHECK(w->nodes != NULL && node_config_default(&config) == ERR_OK);
    config.state.index_bytes = INDEX_BYTES; /* quick to make and to check */
    for (unsigned i = 0; i < count; i++) {
        struct world_node *n = &w->nodes[i];
        n->world = w;
        n->number = i;
        (void)snprintf(n->name, sizeof n->name, "router-%u", i);
        n->id = gossip_node_id(n->name);
        n->address = world_address(i, 0);
        n->program = &world_router;
        n->keyring = w->keyring;
        n->config = config;
        n->config.router.seed = i + 1;
        n->config.replication.has_seeds = i > 0;
        n->config.replication.admin = "127.0.0.1:9000";
        n->config.keyring = &n->keyring;
    }
}

void world_close(struct world *w)
{
    w->closing = true;
    for (unsigned i = 0; i < w->count; i++) {
        if (w->nodes[i].node && w->checks)
            node_check(w->nodes[i].node);
        if (w->nodes[i].node)
            world_kill(w, i);
        else if (w->nodes[i].up)
            world_down(&w->nodes[i]);
        free(w->nodes[i].socket);
    }
    for (struct world_event e; world_queue_take(&w->queue, &e);)
        e.happen(w, &e);
    world_queue_free(&w->queue);
    world_calls_close(w);
    world_net_close(w);
    free(w->nodes);
}

/* --- time ----------------------------------------------------------------------------------- */

void world_run_until(struct world *w, uint64_t until_us)
{
    struct world_event e;
    while (world_queue_next_us(&w->queue) <= until_us && world_queue_take(&w->queue, &e)) {
        CHECK(e.at_us >= w->now_us);
        w->now_us = e.at_us;
        w->events++;
        e.happen(w, &e);
    }
    w->now_us = until_us;
}

void world_run(struct world *w, uint64_t us)
{
    world_run_until(w, w->now_us + us);
}

bool world_until(struct world *w, uint64_t us, bool (*done)(struct world *w))
{
    uint64_t until = w->now_us + us;
    while (!done(w)) {
        if (w->now_us >= until)
            return false;
        world_run(w, 1000);
    }
    return true;
}

void world_put(struct world *w, uint64_t later_us, const struct world_event *e)
{
    struct world_event later = *e;
    later.at_us = w->now_us + later_us;
    world_queue_put(&w->queue, &later);
}

bool world_chance(struct world *w, double p)
{
    return p > 0 && prng_unit(&w->prng) < p;
}

void world_trace(struct world *w, uint64_t what)
{
    w->trace = hash_mix(w->trace * 31 + hash_mix(w->now_us ^ what << 20) + what);
}

uint64_t world_mono_us(const struct world_node *n)
{
    int64_t passed = (int64_t)(n->world->now_us - n->mono_since_us);
    return n->mono_base_us + (uint64_t)(passed + passed * n->ppm / 1000000);
}

/* The time when the node's clock will show `mono_us`, rounded up. */
static uint64_t when(const struct world_node *n, uint64_t mono_us)
{
    if (mono_us <= n->mono_base_us)
        return n->mono_since_us;
    uint64_t passed = mono_us - n->mono_base_us;
    if (passed > UINT64_C(1) << 42)
        return UINT64_MAX;
    if (n->ppm == 0)
        return n->mono_since_us + passed;
    return n->mono_since_us + passed * 1000000 / (uint64_t)(1000000 + n->ppm) + 1;
}

uint64_t world_wall_ms(const struct world_node *n)
{
    return (uint64_t)((int64_t)(n->world->wall_ms + world_ms(n->world)) + n->wall_offset_us / 1000);
}

/* --- a node's life -------------------------------------------------------------------------- */

static void wake(void *context, struct world_event *e)
{
    struct world *w = context;
    struct world_node *n = &w->nodes[e->node];
    if (w->closing || !world_runs(n) || n->life != e->a || n->wake_tag != e->b)
        return;
    n->wake_us = UINT64_MAX;
    world_touch(n);
}

void world_wake_plan(struct world_node *n)
{
    struct world *w = n->world;
    if (w->closing || !world_runs(n))
        return;
    uint64_t at = when(n, n->program->due_us(n));
    if (at < w->now_us)
        at = w->now_us;
    if (at >= n->wake_us)
        return;
    n->wake_us = at;
    world_queue_put(
        &w->queue,
        &(struct world_event){
            .at_us = at, .happen = wake, .node = n->number, .a = n->life, .b = ++n->wake_tag});
}

void world_touch(struct world_node *n)
{
    n->program->run(n);
    if (n->world->hooks.stepped)
        n->world->hooks.stepped(n->world->hooks.context, n);
    world_wake_plan(n);
}

void world_up(struct world_node *n)
{
    CHECK(!n->up);
    n->up = true;
    n->leaving = false;
    n->life++;
    n->paused_until_us = 0;
    n->wake_us = UINT64_MAX;
    prng_seed(&n->random, prng_next(&n->world->prng));
}

void world_down(struct world_node *n)
{
    CHECK(n->up);
    for (unsigned i = 0; i < n->socket_count; i++)
        free(n->socket[i]);
    n->socket_count = 0;
    n->up = false;
    n->paused_until_us = 0;
}

void world_random(struct world_node *n, void *out, size_t len)
{
    uint8_t *bytes = out;
    for (size_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)prng_next(&n->random);
}

/* --- pauses --------------------------------------------------------------------------------- */

static void resume(void *context, struct world_event *e)
{
    struct world *w = context;
    struct world_node *n = &w->nodes[e->node];
    if (w->closing || !n->up || n->life != e->a || n->paused_until_us != e->at_us)
        return;
    n->paused_until_us = 0;
    n->wake_us = UINT64_MAX;
    if (n->program->late)
        n->program->late(n, e->at_us - e->b);
    unsigned count = n->socket_count;
    n->socket_count = 0;
    for (unsigned i = 0; i < count; i++) {
        world_deliver(n, n->socket[i]);
        free(n->socket[i]);
    }
    world_touch(n);
}

void world_pause(struct world_node *n, uint64_t until_us)
{
    struct world *w = n->world;
    CHECK(n->up && until_us >= w->now_us);
    if (!n->socket)
        n->socket = calloc(WORLD_SOCKET_MAX, sizeof(struct world_datagram *));
    CHECK(n->socket != NULL);
    n->paused_until_us = until_us;
    world_queue_put(
        &w->queue,
        &(struct world_event){
            .at_us = until_us, .happen = resume, .node = n->number, .a = n->life, .b = w->now_us});
}
