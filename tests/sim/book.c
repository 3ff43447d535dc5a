/* The simulation's own book: each observation of an engine's process by a router, with the time;
 * and the entries that each node was seen to hold. From the book follows which entries indexes may
 * and must contain.
 *
 * An observation is (id, code, process of an engine, generation). The generation is computed from
 * the node's cluster time, which follows a rule of its own. The process that a router believes in
 * follows from its own readings and from others' possible reports. If several processes are
 * possible, each is allowed and none is required. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/hash.h"
#include "crdt/limits.h"
#include "tests/sim/sim.h"

enum {
    NODES = 16, /* nodes whose entries are watched */
    PROCESSES = 4096,
    GRAIN_MS = 2000, /* start times nearer than this are equal to a router */
};

/* An observation without the generation. */
struct key {
    uint64_t id48;
    uint16_t process;
    uint8_t engine, code;
    /* A router observed the key without knowing the process. The router may learn later that it was
     * this process, and the router's clock may have been set meanwhile: then any generation may be
     * right. */
    bool early;
    /* Like `early`, and the router's clock was, or was set, further off the engine's than the
     * tolerance: a later process may pass for this process (docs/jepsen-lite.md, "Known
     * limits"). */
    bool off;
    bool early_at[NODES]; /* per router: `early`, in the router's present life */
};

struct fact {
    uint32_t key; /* + 1; 0: none */
    uint32_t generation;
};

struct engine {
    uint64_t starts[PROCESSES];   /* [0]: never shown */
    unsigned processes, first;    /* `first`: the first process with the engine's present name */
    uint64_t newest;              /* latest start time that any router has read */
    uint64_t read[SIM_NODES_MAX]; /* start time that each node read last in the present life */
};

struct sim_book {
    struct key *keys;
    uint32_t (*held)[NODES]; /* per key: the newest generation at the node; 0: none */
    size_t count, room;
    uint32_t *places; /* hash table of keys: index + 1 */
    size_t places_room;
    struct fact *facts; /* hash table */
    size_t facts_count, facts_room;
    struct engine *engines;
};

/* --- tables --------------------------------------------------------------------------------- */

static void *zeroed(size_t count, size_t size)
{
    void *at = calloc(count, size);
    CHECK(at != NULL);
    return at;
}

struct sim_book *sim_book_create(void)
{
    struct sim_book *b = zeroed(1, sizeof *b);
    b->places_room = b->facts_room = 1 << 12;
    b->places = zeroed(b->places_room, sizeof *b->places);
    b->facts = zeroed(b->facts_room, sizeof *b->facts);
    b->engines = zeroed(SIM_ENGINES_MAX, sizeof *b->engines);
    return b;
}

void sim_book_free(struct sim_book *b)
{
    if (!b)
        return;
    free(b->keys);
    free(b->held);
    free(b->places);
    free(b->facts);
    free(b->engines);
    free(b);
}

static uint32_t *place_of(const struct sim_book *b, const struct key *k)
{
    uint64_t h = hash_mix(k->id48 ^ (uint64_t)k->code << 56) ^
                 hash_mix((uint64_t)k->engine << 16 | k->process);
    for (size_t i = h;; i++) {
        uint32_t *at = &b->places[i & (b->places_room - 1)];
        if (*at == 0)
            return at;
        const struct key *known = &b->keys[*at - 1];
        if (known->id48 == k->id48 && known->process == k->process && known->engine == k->engine &&
            known->code == k->code)
            return at;
    }
}

/* The key's number + 1; 0: not observed. */
static uint32_t find(const struct sim_book *b, const struct key *k)
{
    return *place_of(b, k);
}

static uint32_t find_or_add(struct sim_book *b, const struct key *k)
{
    uint32_t known = find(b, k);
    if (known != 0)
        return known;
    if (b->count == b->room) {
        b->room = b->room ? b->room * 2 : 4096;
        b->keys = realloc(b->keys, b->room * sizeof *b->keys);
        b->held = realloc(b->held, b->room * sizeof *b->held);
        CHECK(b->keys != NULL && b->held != NULL);
    }
    if (b->count * 2 >= b->places_room) {
        free(b->places);
        b->places_room *= 2;
        b->places = zeroed(b->places_room, sizeof *b->places);
        for (size_t i = 0; i < b->count; i++)
            *place_of(b, &b->keys[i]) = (uint32_t)(i + 1);
    }
    b->keys[b->count] = *k;
    memset(b->held[b->count], 0, sizeof b->held[0]);
    return *place_of(b, k) = (uint32_t)++b->count;
}

static struct fact *fact_place(const struct sim_book *b, struct fact f)
{
    for (size_t i = hash_mix((uint64_t)f.key << 32 | f.generation);; i++) {
        struct fact *at = &b->facts[i & (b->facts_room - 1)];
        if (at->key == 0 || (at->key == f.key && at->generation == f.generation))
            return at;
    }
}

