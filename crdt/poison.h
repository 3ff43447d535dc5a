/* Poison: requests after which an engine died, shared by all routers.
 *
 *   hash of the request -> (until, level, the caches' replicas that died of it, the last one first)
 *
 * The hash is keyed (node/route/poison.h), so a row reveals nothing of a prompt. A row holds until
 * that second of cluster time and is then absent. Values of one hash are ordered by `until`, then
 * level, then replicas, and join takes the greater. Every change sets a later `until` and so wins.
 * An operator's "forget it" is a row of level FORGIVEN.
 *
 * Deletion commutes with join:
 *   - a row is absent once `until` is past, and max(a, b) is past exactly if both are;
 *   - at most CRDT_POISON_MAX rows are kept, the greatest by (until, hash). A dropped row has that
 *     many above it, and join only makes those greater. Suspects live shorter than poison and never
 *     displace any.
 *
 * A row further ahead than allowed is refused, like future observations. Rows are closed: a
 * later version with more data makes its own class. */
#ifndef CRDT_POISON_H
#define CRDT_POISON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "crdt/limits.h"

enum crdt_poison_level {
    CRDT_POISON_FORGIVEN, /* forgotten by an operator, or answered after all */
    CRDT_POISON_SUSPECT,  /* one engine died, and it may be the cause */
    CRDT_POISON_SURE,     /* two died: it is refused */
};

enum { CRDT_POISON_ROW_BYTES = 25 }; /* on the wire, without the head of a record */

struct crdt_poison_row {
    uint64_t hash;
    uint32_t until;   /* second of cluster time */
    uint8_t level;    /* enum crdt_poison_level; one that nobody knows is as good as SURE */
    uint64_t last;    /* the replica that died last, as the registry keys it; 0: none */
    uint64_t before;  /* and the one before that */
    uint32_t refused; /* how often this router refused it; not replicated */
};

struct crdt_poison {
    uint32_t now_s;
    uint32_t skew_s; /* that others' clocks may be ahead */
    unsigned count;
    unsigned news; /* rows that wait */
    uint64_t digest;
    struct crdt_poison_row row[CRDT_POISON_MAX]; /* by hash */
    bool waiting[CRDT_POISON_MAX];               /* news of this router's, not sent yet */
};

void crdt_poison_init(struct crdt_poison *p, uint32_t now_s, uint32_t skew_s);
void crdt_poison_check(const struct crdt_poison *p);
/* Never back. What is past goes. */
void crdt_poison_advance(struct crdt_poison *p, uint32_t now_s);

/* 1: news; 0: known; ERR_STALE: it is past; ERR_RANGE: too far ahead; ERR_FULL: below all that are
 * kept. */
MUST_USE int crdt_poison_join(struct crdt_poison *p, const struct crdt_poison_row *row);
/* This router's own: for `ttl_s` from now, or as long as the greatest row of the hash and a second.
 * `died`: the replica, 0: none. What the row said of replicas moves on. Errors as above. */
MUST_USE int crdt_poison_set(struct crdt_poison *p, uint64_t hash, enum crdt_poison_level level,
                             uint64_t died, uint32_t ttl_s);
/* NULL: nothing is known of it. */
const struct crdt_poison_row *crdt_poison_find(const struct crdt_poison *p, uint64_t hash);
/* This router refused it once more. */
void crdt_poison_refused(struct crdt_poison *p, uint64_t hash);

/* The next row of this router's that waits to be sent, or -1; and that it was. */
MUST_USE int crdt_poison_news(const struct crdt_poison *p);
void crdt_poison_sent(struct crdt_poison *p, unsigned at);

#endif
