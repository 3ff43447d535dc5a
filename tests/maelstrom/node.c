#include "tests/maelstrom/node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "crdt/state.h"

enum {
    INDEX_BYTES = 64 << 20,
    GENERATION_MS = 60000,
    GENERATIONS = 240, /* four hours: longer than any run */
    ID_BITS = 48,
    PORT = 7946,
};

static const uint64_t reconcile_us = 300000;

struct mael_node {
    struct mael_io io;
    struct gossip_keyring keyring;
    struct crdt_state *state;
    struct gossip *gossip;
    unsigned counter; /* slot */
    uint64_t added, taken;
    uint64_t reconcile_due_us;
};

static struct gossip_address address_of(unsigned node)
{
    struct gossip_address a = {.port = PORT, .family = 4};
    a.ip[0] = 10;
    a.ip[2] = (uint8_t)(node >> 8);
    a.ip[3] = (uint8_t)node;
    return a;
}

/* --- between gossip and state --------------------------------------------------------------- */

static size_t on_produce(void *context, uint64_t now_us, uint8_t *out, size_t max)
{
    struct mael_node *n = context;
    (void)now_us;
    struct gossip_stats stats;
    gossip_stats(n->gossip, &stats);
    return crdt_state_produce(n->state, stats.deltas_produced + 1, out, max);
}

static int on_apply(void *context, const struct gossip_origin *origin, struct slice delta,
                    uint64_t now_us)
{
    struct mael_node *n = context;
    (void)now_us;
    struct crdt_origin from = {.router = origin->node, .epoch = origin->epoch, .seq = origin->seq};
    crdt_state_router(n->state, from.router, from.epoch);
    return crdt_state_apply(n->state, &from, delta);
}

/* Nodes of Maelstrom do not die, they are only cut off: what they counted stays. */
static void on_member(void *context, const struct gossip_member *m, uint64_t now_us)
{
    struct mael_node *n = context;
    (void)now_us;
    if (m->self)
        crdt_state_epoch(n->state, m->incarnation >> 16);
    else if (m->state == GOSSIP_ALIVE)
        crdt_state_router(n->state, m->node, m->incarnation >> 16);
}

static void on_lost(void *context, uint64_t node, uint64_t now_us)
{
    (void)node;
    struct mael_node *n = context;
    n->reconcile_due_us = now_us;
}

static void on_message(void *context, uint64_t peer, struct slice bytes, bool settled,
                       uint64_t now_us)
{
    struct mael_node *n = context;
    (void)settled; /* repairing what is on its way is only a waste */
    struct buf reply = {0};
    struct crdt_reconciled result;
    if (crdt_state_message(n->state, bytes, true, &reply, &result) == ERR_OK && reply.len > 0)
        DISCARD(gossip_message(n->gossip, peer, buf_slice(&reply), now_us));
    buf_free(&reply);
}

static void on_send(void *context, const struct gossip_address *to, const uint8_t *bytes,
                    size_t len)
{
    struct mael_node *n = context;
    n->io.send(n->io.context, (unsigned)(to->ip[2] << 8 | to->ip[3]), bytes, len);
}

static void on_random(void *context, void *out, size_t len)
{
    struct mael_node *n = context;
    n->io.random(n->io.context, out, len);
}

/* --- life ----------------------------------------------------------------------------------- */

static int state_open(struct mael_node *n, const char *name, uint64_t wall_ms)
{
    struct crdt_state_config config = {
        .index =
            {
                .bytes_max = INDEX_BYTES,
                .replicas_max = CRDT_REPLICAS_MAX,
                .ttl_generations = GENERATIONS,
                .generation = (uint32_t)(wall_ms / GENERATION_MS),
                .replicated = true,
            },
        .self = gossip_node_id(name),
    };
    int err = crdt_state_create(&n->state, &config);
    if (err != ERR_OK)
        return err;
    int slot = crdt_state_replica(n->state, SLICE("counter"));
    if (slot < 0)
        return slot;
    n->counter = (unsigned)slot;
    return ERR_OK;
}

static int gossip_open(struct mael_node *n, const char *name, unsigned number, unsigned nodes,
                       uint64_t wall_ms, uint64_t now_us)
{
    gossip_keyring_insecure(&n->keyring);
    struct gossip_config config = {.name = name, .epoch = wall_ms, .address = address_of(number)};
    struct gossip_app app = {.context = n,
                             .produce = on_produce,
                             .apply = on_apply,
                             .member = on_member,
                             .lost = on_lost,
                             .message = on_message};
    struct gossip_io io = {.context = n, .send = on_send, .random = on_random};
    int err = gossip_create(&n->gossip, &config, &n->keyring, &app, &io, now_us);
    if (err != ERR_OK)
        return err;
    crdt_state_epoch(n->state, gossip_epoch(n->gossip));
    struct gossip_address seeds[GOSSIP_SEEDS_MAX];
    unsigned count = 0;
    for (unsigned i = 0; i < nodes && count < GOSSIP_SEEDS_MAX; i++) {
        if (i != number)
            seeds[count++] = address_of(i);
    }
    gossip_seeds(n->gossip, seeds, count, now_us);
    return ERR_OK;
}