static void fact_add(struct sim_book *b, struct fact f)
{
    if (b->facts_count * 2 >= b->facts_room) {
        struct fact *old = b->facts;
        size_t room = b->facts_room;
        b->facts_room *= 2;
        b->facts = zeroed(b->facts_room, sizeof *b->facts);
        for (size_t i = 0; i < room; i++) {
            if (old[i].key != 0)
                *fact_place(b, old[i]) = old[i];
        }
        free(old);
    }
    struct fact *at = fact_place(b, f);
    b->facts_count += at->key == 0;
    *at = f;
}

/* --- what happens --------------------------------------------------------------------------- */

void sim_book_started(struct sim_world *w, unsigned engine)
{
    struct engine *e = &w->book->engines[engine];
    if (e->processes == 0)
        e->processes = 1; /* the process that never showed a start */
    CHECK(e->processes < PROCESSES);
    e->starts[e->processes++] = w->engines[engine].started_ms;
}

void sim_book_replaced(struct sim_world *w, unsigned engine)
{
    struct engine *e = &w->book->engines[engine];
    e->first = e->processes;
    e->newest = 0;
    memset(e->read, 0, sizeof e->read);
}

void sim_book_read(struct sim_world *w, const struct world_node *n, unsigned engine)
{
    struct engine *e = &w->book->engines[engine];
    uint64_t started = w->engines[engine].started_ms;
    e->read[n->number] = started;
    if (node_replication_ready(n->node->replication) && started > e->newest)
        e->newest = started;
}

void sim_book_joined(struct sim_world *w, const struct world_node *n)
{
    for (unsigned i = 0; i < w->config.engines; i++) {
        struct engine *e = &w->book->engines[i];
        if (e->read[n->number] > e->newest)
            e->newest = e->read[n->number];
    }
}

void sim_book_forget(struct sim_world *w, const struct world_node *n, bool new_life)
{
    for (unsigned i = 0; new_life && i < w->config.engines; i++)
        w->book->engines[i].read[n->number] = 0;
    for (size_t i = 0; n->number < NODES && i < w->book->count; i++) {
        w->book->held[i][n->number] = 0;
        if (new_life)
            w->book->keys[i].early_at[n->number] = false;
    }
}

/* The first generation of the engine's name at the node; 0: no such name. */
static uint32_t oldest_of(const struct sim_world *w, const struct world_node *n, unsigned engine)
{
    const struct crdt_registry *r = crdt_state_registry(node_state_crdt(n->node->state));
    int slot = crdt_registry_by_name(r, slice_of_cstr(w->engines[engine].name));
    return slot < 0 ? 0
                    : (uint32_t)(UINT64_C(1000) * crdt_registry_oldest_s(r, (unsigned)slot) /
                                 w->config.generation_ms);
}

void sim_book_set_back(struct sim_world *w, const struct world_node *n, uint32_t ahead)
{
    struct sim_book *b = w->book;
    uint32_t now = sim_generation(n).least;
    struct fact *old = zeroed(b->facts_count + 1, sizeof *old);
    size_t count = 0;
    for (size_t i = 0; i < b->facts_room; i++) {
        if (b->facts[i].key != 0 && b->facts[i].generation > now)
            old[count++] = b->facts[i];
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t earlier = old[i].generation - (ahead > now ? ahead - now : 0);
        uint32_t oldest = oldest_of(w, n, b->keys[old[i].key - 1].engine);
        for (uint32_t g = earlier - 1; g <= earlier + 1; g++) { /* the cut between generations */
            uint32_t moved = g < now ? g : now;
            fact_add(b, (struct fact){old[i].key, moved > oldest ? moved : oldest});
        }
    }
    free(old);
    sim_book_forget(w, n, false);
}

void sim_book_dropped(struct sim_world *w, const struct world_node *n, unsigned engine)
{
    for (size_t i = 0; n->number < NODES && i < w->book->count; i++) {
        if (w->book->keys[i].engine == engine)
            w->book->held[i][n->number] = 0;
    }
}

struct sim_generations sim_generation(const struct world_node *n)
{
    const struct sim_world *w = (const struct sim_world *)(const void *)n->world;
    uint64_t now_ms = node_state_cluster_ms(n->node->state, world_mono_us(n) / 1000);
    uint32_t now = (uint32_t)(now_ms / w->config.generation_ms), seen = sim_of(n)->generation;
    return (struct sim_generations){.least = now, .most = now > seen ? now : seen};
}

static uint32_t ttl_of(const struct sim_world *w)
{
    return (w->config.ttl_ms + w->config.generation_ms - 1) / w->config.generation_ms;
}

