/* The replicas that the cluster knows: name -> (when it was named, its cache, operators' wishes).
 *
 *   named, born  the second of cluster time in which a router last named it, and first
 *   incarnation  (start time, raises): the engine's start time in ms (0: the engine never showed
 *                one); raises count losses of the cache without a new start time
 *   wish         (version, wish), and
 *   drain        (version, draining): a router that changes one takes its version + 1
 *
 *   later bytes  what a later version of this program keeps in the row, compared as bytes: such a
 *                version adds registers of a fixed width, most significant byte first
 *
 * All are totally ordered, so the join of each is its maximum, of `born` the minimum.
 *
 * A name is forgotten when nobody has named it for a time. The *floor* follows `now` at that
 * distance and only rises; a row with `named` below it is absent, and one that comes late is
 * refused. max(a, b) < floor exactly if both are, so it does not matter whether two rows are joined
 * before or after the floor rose. Rows that this router names it names again in time
 * (crdt_registry_advance), and those that operators added if it vouches for them: the operator
 * asked this router, or this router saw the replica up in the time after which a name is forgotten.
 * So what serves stays, and what a router that lied left behind goes.
 *
 * A row in use has a *slot*: the number by which this router's own tables call the replica. At most
 * `names_max` have one: those that are smallest by (standing, born, key). The *standing* is this
 * router's own and never sent: first what it names itself or saw up lately; then what it was told;
 * then what it was told beyond CRDT_TOLD_MAX names of one router; then what it saw down alone; last
 * what operators removed. While all that it was told is up, all routers choose the same ones. The
 * others *wait*, as rows that are joined and sent like all, and get a slot when one is free.
 * `rows_max` are kept at all, again the smallest. A slot gets another name only when nobody holds
 * it (crdt_registry_hold). A name that is none (config.is_name) is refused, and so makes no row.
 *
 * A new incarnation is a new rkey: 31 bits of a hash of name and incarnation, never 0. If two names
 * have the same rkey, each router that knows both raises the incarnation of the greater name, so
 * all agree. Observations of an rkey that is no longer in force are passed over, and those that are
 * older than the name is (crdt_registry_oldest_s).
 *
 * Invariants (crdt_registry_check): names, keys and rkeys in force are distinct and found by their
 * look-ups; the digest is the sum of the rows' hashes; no row is below the floor; no row waits that
 * is smaller than one in use, nor while there is room.
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
    uint16_t name_len;            /* 0: there is no row here */
    uint64_t key;                 /* 48-bit hash of the name: never changes */
    uint32_t rkey;
    struct crdt_incarnation incarnation;
    uint32_t named, born; /* seconds of cluster time; born <= named */
    uint32_t wish_version, drain_version;
    enum crdt_wish wish;
    bool draining;
    /* This router's own, never sent: */
    bool ours;        /* it names the replica */
    bool asked;       /* an operator had it add the replica */
    bool excess;      /* of more than CRDT_TOLD_MAX names that one router told */
    bool down;        /* it saw it down, since it saw it up */
    uint32_t up_s;    /* when it saw it up last; 0: never */
    uint32_t heard_s; /* when it heard of it first */
    uint64_t told_by; /* by which router; 0: itself, or on the way of others */
    uint8_t later_len;
    char later[CRDT_LATER_MAX]; /* fields of a later version: the greatest bytes win */
};

struct crdt_registry;

/* Slots are below this number; not all of them are in use (crdt_registry_has). */
unsigned crdt_registry_count(const struct crdt_registry *r);
bool crdt_registry_has(const struct crdt_registry *r, unsigned slot);
/* Of a slot in use; borrowed until the next change. */
const struct crdt_replica *crdt_registry_at(const struct crdt_registry *r, unsigned slot);
/* The slot in use, or -1. */
MUST_USE int crdt_registry_by_name(const struct crdt_registry *r, struct slice name);
MUST_USE int crdt_registry_by_key(const struct crdt_registry *r, uint64_t key);
MUST_USE int crdt_registry_by_rkey(const struct crdt_registry *r, uint32_t rkey);
/* Whether this router names it; it may wait. */
bool crdt_registry_is_ours(const struct crdt_registry *r, struct slice name);
/* Observations of an earlier second are of an earlier life of the name. */
uint32_t crdt_registry_oldest_s(const struct crdt_registry *r, unsigned slot);
/* Moves with every change: for pollers. */
uint64_t crdt_registry_version(const struct crdt_registry *r);

struct crdt_registry_stats {
    unsigned names;     /* in use */
    unsigned names_max; /* at one time */
    unsigned waiting;   /* for a slot */
    uint64_t forgotten; /* since the start: names */
    uint64_t late;      /* rows that were below the floor */
    uint64_t future;    /* rows that were named by a clock that is ahead */
    uint64_t refused;   /* rows beyond rows_max */
    uint64_t no_names;  /* rows whose names are none */
};
const struct crdt_registry_stats *crdt_registry_stats(const struct crdt_registry *r);
/* The row that waits and is next to have a slot; empty: none waits. Borrowed until the next change.
 */
struct slice crdt_registry_waiting(const struct crdt_registry *r);

/* The name that was refused last because it is none, and the router that told it (0: it came on
 * another way). Its bytes may be any. Borrowed until the next change. */
