/* The replicas that the cluster knows: name -> (when it was named, its cache, operators' wishes).
 *
 *   named, born  the second of cluster time in which a router last named it, and first
 *   incarnation  (start time, raises): the engine's start time in ms (0: the engine never showed
 *                one); raises count losses of the cache without a new start time
 *   wish         (version, wish), and
 *   drain        (version, draining): a router that changes one takes its version + 1
 *
 *   later bytes  fields of a later version, compared as bytes: such a version adds registers of a
 *                fixed width, most significant byte first
 *
 * All parts are totally ordered. Join takes each part's maximum, and the minimum of `born`.
 *
 * A name that no router names for a time is forgotten. The *floor* follows `now` at that distance
 * and only rises. A row with `named` below the floor is absent, and a late one is refused. max(a,
 * b) < floor exactly if both are, so two rows may be joined before or after the floor rises. This
 * router names its own rows again in time (crdt_registry_advance). It also names operators'
 * additions again: if the operator asked this router, or this router saw the replica up within the
 * time of a name. So working replicas stay, and a liar's leftovers go.
 *
 * A row in use has a *slot*: the number by which this router's own tables call the replica. At most
 * `names_max` rows have one: the smallest by (standing, born, key). The *standing* is this router's
 * own and never sent. First come rows that this router names or saw up lately; then other routers'
 * rows; then those beyond CRDT_TOLD_MAX names of one router; then replicas only seen down; last
 * those that operators removed. While all of the others' replicas are up, all routers choose the
 * same rows. The rest *wait*: these rows are joined and sent like all, and get a slot when one is
 * free. At most `rows_max` rows are kept, again the smallest. A held slot gets no other name
 * (crdt_registry_hold). An invalid name (config.is_name) is refused and makes no row.
 *
 * A new incarnation is a new rkey: 31 bits of a hash of name and incarnation, never 0. If two names
 * have the same rkey, each router that knows both raises the greater name's incarnation, so all
 * agree. Observations of a replaced rkey are ignored, and so are those older than the name
 * (crdt_registry_oldest_s).
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
    bool down;        /* seen down since last seen up */
    uint32_t up_s;    /* last seen up; 0: never */
    uint32_t heard_s; /* first report of the replica */
    uint64_t told_by; /* by which router; 0: itself, or on the way of others */
    uint8_t later_len;
    char later[CRDT_LATER_MAX]; /* fields of a later version: the greatest bytes win */
};

struct crdt_registry;

/* Slots are below this number; not all of them are in use (crdt_registry_has). */
unsigned crdt_registry_count(const struct crdt_registry *r);
bool crdt_registry_has(const struct crdt_registry *r, unsigned slot);
/* The row of a slot in use; borrowed until the next change. */
const struct crdt_replica *crdt_registry_at(const struct crdt_registry *r, unsigned slot);
/* The slot in use, or -1. */
MUST_USE int crdt_registry_by_name(const struct crdt_registry *r, struct slice name);
MUST_USE int crdt_registry_by_key(const struct crdt_registry *r, uint64_t key);
MUST_USE int crdt_registry_by_rkey(const struct crdt_registry *r, uint32_t rkey);
/* True if this router names the replica. Its row may wait. */
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
    uint64_t no_names;  /* rows without a valid name */
};
const struct crdt_registry_stats *crdt_registry_stats(const struct crdt_registry *r);
/* The row that waits and is next to have a slot; empty: none waits. Borrowed until the next change.
 */
struct slice crdt_registry_waiting(const struct crdt_registry *r);

/* The last invalid name, and the router that sent it (0: it came another way). The bytes may be
 * anything. Borrowed until the next change. */
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
/* Copies all of `from`, which had a clock ahead of time. Names in the future count as named now.
 * Both have the same configuration except for the time, and `r` is empty. */
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
    uint64_t told_by;   /* the router that sent it in a delta; 0: another way; not sent */
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
/* The caller has data under this slot's number. A held slot gets no other name. */
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
