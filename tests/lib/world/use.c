#include "tests/lib/world/use.h"

#include "base/check.h"
#include "base/checkpoint.h"
#include "base/err.h"

enum { SETTLE_US = 60000000, TOKEN_BYTES = 4 };

static bool settled(struct world *w)
{
    unsigned up = 0;
    for (unsigned i = 0; i < w->count; i++)
        up += w->nodes[i].up;
    for (unsigned i = 0; i < w->count; i++) {
        const struct world_node *n = &w->nodes[i];
        if (!n->up || !n->node->replication)
            continue;
        struct gossip *g = world_gossip(n);
        unsigned alive = 0;
        for (unsigned k = 0; k < gossip_member_count(g); k++) {
            struct gossip_member m;
            gossip_member_at(g, k, world_mono_us(n), &m);
            alive += m.state == GOSSIP_ALIVE && (m.self || m.session);
        }
        if (alive != up || !node_replication_ready(n->node->replication))
            return false;
    }
    return true;
}

void world_configure(struct world *w, const struct node_config *config, bool shared)
{
    for (unsigned i = 0; i < w->count; i++) {
        struct world_node *n = &w->nodes[i];
        n->config = *config;
        n->config.router.seed += i;
        n->config.replication.has_seeds = i > 0;
        n->config.keyring = shared ? &n->keyring : NULL;
    }
}

void world_start_all(struct world *w)
{
    for (unsigned i = 0; i < w->count; i++)
        world_start(w, i);
    world_settle(w);
}

void world_settle(struct world *w)
{
    CHECK(world_until(w, SETTLE_US, settled));
}

bool world_agrees(struct world *w)
{
    struct crdt_digest first = {0};
    bool have = false;
    uint32_t floor = 0;
    for (unsigned i = 0; i < w->count; i++) {
        if (!w->nodes[i].up)
            continue;
        uint32_t own = crdt_index_floor(node_state_index(w->nodes[i].node->state));
        floor = own > floor ? own : floor;
    }
    for (unsigned i = 0; i < w->count; i++) {
        struct crdt_digest d;
        if (!w->nodes[i].up)
            continue;
        crdt_state_digest(world_state(&w->nodes[i]), floor, &d);
        if (have &&
            (d.registry != first.registry || d.index != first.index || d.reports != first.reports))
            return false;
        first = d;
        have = true;
    }
    return true;
}

void world_cut(struct world *w, unsigned a, unsigned b)
{
    world_link(w, a, b)->cut = world_link(w, b, a)->cut = true;
}

unsigned world_replica(struct world *w, unsigned number, const char *name)
{
    struct world_node *n = &w->nodes[number];
    int slot = node_router_name(n->node->router, slice_of_cstr(name), NODE_ENGINE_VLLM);
    CHECK(slot >= 0);
    node_router_probed(n->node->router, (unsigned)slot, (struct node_check){.ok = true},
                       world_mono_us(n) / 1000);
    world_touch(n);
    return (unsigned)slot;
}

void world_prompt(struct chain *out, uint64_t seed, unsigned tokens)
{
    *out = (struct chain){.bytes = (uint64_t)tokens * TOKEN_BYTES};
    for (unsigned i = 0; i < CHECKPOINT_MAX; i++) {
        uint32_t blocks = checkpoint_blocks(i);
        if ((uint64_t)blocks * CHECKPOINT_BLOCK_BYTES > out->bytes)
            break;
        out->points[out->length++] = (struct chain_point){
            .id = hash_mix(seed * 1000003 + i), .blocks = blocks, .code = checkpoint_code(i)};
    }
}

struct node_decision world_choose(struct world *w, unsigned number, const struct chain *chain)
{
    struct world_node *n = &w->nodes[number];
    struct node_request request = {
        .chain = chain, .body_bytes = chain->bytes, .replica_wanted = -1};
    struct node_decision d;
    CHECK(node_router_place(n->node->router, &request, NULL, world_mono_us(n) / 1000, &d) ==
          ERR_OK);
    world_touch(n);
    return d;
}

void world_finish(struct world *w, unsigned number, struct node_decision d,
                  const struct node_usage *usage)
{
    struct world_node *n = &w->nodes[number];
    uint64_t now_ms = world_mono_us(n) / 1000;
    node_router_first_byte(n->node->router, d.booking, now_ms);
    node_router_finish(n->node->router, d.booking, NODE_OUTCOME_OK, usage, now_ms);
    world_touch(n);
}
