/* Maelstrom's broadcast workload in virtual time: nodes (tests/maelstrom/node.h), links with equal
 * delays, a mix of reads and broadcasts at random nodes, and a count of messages between nodes per
 * operation. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "tests/lib/world/world.h"
#include "tests/maelstrom/node.h"
#include "tests/sim/measure.h"
#include "tests/sim/sim.h"

enum { SECONDS = 30, SETUP_S = 2, LOOK_US = 1000, GIVE_UP_S = 20 };

struct item {
    uint64_t made_us, held_us; /* held_us: when all held the item; 0: not yet */
    unsigned holders;
};

struct arena {
    struct world world;
    struct mael_node **nodes;
    struct item *items;
    unsigned made, oldest; /* all items below `oldest` are everywhere */
    bool *has;             /* [item * nodes + node] */
};

static void on_send(void *context, unsigned to, const uint8_t *bytes, size_t len)
{
    struct world_node *n = context;
    struct gossip_address at = world_address(to, 0);
    world_send(n, &at, bytes, len);
}

static void on_random(void *context, void *out, size_t len)
{
    world_random(context, out, len);
}

static void on_receive(struct world_node *n, struct world_datagram *d)
{
    mael_node_datagram(n->process, d->from, d->bytes, d->len, n->world->now_us);
}

static void on_run(struct world_node *n)
{
    mael_node_run(n->process, n->world->now_us);
}

static uint64_t on_due_us(const struct world_node *n)
{
    return mael_node_due_us(n->process);
}

static const struct world_program program = {
    .receive = on_receive, .run = on_run, .due_us = on_due_us};

static void open_arena(struct arena *a, unsigned nodes, uint64_t delay_us, double loss,
                       unsigned items_max)
{
    *a = (struct arena){0};
    world_open(&a->world, nodes, 1);
    a->world.net.delay_min_us = a->world.net.delay_max_us = delay_us;
    a->world.net.loss = loss;
    a->nodes = calloc(nodes, sizeof(struct mael_node *));
    a->items = calloc(items_max, sizeof *a->items);
    a->has = calloc((size_t)nodes * items_max, sizeof *a->has);
    CHECK(a->nodes != NULL && a->items != NULL && a->has != NULL);
    for (unsigned i = 0; i < nodes; i++) {
        struct world_node *n = &a->world.nodes[i];
        struct mael_io io = {.context = n, .send = on_send, .random = on_random};
        n->program = &program;
        world_up(n);
        CHECK(mael_node_create(&a->nodes[i], n->name, i, nodes, &io, a->world.wall_ms,
                               a->world.now_us) == ERR_OK);
        n->process = a->nodes[i];
        mael_node_begin(a->nodes[i], a->world.now_us); /* as `topology` does */
        world_wake_plan(n);
    }
}

static void close_arena(struct arena *a)
{
    for (unsigned i = 0; i < a->world.count; i++)
        mael_node_destroy(a->nodes[i]);
    world_close(&a->world);
    free(a->nodes);
    free(a->items);
    free(a->has);
}

/* Records which elements have arrived where. */
static void look(struct arena *a)
{
    for (unsigned k = a->oldest; k < a->made; k++) {
        struct item *item = &a->items[k];
        for (unsigned i = 0; i < a->world.count && item->held_us == 0; i++) {
            bool *has = &a->has[(size_t)k * a->world.count + i];
            if (!*has && mael_node_element_has(a->nodes[i], k)) {
                *has = true;
                item->holders++;
            }
        }
        if (item->holders == a->world.count && item->held_us == 0)
            item->held_us = a->world.now_us;
    }
    while (a->oldest < a->made && a->items[a->oldest].held_us != 0)
        a->oldest++;
}

static void run_looking(struct arena *a, uint64_t until_us)
{
    while (a->world.now_us < until_us) {
        uint64_t next_us = a->world.now_us + LOOK_US;
        world_run_until(&a->world, next_us < until_us ? next_us : until_us);
        look(a);
    }
}

static int ascending(const void *x, const void *y)
{
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return a < b ? -1 : a > b;
}

static struct gossip_stats sum_of(const struct arena *a)
{
    struct gossip_stats sum = {0};
    for (unsigned i = 0; i < a->world.count; i++) {
        struct gossip_stats s;
        mael_node_stats(a->nodes[i], &s);
        sum.packets_out += s.packets_out;
        sum.parts_resent += s.parts_resent;
        sum.gaps += s.gaps;
    }
    return sum;
}

static void report(struct arena *a, unsigned operations, uint64_t delay_us, double loss,
                   const struct gossip_stats *sent)
{
    uint64_t *times = calloc(a->made, sizeof *times);
    CHECK(times != NULL && a->made > 0);
    for (unsigned i = 0; i < a->made; i++) {
        CHECK(a->items[i].held_us != 0);
        times[i] = a->items[i].held_us - a->items[i].made_us;
    }
    qsort(times, a->made, sizeof *times, ascending);
    unsigned middle = a->made / 2;
    unsigned most = (unsigned)((uint64_t)a->made * 99 / 100);
    printf("simulated: N=%-3u links of %llu ms, loss %.1f %%: %.1f messages between nodes for each "
           "of %u operations; an element is everywhere after p50 %.0f ms, p99 %.0f ms, max %.0f "
           "ms; %llu gaps, %llu parts sent again\n",
           a->world.count, (unsigned long long)delay_us / 1000, loss * 100,
           (double)sent->packets_out / operations, operations, (double)times[middle] / 1e3,
           (double)times[most] / 1e3, (double)times[a->made - 1] / 1e3,
           (unsigned long long)sent->gaps, (unsigned long long)sent->parts_resent);
    (void)fflush(stdout);
    free(times);
}

void sim_measure_broadcast(unsigned nodes, unsigned delay_ms, unsigned rate, double loss)
{
    struct arena a;
    uint64_t delay_us = (uint64_t)delay_ms * SIM_MS;
    unsigned operations = SECONDS * rate;
    open_arena(&a, nodes, delay_us, loss, operations);
    world_run(&a.world, SETUP_S * SIM_S);
    struct gossip_stats before = sum_of(&a);
    uint64_t begin_us = a.world.now_us;
    for (unsigned k = 0; k < operations; k++) {
        run_looking(&a, begin_us + (uint64_t)k * SIM_S / rate);
        struct world_node *n = &a.world.nodes[prng_below(&a.world.prng, nodes)];
        if (prng_below(&a.world.prng, 2) == 0)
            continue; /* a read */
        a.items[a.made] = (struct item){.made_us = a.world.now_us};
        CHECK(mael_node_element_add(n->process, a.made++, a.world.now_us) == ERR_OK);
        world_wake_plan(n);
    }
    struct gossip_stats after = sum_of(&a);
    after.packets_out -= before.packets_out;
    after.parts_resent -= before.parts_resent;
    after.gaps -= before.gaps;
    uint64_t give_up_us = a.world.now_us + (uint64_t)GIVE_UP_S * SIM_S;
    while (a.oldest < a.made && a.world.now_us < give_up_us)
        run_looking(&a, a.world.now_us + LOOK_US);
    report(&a, operations, delay_us, loss, &after);
    close_arena(&a);
}
