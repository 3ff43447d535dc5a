/* Poison: requests after which an engine died, shared by all routers.
 *
 *   hash of the request -> (until, level, last two replicas to die after the request, latest first)
 *
 * The hash is keyed (node/route/poison.h), so a row reveals nothing of a prompt. A row is valid
 * until the second `until` of cluster time and is then absent. Values of the same hash are ordered
 * by `until`, then level, then replicas, and join takes the greater. Every change sets a later
 * `until`, so the change wins. An operator's "forget it" is a row of level FORGIVEN.
 *
 * Deletion commutes with join:
 *   - a row is absent once `until` is past, and max(a, b) is past exactly if both are;
 *   - at most CRDT_POISON_MAX rows are kept, the greatest by (until, hash). For a dropped row,
 *     CRDT_POISON_MAX greater rows exist, and join only makes them greater. A SUSPECT row expires
 *     sooner than a SURE row, so the SUSPECT row never displaces a SURE row.
 *
 * A row whose `until` is too far ahead is refused, like future observations. No fields may be added
 * to a row: a later version with more data needs another class. */
#ifndef CRDT_POISON_H
#define CRDT_POISON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "crdt/limits.h"

enum crdt_poison_level {
    CRDT_POISON_FORGIVEN, /* forgotten by an operator, or answered after all */
    CRDT_POISON_SUSPECT,  /* an engine died, perhaps because of the request */
    CRDT_POISON_SURE,     /* two engines died: routers refuse the request */
};

enum { CRDT_POISON_ROW_BYTES = 25 }; /* on the wire, without the head of a record */

struct crdt_poison_row {
    uint64_t hash;
    uint32_t until;   /* second of cluster time */
    uint8_t level;    /* enum crdt_poison_level; an unknown level counts as SURE */
    uint64_t last;    /* registry key of the latest replica to die; 0: none */
    uint64_t before;  /* registry key of the replica that died before `last`; 0: none */
    uint32_t refused; /* times this router refused the request; not replicated */
};

struct crdt_poison {
    uint32_t now_s;
    uint32_t skew_s; /* seconds by which other routers' clocks may be ahead */
    unsigned count;
    unsigned news; /* number of rows still to be sent */
    uint64_t digest;
    struct crdt_poison_row row[CRDT_POISON_MAX]; /* in the order of their hashes */
    bool waiting[CRDT_POISON_MAX];               /* this router's row, still to be sent */
};

void crdt_poison_init(struct crdt_poison *p, uint32_t now_s, uint32_t skew_s);
void crdt_poison_check(const struct crdt_poison *p);
/* Sets the time, never back, and drops expired rows. */
void crdt_poison_advance(struct crdt_poison *p, uint32_t now_s);

/* 1: the row was news; 0: it was known; ERR_STALE: it has expired; ERR_RANGE: `until` is too far
 * ahead; ERR_FULL: the table is full of rows that expire later. */
MUST_USE int crdt_poison_join(struct crdt_poison *p, const struct crdt_poison_row *row);
/* Writes a row by this router. The row expires in `ttl_s`, but at least a second after the known
 * row of this hash. `died`: key of the dead replica, or 0. If `died` is another replica than the
 * known row's `last`, that `last` becomes `before`. Results as crdt_poison_join(). */
MUST_USE int crdt_poison_set(struct crdt_poison *p, uint64_t hash, enum crdt_poison_level level,
                             uint64_t died, uint32_t ttl_s);
/* NULL: there is no row for the hash. */
const struct crdt_poison_row *crdt_poison_find(const struct crdt_poison *p, uint64_t hash);
/* Counts another refusal of the request by this router. */
void crdt_poison_refused(struct crdt_poison *p, uint64_t hash);

/* crdt_poison_news(): the index in `row` of this router's next row still to be sent, or -1.
 * crdt_poison_sent(): the row at this index was sent. */
MUST_USE int crdt_poison_news(const struct crdt_poison *p);
void crdt_poison_sent(struct crdt_poison *p, unsigned at);

#endif