uint32_t sim_floor(const struct world_node *n)
{
    const struct sim_world *w = (const struct sim_world *)(const void *)n->world;
    uint32_t shown = crdt_index_floor(crdt_state_index(world_state(n)));
    uint32_t due = sim_generation(n).most - ttl_of(w);
    return w->config.profile == SIM_PRESSURE ? shown : due;
}

/* True if the node's cluster time is further off than the tolerance from engines' clocks, which are
 * right. A cluster time ahead lets observations pass for a later process's. A cluster time behind
 * will be set, together with the node's observations, and may then be ahead (seed 546412489: from
 * an hour behind to an hour ahead, before the start time was read). */
static bool is_off(const struct world_node *n)
{
    const struct sim_world *w = (const struct sim_world *)(const void *)n->world;
    uint64_t now_ms = node_state_cluster_ms(n->node->state, world_mono_us(n) / 1000);
    uint64_t right_ms = sim_wall_ms(w);
    return now_ms > right_ms + CRDT_EARLY_SKEW_MS || now_ms + CRDT_EARLY_SKEW_MS < right_ms;
}

void sim_book_set(struct sim_world *w, const struct world_node *n)
{
    for (size_t i = 0; n->number < NODES && is_off(n) && i < w->book->count; i++)
        w->book->keys[i].off |= w->book->keys[i].early_at[n->number];
}

void sim_book_observed(struct sim_world *w, struct world_node *n, unsigned engine, uint64_t id48,
                       uint8_t code)
{
    struct sim_book *b = w->book;
    const struct engine *e = &b->engines[engine];
    /* A router that has not joined takes no start time for news yet. */
    uint64_t read = node_replication_ready(n->node->replication) ? e->read[n->number] : 0;
    struct sim_generations now = sim_generation(n);
    bool off = read == 0 && is_off(n);
    uint32_t only = 0;
    unsigned possible = 0;
    for (unsigned i = e->processes; i-- > 0;) {
        if (i < e->first && i > 0)
            continue; /* [0] belongs to every name */
        bool unread = e->starts[i] > e->newest;
        if (unread && (read != 0 || e->starts[i] != w->engines[engine].started_ms))
            continue;
        if (e->starts[i] + GRAIN_MS < read)
            break; /* all earlier processes, too */
        struct key k = {id48, (uint16_t)i, (uint8_t)engine, code, false, false, {false}};
        uint32_t known = find_or_add(b, &k);
        for (uint32_t g = now.least; g <= now.most; g++)
            fact_add(b, (struct fact){known, g});
        b->keys[known - 1].early |= read == 0 && i > 0;
        b->keys[known - 1].off |= off;
        if (read == 0 && n->number < NODES)
            b->keys[known - 1].early_at[n->number] = true;
        only = unread ? only : known;
        possible += !unread;
    }
    /* Under pressure the index may have no room for the observation. */
    if (possible == 1 && n->number < NODES && w->config.profile != SIM_PRESSURE)
        b->held[only - 1][n->number] = now.least;
}

/* --- what is seen --------------------------------------------------------------------------- */

/* The process with the given start time; -1: none. */
static int process_of(const struct engine *e, uint64_t started)
{
    for (unsigned i = e->processes; i-- > 0;) {
        if (e->starts[i] == started)
            return (int)i;
    }
    return -1;
}

/* True if a clock too far off observed the key for an earlier process. */
static bool was_off(const struct sim_book *b, struct key k)
{
    while (k.process > 0) {
        k.process--;
        uint32_t known = find(b, &k);
        if (known != 0 && b->keys[known - 1].off)
            return true;
    }
    return false;
}

bool sim_book_seen(struct sim_world *w, const struct world_node *n, unsigned engine,
                   uint64_t started, uint64_t id48, uint8_t code, uint32_t generation)
{
    struct sim_book *b = w->book;
    int process = process_of(&b->engines[engine], started);
    if (process < 0)
        return false;
    struct key k = {id48, (uint16_t)process, (uint8_t)engine, code, false, false, {false}};
    uint32_t known = find(b, &k);
    bool is_fact = known != 0 && (b->keys[known - 1].early ||
                                  fact_place(b, (struct fact){known, generation})->key != 0);
    if (!is_fact)
        return process > 0 && was_off(b, k);
    uint32_t *held = n->number < NODES ? &b->held[known - 1][n->number] : NULL;
    if (held && *held < generation)
        *held = generation;
    return true;
}

/* A node's knowledge of an engine. */
struct having {
    int slot;
    int process; /* the process in force; -1: not certain */
    unsigned first;
    uint64_t oldest_ms; /* older entries are from an earlier life of the name */
};

