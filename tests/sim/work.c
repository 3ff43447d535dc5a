/* Requests: conversations that grow, each turn at a random router. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/checkpoint.h"
#include "base/err.h"
#include "base/hash.h"
#include "tests/sim/sim.h"

enum {
    CONVERSATIONS = 40,
    SYSTEM_POINTS = 6, /* common to groups of conversations */
    SYSTEM_PROMPTS = 4,
};

/* Small tables, as here, tell ids apart by fewer bits than 48 (crdt/index.h). The upper 16 bits of
 * these ids are what the table gives back, so that the whole id is exact. */
static uint64_t id_of(const struct sim_world *w, uint64_t what, uint64_t ordinal)
{
    uint64_t hash = hash_mix(hash_mix(w->config.seed * 1000003 + what) + ordinal);
    uint64_t bucket = (hash >> 32) % w->index_buckets;
    uint64_t high = (((bucket + 1) << 16) - 1) / w->index_buckets;
    return high << 32 | (hash & UINT32_MAX);
}

/* A system prompt, and the messages so far, which end in checkpoints of their own segment. */
static void chain_make(const struct sim_world *w, unsigned conversation, unsigned points,
                       struct chain *out)
{
    out->length = 0;
    out->token_ids = out->chunks = false;
    out->content = (struct chain_content){0};
    uint32_t blocks = 0;
    for (unsigned i = 0; i < SYSTEM_POINTS; i++) {
        blocks = checkpoint_blocks(i);
        out->points[out->length++] = (struct chain_point){
            .id = id_of(w, conversation % SYSTEM_PROMPTS, i),
            .blocks = blocks,
            .code = checkpoint_code(i),
        };
    }
    for (unsigned i = 0; i < points; i++) {
        out->points[out->length++] = (struct chain_point){
            .id = id_of(w, 100 + conversation, i),
            .blocks = blocks + checkpoint_blocks(i),
            .code = checkpoint_code(i),
        };
    }
    out->bytes = (uint64_t)out->points[out->length - 1].blocks * CHECKPOINT_BLOCK_BYTES + 100;
}

struct request {
    struct node_booking booking;
    unsigned engine;
    uint64_t started_ms; /* of the engine, which may have restarted since */
    struct node_usage usage;
    bool first; /* the next event is the first byte */
    uint64_t end_us;
};

static void answer(void *context, struct world_event *e)
{
    struct sim_world *w = context;
    struct world_node *n = &w->world.nodes[e->node];
    struct request *r = e->object;
    struct sim_engine *engine = &w->engines[r->engine];
    bool lives = !w->world.closing && n->up && n->life == e->a;
    bool broken = !engine->up || engine->started_ms != r->started_ms;
    if (!lives) {
        if (engine->running > 0)
            engine->running--;
        free(r);
        return;
    }
    struct world_event next = *e;
    if (n->paused_until_us > 0) {            /* the answer waits in the socket */
        next.at_us = n->paused_until_us + 1; /* or earlier, if the pause is cut short */
        if (next.at_us > w->world.now_us + SIM_S)
            next.at_us = w->world.now_us + SIM_S;
        world_queue_put(&w->world.queue, &next);
        return;
    }
    uint64_t now_ms = world_mono_us(n) / 1000;
    if (r->first && !broken) {
        r->first = false;
        node_router_first_byte(n->node->router, r->booking, now_ms);
        next.at_us = r->end_us > w->world.now_us ? r->end_us : w->world.now_us;
        world_queue_put(&w->world.queue, &next);
    } else {
        node_router_finish(n->node->router, r->booking,
                           broken ? NODE_OUTCOME_BROKEN : NODE_OUTCOME_OK,
                           broken ? NULL : &r->usage, now_ms);
        sim_of(n)->bookings_open--;
        if (engine->running > 0)
            engine->running--;
        free(r);
    }
    world_touch(n);
}

static void request_book(struct sim_world *w, struct world_node *n, const struct node_decision *d,
                         unsigned engine)
{
    struct request *r = malloc(sizeof *r);
    CHECK(r != NULL);
    uint64_t prefill = 20 * SIM_MS + prng_below(&w->world.prng, 300 * SIM_MS);
    *r = (struct request){
        .booking = d->booking,
        .engine = engine,
        .started_ms = w->engines[engine].started_ms,
        .usage = {.prompt_tokens = (int64_t)d->prompt_tokens,
                  .cached_tokens = (int64_t)d->cached_tokens,
                  .completion_tokens = 100},
        .first = true,
        .end_us = w->world.now_us + prefill + prng_below(&w->world.prng, 2 * SIM_S),
    };
    sim_of(n)->bookings_open++;
    w->engines[engine].running++;
    world_queue_put(&w->world.queue, &(struct world_event){.at_us = w->world.now_us + prefill,
                                                           .happen = answer,
                                                           .node = n->number,
                                                           .a = n->life,
                                                           .object = r});
}

