#include "node/route/affinity.h"

#include <stdlib.h>

#include "base/err.h"

enum { WAYS = 8 };

struct entry {
    uint64_t key;   /* 0: empty */
    uint32_t stamp; /* order of insertion */
    uint16_t replica;
    uint16_t era; /* era of the replica's number, which another replica may have later */
};
_Static_assert(NODE_REPLICAS_MAX <= UINT16_MAX, "a replica fits");

struct node_affinity {
    struct hash_secret secret;
    uint32_t sets;
    uint32_t stamp;
    uint64_t evicted;
    struct node_router *router; /* NULL: entries are not shared */
    struct entry entries[];
};

int node_affinity_create(struct node_affinity **out, const struct hash_secret *secret,
                         uint32_t capacity)
{
    uint32_t sets = 1;
    while (sets * WAYS < capacity && sets < (1u << 24))
        sets *= 2;
    struct node_affinity *a = calloc(1, sizeof *a + sizeof(struct entry) * WAYS * sets);
    if (a == NULL)
        return ERR_NOMEM;
    a->secret = *secret;
    a->sets = sets;
    *out = a;
    return 0;
}

void node_affinity_destroy(struct node_affinity *a)
{
    free(a);
}

void node_affinity_share(struct node_affinity *a, struct node_router *router)
{
    a->router = router;
}

static uint64_t key_of(const struct node_affinity *a, struct slice id)
{
    uint64_t key = hash64(&a->secret, id.at, id.len);
    return key != 0 ? key : 1;
}

static uint16_t era_of(const struct node_affinity *a, unsigned replica)
{
    return a->router ? (uint16_t)node_router_replica(a->router, replica)->era : 0;
}

static void keep(struct node_affinity *a, uint64_t key, unsigned replica)
{
    struct entry *set = &a->entries[(key & (a->sets - 1)) * WAYS];
    struct entry *victim = &set[0];
    a->stamp++;
    for (int i = 0; i < WAYS; i++) {
        if (set[i].key == key || set[i].key == 0) {
            victim = &set[i];
            break;
        }
        if (a->stamp - set[i].stamp > a->stamp - victim->stamp)
            victim = &set[i];
    }
    a->evicted += victim->key != 0 && victim->key != key;
    *victim = (struct entry){
        .key = key, .stamp = a->stamp, .replica = (uint16_t)replica, .era = era_of(a, replica)};
}

void node_affinity_put(struct node_affinity *a, struct slice id, unsigned replica)
{
    keep(a, key_of(a, id), replica);
    if (a->router)
        node_router_bind(a->router, id, replica);
}

uint64_t node_affinity_evicted(const struct node_affinity *a)
{
    return a->evicted;
}

static int kept(const struct node_affinity *a, uint64_t key)
{
    const struct entry *set = &a->entries[(key & (a->sets - 1)) * WAYS];
    for (int i = 0; i < WAYS; i++) {
        if (set[i].key == key && set[i].era == era_of(a, set[i].replica))
            return (int)set[i].replica;
    }
    return -1;
}

int node_affinity_peek(const struct node_affinity *a, struct slice id)
{
    int replica = kept(a, key_of(a, id));
    return replica >= 0 || a->router == NULL ? replica : node_router_bound(a->router, id);
}

int node_affinity_get(struct node_affinity *a, struct slice id)
{
    uint64_t key = key_of(a, id);
    int replica = kept(a, key);
    if (replica >= 0)
        return replica;
    replica = node_affinity_peek(a, id);
    if (replica >= 0)
        keep(a, key, (unsigned)replica);
    return replica;
}
