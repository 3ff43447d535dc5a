/* The replicas that the cluster knows: name -> (incarnation of its cache, operators' wish).
 *
 * All are totally ordered, so the join of each is its maximum:
 *
 *   incarnation = (start time, raises): the engine's start time in ms (0: the engine never showed
 *                 one); raises count losses of the cache without a new start time
 *   wish        = (version, wish, draining): a router that changes it takes version + 1
 *   later bytes = what a later version of this program keeps in the row, compared as bytes: such a
 *                 version adds registers of a fixed width, most significant byte first
 *
 * A new incarnation is a new rkey: 31 bits of a hash of name and incarnation, never 0. If two names
 * have the same rkey, each router that knows both raises the incarnation of the greater name, so
 * all agree.
 *
 * Nothing is ever taken out: a removed replica keeps its row, so that a late delta cannot bring it
 * back. Observations of an rkey that is no longer in force are passed over.
 *
 * Invariants (crdt_registry_check): names, keys and rkeys in force are distinct and found by their
 * look-ups; the digest is the sum of the rows' hashes.
 */
#ifndef CRDT_REGISTRY_H
#define CRDT_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"
#include "crdt/limits.h"

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
    char name[CRDT_NAME_MAX + 1]; /* ends in NUL, which is not counted */
    uint16_t name_len;
    uint64_t key; /* 48-bit hash of the name: never changes */
    uint32_t rkey;
    struct crdt_incarnation incarnation;
    uint32_t wish_version;
    enum crdt_wish wish;
    bool draining;
    uint8_t later_len;
    char later[CRDT_LATER_MAX]; /* fields of a later version: the greatest bytes win */
};

struct crdt_registry;

unsigned crdt_registry_count(const struct crdt_registry *r);
/* Borrowed until the next change. */
const struct crdt_replica *crdt_registry_at(const struct crdt_registry *r, unsigned slot);
/* The slot, or -1. */
MUST_USE int crdt_registry_by_name(const struct crdt_registry *r, struct slice name);
MUST_USE int crdt_registry_by_key(const struct crdt_registry *r, uint64_t key);
MUST_USE int crdt_registry_by_rkey(const struct crdt_registry *r, uint32_t rkey);
/* Moves with every change: for pollers. */
uint64_t crdt_registry_version(const struct crdt_registry *r);

/* --- for crdt/state.c, which publishes each change to the index and to the other routers ------ */

/* At most `replicas_max` slots. ERR_NOMEM. */
MUST_USE int crdt_registry_create(struct crdt_registry **out, unsigned replicas_max);
void crdt_registry_destroy(struct crdt_registry *r);
void crdt_registry_check(const struct crdt_registry *r);

/* A row as one router sends it to another: all that is not derived. */
struct crdt_registry_row {
    struct slice name; /* 1 .. CRDT_NAME_MAX bytes */
    struct crdt_incarnation incarnation;
    uint32_t wish_version;
    enum crdt_wish wish;
    bool draining;
    struct slice later; /* at most CRDT_LATER_MAX bytes, no zero at the end */
};
struct crdt_registry_row crdt_registry_row(const struct crdt_registry *r, unsigned slot);

/* Joins a row, a new one included. Returns its slot, ERR_RANGE (name) or ERR_FULL; `news` says
 * whether it inflated the registry. A collision of rkeys may raise another row too. */
MUST_USE int crdt_registry_join(struct crdt_registry *r, const struct crdt_registry_row *row,
                                bool *news);
/* The operator's wish takes the next version. Returns whether it differs from the present one. */
bool crdt_registry_wish(struct crdt_registry *r, unsigned slot, enum crdt_wish wish, bool draining);
/* See crdt_state_restarted(). */
bool crdt_registry_restarted(struct crdt_registry *r, unsigned slot, uint64_t started);

/* The sum of the rows' hashes, and the hash of one row. */
uint64_t crdt_registry_digest(const struct crdt_registry *r);
uint64_t crdt_registry_digest_at(const struct crdt_registry *r, unsigned slot);

#endif
