#include "tests/maelstrom/node.h"
#include "tests/lib/state_help.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/checkpoint.h"
#include "base/err.h"
#include "crdt/state.h"
#include "node/cluster/replication.h"

enum {
    INDEX_BYTES = 64 << 20,
    GENERATION_MS = 60000,
    TTL_MS = 4 * 3600 * 1000, /* longer than any run */
    ID_BITS = 48,
    PORT = 7946,
    BEGIN_US = 5000000,
};

struct mael_node {
    struct mael_io io;
    char name[GOSSIP_NAME_MAX + 1];
    unsigned number, nodes;
    struct gossip_keyring keyring;
    struct node_state *state;
    struct node_replication *replication; /* NULL: not begun */
    uint64_t begin_us;
    unsigned counter; /* slot */
    uint64_t added, taken;
};

static struct gossip_address address_of(unsigned node)
{
    struct gossip_address a = {.port = PORT, .family = 4};
    a.ip[0] = 10;
    a.ip[2] = (uint8_t)(node >> 8);
    a.ip[3] = (uint8_t)node;
    return a;
}

/* --- the replication's callbacks ------------------------------------------------------------ */

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

/* Maelstrom carries no streams. */
static int on_call(void *context, uint32_t id, const struct gossip_address *to, uint8_t kind,
                   struct slice request)
{
    (void)context;
    (void)id;
    (void)to;
    (void)kind;
    (void)request;
    return ERR_UNSUPPORTED;
}

/* --- life ----------------------------------------------------------------------------------- */

static struct crdt_state *crdt_of(const struct mael_node *n)
{
    return node_state_crdt(n->state);
}

static int state_open(struct mael_node *n, uint64_t wall_ms, uint64_t now_us)
{
    struct node_state_config config = {
        .self = gossip_node_id(n->name),
        .replicated = true,
        .replicas_max = CRDT_REPLICAS_MAX,
        .index_bytes = INDEX_BYTES,
        .generation_ms = GENERATION_MS,
        .ttl_ms = TTL_MS,
        .wall_ms = wall_ms,
        .now_ms = now_us / 1000,
    };
    int err = node_state_create(&n->state, &config);
    if (err != ERR_OK)
        return err;
    int slot = state_replica(crdt_of(n), SLICE("counter"));
    if (slot < 0)
        return slot;
    n->counter = (unsigned)slot;
    return ERR_OK;
}

/* A router's replication with a router's settings. */
void mael_node_begin(struct mael_node *n, uint64_t now_us)
{
    if (n->replication)
        return;
    uint64_t epoch = node_state_cluster_ms(n->state, now_us / 1000);
    struct node_replication_config config = {
        .gossip = {.name = n->name, .epoch = epoch, .address = address_of(n->number)}};
    struct node_replication_user user = {0};
    struct node_replication_io io = {
        .context = n, .send = on_send, .random = on_random, .call = on_call};
    CHECK(node_replication_create(&n->replication, &config, &n->keyring, n->state, &user, &io,
                                  now_us) == ERR_OK);
    struct gossip_address seeds[GOSSIP_SEEDS_MAX];
    unsigned count = 0;
    for (unsigned i = 0; i < n->nodes && count < GOSSIP_SEEDS_MAX; i++) {
        if (i != n->number)
            seeds[count++] = address_of(i);
    }
    gossip_seeds(node_replication_gossip(n->replication), seeds, count, now_us);
}

int mael_node_create(struct mael_node **out, const char *name, unsigned number, unsigned nodes,
                     const struct mael_io *io, uint64_t wall_ms, uint64_t now_us)
{
    struct mael_node *n = calloc(1, sizeof *n);
    if (!n)
        return ERR_NOMEM;
    n->io = *io;
    n->number = number;
    n->nodes = nodes;
    n->begin_us = now_us + BEGIN_US;
    gossip_keyring_insecure(&n->keyring);
    int err = slice_to_cstr(slice_of_cstr(name), n->name, sizeof n->name) ? ERR_OK : ERR_RANGE;
    if (err == ERR_OK)
        err = state_open(n, wall_ms, now_us);
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
    if (n->replication)
        node_replication_destroy(n->replication);
    node_state_destroy(n->state);
    free(n);
}