static void have(struct sim_world *w, struct world_node *n, struct having *out)
{
    const struct crdt_registry *r = crdt_state_registry(world_state(n));
    for (unsigned i = 0; i < w->config.engines; i++) {
        out[i] =
            (struct having){.slot = crdt_registry_by_name(r, slice_of_cstr(w->engines[i].name)),
                            .process = -1,
                            .first = w->book->engines[i].first};
        if (out[i].slot < 0)
            continue;
        out[i].oldest_ms = UINT64_C(1000) * crdt_registry_oldest_s(r, (unsigned)out[i].slot);
        const struct crdt_incarnation *now =
            &crdt_registry_at(r, (unsigned)out[i].slot)->incarnation;
        /* A raise is a loss of the cache without a new start. */
        if (now->raises == 0)
            out[i].process = process_of(&w->book->engines[i], now->started);
    }
}

/* Checks that the node has the key in the given generation or later, or need not have it. */
static void must_hold(struct sim_world *w, struct world_node *n, const struct having *having,
                      const struct key *k, uint32_t least, uint32_t floor, const char *why)
{
    const struct having *h = &having[k->engine];
    if (least < floor || k->process < h->first || (h->slot >= 0 && h->process != k->process))
        return;
    if ((uint64_t)least * w->config.generation_ms < h->oldest_ms)
        return;
    /* The name may be forgotten earlier: no router named it for that time. */
    if (h->slot < 0 && (w->config.profile == SIM_CHURN || w->config.profile == SIM_LONG))
        return;
    uint32_t generation = 0;
    bool has = h->slot >= 0 && crdt_index_get(crdt_state_index(world_state(n)), k->id48,
                                              (unsigned)h->slot, k->code, &generation) == ERR_OK;
    if (!has || generation < least)
        sim_broken(w, "lost observation",
                   "%s lacks id %012llx code %u of %s generation %u (%s %u), which %s", n->name,
                   (unsigned long long)k->id48, k->code, w->engines[k->engine].name, least,
                   has ? "has" : "has not", generation, why);
}

void sim_book_kept(struct sim_world *w, struct world_node *n)
{
    struct having having[SIM_ENGINES_MAX];
    const struct sim_book *b = w->book;
    uint32_t floor = sim_floor(n);
    if (n->number >= NODES)
        return;
    have(w, n, having);
    for (size_t i = 0; i < b->count; i++) {
        const struct key *k = &b->keys[i];
        uint32_t *held = &b->held[i][n->number];
        if (*held == 0)
            continue;
        if (*held < floor || k->process < having[k->engine].first ||
            (having[k->engine].slot >= 0 && having[k->engine].process != k->process))
            *held = 0; /* expired, or the cache is gone for good */
        else
            must_hold(w, n, having, k, *held, floor, "it had");
    }
}

void sim_book_spread(struct sim_world *w)
{
    const struct sim_book *b = w->book;
    uint32_t floor = 0;
    unsigned watched = w->config.nodes < NODES ? w->config.nodes : NODES;
    for (unsigned i = 0; i < w->config.nodes; i++) {
        uint32_t own = w->world.nodes[i].up ? sim_floor(&w->world.nodes[i]) : 0;
        floor = own > floor ? own : floor;
    }
    for (unsigned i = 0; i < watched; i++) {
        struct world_node *n = &w->world.nodes[i];
        if (!n->up)
            continue;
        struct having having[SIM_ENGINES_MAX];
        have(w, n, having);
        for (size_t k = 0; k < b->count; k++) {
            uint32_t newest = 0;
            for (unsigned j = 0; j < watched; j++) {
                if (w->world.nodes[j].up && b->held[k][j] > newest)
                    newest = b->held[k][j];
            }
            if (newest == 0)
                continue;
            must_hold(w, n, having, &b->keys[k], newest, floor, "a living node made or had");
            w->required++;
        }
    }
}

/* --- engines -------------------------------------------------------------------------------- */

void sim_book_processes(struct sim_world *w, struct world_node *n)
{
    const struct crdt_registry *r = crdt_state_registry(world_state(n));
    for (unsigned i = 0; i < w->config.engines; i++) {
        int slot = crdt_registry_by_name(r, slice_of_cstr(w->engines[i].name));
        const struct engine *e = &w->book->engines[i];
        bool known = false;
        for (unsigned k = 0; k < w->config.nodes; k++)
            known = known || (w->world.nodes[k].up && e->read[k] == w->engines[i].started_ms &&
                              node_replication_ready(w->world.nodes[k].node->replication));
        if (slot < 0 || !known)
            continue; /* no node has the name, or no living node has read of the last process */
        uint64_t started = crdt_registry_at(r, (unsigned)slot)->incarnation.started;
        if (process_of(e, started) < 0 || started + GRAIN_MS < e->newest)
            sim_broken(w, "incarnation", "%s takes %s for the process of %llu, it is that of %llu",
                       n->name, w->engines[i].name, (unsigned long long)started,
                       (unsigned long long)e->newest);
    }
}
