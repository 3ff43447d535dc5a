/* The replicas that the cluster knows: name -> (incarnation of its cache, operators' wish).
 *
 * Both are chains, so the join of each is its maximum:
 *
 *   incarnation  (start time, raises)      start time in ms as the engine tells it (0: never told);
 *                                          raises count losses of the cache without a new start
 * time wish         (version, wish, draining) who changes it takes version + 1
 *
 * A new incarnation is a new rkey: 31 bits of a hash of name and incarnation, never 0. If two names
 * happen to have the same rkey, the greater name raises its incarnation; everybody who knows both
 * does the same, so all agree.
 *
 * Nothing is ever taken out but by node/core when no router names the replica any more (a removed
 * replica keeps its row, so that a late delta cannot bring it back).
 */
#ifndef CRDT_REGISTRY_H
#define CRDT_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

enum { CRDT_NAME_MAX = 256 };

enum crdt_wish {
    CRDT_WISH_NONE,    /* as the routers' own configurations say */
    CRDT_WISH_ADDED,   /* added at run time */
    CRDT_WISH_REMOVED, /* removed at run time, whatever a configuration says */
};

struct crdt_incarnation {
    uint64_t started;
    uint32_t raises;
};

struct crdt_replica {
    char name[CRDT_NAME_MAX];
    uint16_t name_len;
    uint64_t key; /* 48-bit hash of the name: never changes */
    uint32_t rkey;
    struct crdt_incarnation incarnation;
    uint32_t wish_version;
    enum crdt_wish wish;
    bool draining;
};

struct crdt_registry;

unsigned crdt_registry_count(const struct crdt_registry *r);
/* Borrowed until the next change. */
const struct crdt_replica *crdt_registry_at(const struct crdt_registry *r, unsigned slot);
/* The slot, or -1. */
int crdt_registry_by_name(const struct crdt_registry *r, struct slice name);
int crdt_registry_by_key(const struct crdt_registry *r, uint64_t key);
int crdt_registry_by_rkey(const struct crdt_registry *r, uint32_t rkey);
/* Moves with every change: for pollers. */
uint64_t crdt_registry_version(const struct crdt_registry *r);

#endif