void sim_work_request_of(struct sim_world *w, struct world_node *n, unsigned conversation,
                         unsigned points, struct sim_fact *last)
{
    struct chain *chain = malloc(sizeof *chain);
    CHECK(chain != NULL);
    chain_make(w, conversation, points, chain);
    struct node_request request = {
        .chain = chain,
        .body_bytes = chain->bytes,
        .output_tokens_max = 200,
        .replica_wanted = -1,
    };
    struct node_decision d;
    int err = node_router_place(n->node->router, &request, NULL, world_mono_us(n) / 1000, &d);
    w->requests++;
    if (err == ERR_OK) {
        int engine = sim_engine_of_slot(w, n, d.replica);
        if (engine < 0 &&
            sim_engine_retired(w, node_router_replica_name(n->node->router, d.replica))) {
            node_router_finish(n->node->router, d.booking, NODE_OUTCOME_BROKEN, NULL,
                               world_mono_us(n) / 1000);
            free(chain);
            world_touch(n);
            return;
        }
        if (engine < 0 || sim_of(n)->slot_of_engine[engine] < 0)
            sim_broken(w, "replicas", "%s chose a replica that it does not have", n->name);
        world_trace(&w->world, (uint64_t)n->number << 32 | (unsigned)engine);
        sim_say(w, "%s sends conversation %u of %u points to %s", n->name, conversation,
                chain->length, w->engines[engine].name);
        const struct chain_point *end = &chain->points[chain->length - 1];
        if (last)
            *last = (struct sim_fact){end->id, end->code, (unsigned)engine};
        for (unsigned i = 0; i < chain->length && !w->measuring; i++)
            sim_book_observed(w, n, (unsigned)engine, chain->points[i].id, chain->points[i].code);
        request_book(w, n, &d, (unsigned)engine);
    } else {
        w->unroutable++;
    }
    free(chain);
    world_touch(n);
}

void sim_work_request(struct sim_world *w, struct world_node *n, unsigned conversation,
                      struct sim_fact *last)
{
    sim_work_request_of(w, n, conversation, 8, last);
}

/* Now and then a request kills an engine, or is answered after all: a few hashes, changed by all
 * routers in turn. No hash expires before the run ends. */
static void kill_engine(const struct sim_world *w, struct world_node *n, unsigned conversation)
{
    if (w->requests % 50 != 0)
        return;
    uint64_t dice = hash_mix(w->requests);
    unsigned replica =
        (unsigned)(dice >> 8) % crdt_registry_count(crdt_state_registry(world_state(n)));
    DISCARD(crdt_state_poisoned(world_state(n), hash_mix(conversation % 7),
                                (enum crdt_poison_level)(dice % 3), (int)replica,
                                CRDT_POISON_TTL_S));
}

static void next_request(void *context, struct world_event *e)
{
    struct sim_world *w = context;
    if (w->world.closing || !w->working)
        return;
    struct world_node *n = &w->world.nodes[prng_below(&w->world.prng, w->config.nodes)];
    unsigned conversation = (unsigned)prng_below(&w->world.prng, CONVERSATIONS);
    /* Conversations end, others begin: soon, if missed deltas may not be repeated. */
    unsigned fresh = (unsigned)(w->requests / (w->config.profile == SIM_JOIN ? 40 : 200));
    unsigned points = 1 + (unsigned)(w->requests % 200) / 8 + conversation % 40;
    if (w->config.profile == SIM_PRESSURE)
        points = CHAIN_POINTS_MAX / 2; /* far more than fits */
    if (points > CHECKPOINT_MAX - 1)
        points = CHECKPOINT_MAX - 1;
    if (world_runs(n) && !n->leaving) {
        sim_work_request_of(w, n, conversation + fresh * CONVERSATIONS, points, NULL);
        kill_engine(w, n, conversation);
    }
    struct world_event next = *e;
    next.at_us += 1 + prng_below(&w->world.prng, 2 * SIM_S / w->config.requests_s);
    world_queue_put(&w->world.queue, &next);
}

void sim_work_begin(struct sim_world *w)
{
    w->working = true;
    world_queue_put(&w->world.queue,
                    &(struct world_event){.at_us = w->world.now_us, .happen = next_request});
}