/* --- driving -------------------------------------------------------------------------------- */

void mael_node_datagram(struct mael_node *n, unsigned from, const uint8_t *bytes, size_t len,
                        uint64_t now_us)
{
    struct gossip_address source = address_of(from);
    mael_node_begin(n, now_us);
    node_replication_datagram(n->replication, &source, bytes, len, now_us);
}

void mael_node_run(struct mael_node *n, uint64_t now_us)
{
    node_state_clock(n->state, now_us / 1000);
    if (!n->replication && now_us >= n->begin_us)
        mael_node_begin(n, now_us);
    if (n->replication)
        node_replication_run(n->replication, now_us);
}

uint64_t mael_node_due_us(const struct mael_node *n)
{
    return n->replication ? node_replication_due_us(n->replication) : n->begin_us;
}

/* --- the set -------------------------------------------------------------------------------- */

static uint64_t id_of(int64_t element)
{
    return (uint64_t)element & ((UINT64_C(1) << ID_BITS) - 1);
}

static void replica_of(int64_t element, char name[8])
{
    (void)snprintf(name, 8, "%04x", (unsigned)((uint64_t)element >> ID_BITS));
}

int mael_node_element_add(struct mael_node *n, int64_t element, uint64_t now_us)
{
    char name[8];
    replica_of(element, name);
    int slot = state_replica(crdt_of(n), slice_of_cstr(name));
    if (slot < 0)
        return slot;
    struct chain *chain = calloc(1, sizeof *chain);
    if (!chain)
        return ERR_NOMEM;
    chain->length = 1;
    chain->bytes = 256;
    chain->points[0] = (struct chain_point){.id = id_of(element), .blocks = 1};
    int err = crdt_state_observe(crdt_of(n), chain, (unsigned)slot);
    free(chain);
    mael_node_begin(n, now_us);
    node_replication_run(n->replication, now_us);
    return err < 0 ? err : ERR_OK;
}

bool mael_node_element_has(const struct mael_node *n, int64_t element)
{
    char name[8];
    uint32_t generation;
    replica_of(element, name);
    int slot = crdt_registry_by_name(crdt_state_registry(crdt_of(n)), slice_of_cstr(name));
    return slot >= 0 && crdt_index_get(crdt_state_index(crdt_of(n)), id_of(element), (unsigned)slot,
                                       checkpoint_code(0), &generation) == ERR_OK;
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
    const struct crdt_replica *r = crdt_registry_at(crdt_state_registry(crdt_of(v->n)), replica);
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
    crdt_index_each(crdt_state_index(crdt_of(n)), visit_entry, &v);
}

/* --- the counter ---------------------------------------------------------------------------- */

void mael_node_counter_add(struct mael_node *n, int64_t delta, uint64_t now_us)
{
    if (delta >= 0)
        n->added += (uint64_t)delta;
    else
        n->taken += (uint64_t)-delta;
    struct crdt_load load = {.requests = 1, .prefill_tokens = n->added, .context_tokens = n->taken};
    crdt_state_load(crdt_of(n), n->counter, &load);
    mael_node_begin(n, now_us);
    node_replication_run(n->replication, now_us);
}

int64_t mael_node_counter(const struct mael_node *n)
{
    struct crdt_load others;
    crdt_reports_load_sum(crdt_state_reports(crdt_of(n)), n->counter, &others);
    return (int64_t)(others.prefill_tokens + n->added) -
           (int64_t)(others.context_tokens + n->taken);
}

void mael_node_stats(const struct mael_node *n, struct gossip_stats *out)
{
    gossip_stats(node_replication_gossip(n->replication), out);
}