struct slice crdt_registry_no_name(const struct crdt_registry *r, uint64_t *told_by);

/* Slots for so many names at one time: some are held a while longer than their names live. */
unsigned crdt_registry_slots(unsigned names_max);

/* --- for crdt/state.c, which publishes each change to the index and to the other routers ------ */

struct crdt_registry_config {
    unsigned slots;     /* 1 .. CRDT_REPLICAS_MAX */
    unsigned names_max; /* that have a slot at one time; 0: as many as there may be */
    unsigned rows_max;  /* 0: CRDT_ROWS_MAX */
    uint32_t ttl_s;     /* 0: CRDT_NAMES_TTL_S */
    uint32_t skew_s;    /* so far may clocks be apart that are being set right; 0: ttl_s / 8 */
    uint32_t now_s;     /* of cluster time */
    uint64_t self;      /* this router: routers do not name all at the same moment */
    bool (*is_name)(struct slice name); /* a pure function, the same everywhere; NULL: all are */
};
/* ERR_NOMEM. */
MUST_USE int crdt_registry_create(struct crdt_registry **out,
                                  const struct crdt_registry_config *config);
void crdt_registry_destroy(struct crdt_registry *r);
void crdt_registry_check(const struct crdt_registry *r);
/* All of `from`, whose clock was ahead: what it named later than `r` has it was named now. Both
 * have the same configuration but for the time, and `r` is empty. */
void crdt_registry_copy(struct crdt_registry *r, const struct crdt_registry *from);

/* It is `now_s` (never back): rows that this router looks after are named again when they
 * are due, the floor rises, and what is below it is forgotten. */
void crdt_registry_advance(struct crdt_registry *r, uint32_t now_s);
uint32_t crdt_registry_floor_s(const struct crdt_registry *r);

/* A row as one router sends it to another: all that is not derived. */
struct crdt_registry_row {
    struct slice name; /* 1 .. CRDT_NAME_MAX bytes */
    uint32_t named, born;
    struct crdt_incarnation incarnation;
    uint32_t wish_version, drain_version;
    enum crdt_wish wish;
    bool draining;
    struct slice later; /* at most CRDT_LATER_MAX bytes, no zero at the end */
    uint64_t told_by;   /* the router whose delta had it; 0: another way; not sent */
};

/* Joins a row, a new one included. Returns its slot; ERR_AGAIN: it waits for one. ERR_SYNTAX:
 * its name is none; ERR_RANGE: that is empty or too long, or a clock that is far ahead named it;
 * ERR_STALE: below the floor; ERR_FULL: no room even to wait. Rows that are refused are counted.
 * `news` says whether it inflated the registry. A collision of rkeys may raise another row too,
 * and where names are at their limit a greater one has to wait again. */
MUST_USE int crdt_registry_join(struct crdt_registry *r, const struct crdt_registry_row *row,
                                bool *news);
/* The row of the name, made if it is new, with the errors of a join. `ours`: from now on this
 * router names it. `news` as in a join. */
MUST_USE int crdt_registry_name(struct crdt_registry *r, struct slice name, bool ours, bool *news);
/* This router saw it up, or down. */
void crdt_registry_seen(struct crdt_registry *r, unsigned slot, bool up);
/* This router names it no longer. */
void crdt_registry_unname(struct crdt_registry *r, struct slice name);
/* An operator's wish takes the next version; the row counts as named, and is news. Returns whether
 * it differs from the present one. The row may have another place afterwards. */
bool crdt_registry_wish(struct crdt_registry *r, unsigned place, enum crdt_wish wish);
bool crdt_registry_drain(struct crdt_registry *r, unsigned place, bool draining);
/* See crdt_state_restarted(). */
bool crdt_registry_restarted(struct crdt_registry *r, unsigned slot, uint64_t started);
/* Something hangs on the number of this slot: as long as it is held no other name gets it. */
void crdt_registry_hold(struct crdt_registry *r, unsigned slot, bool held);

/* --- all rows, waiting ones too: what routers compare and send -------------------------------- */

/* A row stands at a *place*; those of rows in use are their slots. The next place with a row after
 * that one (-1: the first), or -1. */
MUST_USE int crdt_registry_next(const struct crdt_registry *r, int after);
MUST_USE int crdt_registry_place(const struct crdt_registry *r, uint64_t key);
MUST_USE int crdt_registry_place_of(const struct crdt_registry *r, struct slice name);
struct crdt_registry_row crdt_registry_row(const struct crdt_registry *r, unsigned place);
/* The hash of one row, its key and `named`. */
struct crdt_registry_mark {
    uint64_t key, hash;
    uint32_t named;
};
struct crdt_registry_mark crdt_registry_mark(const struct crdt_registry *r, unsigned place);
/* The sum of the hashes of rows named at `from_s` or later. */
uint64_t crdt_registry_digest(const struct crdt_registry *r, uint32_t from_s);

/* Rows that the others have to hear of: the next one's place, or -1; and that it was sent. */
MUST_USE int crdt_registry_news(const struct crdt_registry *r);
void crdt_registry_sent(struct crdt_registry *r, unsigned place);
void crdt_registry_tell(struct crdt_registry *r, unsigned place);

#endif