int mael_node_create(struct mael_node **out, const char *name, unsigned number, unsigned nodes,
                     const struct mael_io *io, uint64_t wall_ms, uint64_t now_us)
{
    struct mael_node *n = calloc(1, sizeof *n);
    if (!n)
        return ERR_NOMEM;
    n->io = *io;
    n->reconcile_due_us = now_us + reconcile_us;
    int err = state_open(n, name, wall_ms);
    if (err == ERR_OK)
        err = gossip_open(n, name, number, nodes, wall_ms, now_us);
    if (err != ERR_OK) {
        mael_node_destroy(n);
        return err;
    }
    *out = n;
    return ERR_OK;
}

void mael_node_destroy(struct mael_node *n)
{
    if (!n)
        return;
    gossip_destroy(n->gossip);
    crdt_state_destroy(n->state);
    free(n);
}

/* --- driving -------------------------------------------------------------------------------- */

void mael_node_datagram(struct mael_node *n, unsigned from, const uint8_t *bytes, size_t len,
                        uint64_t now_us)
{
    struct gossip_address source = address_of(from);
    gossip_datagram(n->gossip, &source, bytes, len, now_us);
}

static void reconcile(struct mael_node *n, uint64_t now_us)
{
    n->reconcile_due_us = now_us + reconcile_us;
    uint64_t peer = gossip_peer_random(n->gossip, 0);
    struct buf summary = {0};
    if (peer != 0 && crdt_state_summary(n->state, &summary) == ERR_OK)
        DISCARD(gossip_message(n->gossip, peer, buf_slice(&summary), now_us));
    buf_free(&summary);
}

void mael_node_run(struct mael_node *n, uint64_t wall_ms, uint64_t now_us)
{
    crdt_index_advance(crdt_state_index(n->state), (uint32_t)(wall_ms / GENERATION_MS));
    if (now_us >= n->reconcile_due_us)
        reconcile(n, now_us);
    if (gossip_due_us(n->gossip) <= now_us)
        gossip_run(n->gossip, now_us);
}

uint64_t mael_node_due_us(const struct mael_node *n)
{
    uint64_t due = gossip_due_us(n->gossip);
    return due < n->reconcile_due_us ? due : n->reconcile_due_us;
}

/* --- the set -------------------------------------------------------------------------------- */

int mael_node_element_add(struct mael_node *n, int64_t element, uint64_t now_us)
{
    char name[8];
    (void)snprintf(name, sizeof name, "%04x", (unsigned)((uint64_t)element >> ID_BITS));
    int slot = crdt_state_replica(n->state, slice_of_cstr(name));
    if (slot < 0)
        return slot;
    struct chain *chain = calloc(1, sizeof *chain);
    if (!chain)
        return ERR_NOMEM;
    chain->length = 1;
    chain->bytes = 256;
    chain->points[0] =
        (struct chain_point){.id = (uint64_t)element & ((UINT64_C(1) << ID_BITS) - 1), .blocks = 1};
    int err = crdt_state_observe(n->state, chain, (unsigned)slot);
    free(chain);
    gossip_wake(n->gossip, now_us);
    return err < 0 ? err : ERR_OK;
}

struct visiting {
    const struct mael_node *n;
    void (*visit)(void *context, int64_t element);
    void *context;
};

static void visit_entry(void *context, uint64_t id48, uint8_t weight_code, unsigned replica,
                        uint32_t generation)
{
    struct visiting *v = context;
    (void)weight_code;
    (void)generation;
    const struct crdt_replica *r = crdt_registry_at(crdt_state_registry(v->n->state), replica);
    char name[8] = {0};
    CHECK(r->name_len == 4);
    memcpy(name, r->name, 4);
    uint64_t high = strtoull(name, NULL, 16);
    v->visit(v->context, (int64_t)(high << ID_BITS | id48));
}

void mael_node_elements(const struct mael_node *n, void (*visit)(void *context, int64_t element),
                        void *context)
{
    struct visiting v = {n, visit, context};
    crdt_index_each(crdt_state_index(n->state), visit_entry, &v);
}

/* --- the counter ---------------------------------------------------------------------------- */

void mael_node_counter_add(struct mael_node *n, int64_t delta, uint64_t now_us)
{
    if (delta >= 0)
        n->added += (uint64_t)delta;
    else
        n->taken += (uint64_t)-delta;
    struct crdt_load load = {.requests = 1, .prefill_tokens = n->added, .context_tokens = n->taken};
    crdt_state_load(n->state, n->counter, &load);
    gossip_wake(n->gossip, now_us);
}

int64_t mael_node_counter(const struct mael_node *n)
{
    struct crdt_load others;
    crdt_reports_load_sum(crdt_state_reports(n->state), n->counter, &others);
    return (int64_t)(others.prefill_tokens + n->added) -
           (int64_t)(others.context_tokens + n->taken);
}
