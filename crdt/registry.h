/* The replicas known to the cluster: name -> (when named, which cache, operators' wishes).
 *
 *   named, born  the seconds of cluster time in which a router last and first named the replica
 *   incarnation  (start time, raises): the engine's start time in ms (0: never shown by the
 *                engine), and the number of cache losses without a new start time
 *   wish         (version, wish): a change of the wish takes the next version
 *   drain        (version, draining), with a separate version
 *   later bytes  fields of a later version, compared as bytes: such a version adds registers of a
 *                fixed width, most significant byte first
 *
 * All parts are totally ordered. Join takes each part's maximum, and the minimum of `born`.
 *
 * A name that no router names for `ttl_s` is forgotten. The *floor* is `now` - `ttl_s` and only
 * rises. A row with `named` below the floor is absent, and refused if it arrives. max(a, b) < floor
 * exactly if both are, so two rows may be joined before or after the floor rises. A router names
 * again, in time, the replicas that it lists (crdt_registry_advance). A router also repeats an
 * operator's addition if the operator asked this router, or if this router saw the replica up
 * within `ttl_s`. So working replicas stay, and the invented names of a lying router expire.
 *
 * A row in use has a *slot*: the replica's number in this router's tables. At most `names_max` rows
 * have a slot: the smallest by (standing, born, key). The *standing* is this router's judgement and
 * is never sent. First come rows named or lately seen up by this router; then other routers' rows;
 * then rows beyond CRDT_TOLD_MAX names of a router; then replicas only seen down; last replicas
 * removed by operators. While all replicas are up, all routers choose the same rows. The other rows
 * *wait*: they are joined and sent like any row, and get a slot as soon as a slot is free. At most
 * `rows_max` rows are kept, again the smallest. A held slot gets no other name
 * (crdt_registry_hold). An invalid name (config.is_name) is refused and makes no row.
 *
 * A new incarnation is a new rkey: 31 bits of a hash of name and incarnation, never 0. If two names
 * have the same rkey, every router with both names raises the incarnation of the greater name, so
 * all agree. Observations of a replaced rkey are ignored, and so are observations older than the
 * name (crdt_registry_oldest_s).
 *
 * Invariants (crdt_registry_check): names, keys and rkeys in force are distinct and found by the
 * look-ups; the digest is the sum of the rows' hashes; no row is below the floor; no waiting row is
 * smaller than a row in use, and no row waits while there is room.
 */
#ifndef CRDT_REGISTRY_H
#define CRDT_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"
#include "crdt/limits.h"

enum crdt_wish {
    CRDT_WISH_NONE,    /* each router's configuration decides */
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
    uint64_t key;                 /* 48-bit hash of the name; never changes */
    uint32_t rkey;
    struct crdt_incarnation incarnation;
    uint32_t named, born; /* seconds of cluster time; born <= named */
    uint32_t wish_version, drain_version;
    enum crdt_wish wish;
    bool draining;
    /* The fields below are this router's and never sent. */
    bool ours;        /* this router lists the replica */
    bool asked;       /* an operator asked this router to add the replica */
    bool excess;      /* beyond CRDT_TOLD_MAX names of the router `told_by` */
    bool down;        /* seen down since last seen up */
    uint32_t up_s;    /* last seen up; 0: never */
    uint32_t heard_s; /* second in which this router first heard of the replica */
    uint64_t told_by; /* the router whose delta brought the name; 0: no delta did */
    uint8_t later_len;
    char later[CRDT_LATER_MAX]; /* fields of a later version: the greatest bytes win */
};

struct crdt_registry;

/* Slots are below this number; not all of them are in use (crdt_registry_has). */
unsigned crdt_registry_count(const struct crdt_registry *r);
bool crdt_registry_has(const struct crdt_registry *r, unsigned slot);
/* The row of a slot in use; borrowed until the next change. */
const struct crdt_replica *crdt_registry_at(const struct crdt_registry *r, unsigned slot);
/* The slot of this replica if the row is in use, or -1. */
MUST_USE int crdt_registry_by_name(const struct crdt_registry *r, struct slice name);
MUST_USE int crdt_registry_by_key(const struct crdt_registry *r, uint64_t key);
MUST_USE int crdt_registry_by_rkey(const struct crdt_registry *r, uint32_t rkey);
/* True if this router lists the replica, whose row may be waiting. */
bool crdt_registry_is_ours(const struct crdt_registry *r, struct slice name);
/* Observations from before this second belong to an earlier use of the name and are ignored. */
uint32_t crdt_registry_oldest_s(const struct crdt_registry *r, unsigned slot);
/* A number that changes with every change of the registry, for pollers. */
uint64_t crdt_registry_version(const struct crdt_registry *r);

struct crdt_registry_stats {
    unsigned names;     /* names with a slot */
    unsigned names_max; /* most names with a slot at a time */
    unsigned waiting;   /* names that wait for a slot */
    uint64_t forgotten; /* names forgotten since the start */
    uint64_t late;      /* rows refused because they were below the floor */
    uint64_t future;    /* rows refused because their `named` is too far ahead */
    uint64_t refused;   /* rows refused, or removed for smaller rows, because rows_max rows were
                         * kept */
    uint64_t no_names;  /* rows refused for an invalid name */
};
const struct crdt_registry_stats *crdt_registry_stats(const struct crdt_registry *r);
/* The name of the waiting row that is next to get a slot; empty: no row waits. Borrowed until the
 * next change.
 */
struct slice crdt_registry_waiting(const struct crdt_registry *r);

/* The last invalid name, which may be any bytes, and the router whose delta brought it (0: no delta
 * did). Borrowed until the next change. */
struct slice crdt_registry_no_name(const struct crdt_registry *r, uint64_t *told_by);

/* The number of slots to configure for `names_max` names in use. It is greater, because some slots
 * are held for a while after their names are forgotten. */
unsigned crdt_registry_slots(unsigned names_max);

/* --- for crdt/state.c, which publishes each change to the index and to the other routers ------ */

struct crdt_registry_config {
    unsigned slots;     /* 1 .. CRDT_REPLICAS_MAX */
    unsigned names_max; /* names with a slot at a time; 0: `slots` */
    unsigned rows_max;  /* rows in use or waiting; 0: CRDT_ROWS_MAX */
    uint32_t ttl_s;     /* seconds until a name that no router names is forgotten; 0:
                         * CRDT_NAMES_TTL_S */
    uint32_t skew_s;    /* seconds by which a peer's clock may be ahead; 0: ttl_s / 8 */
    uint32_t now_s;     /* second of cluster time */
    uint64_t self;      /* this router's id: spreads the times at which routers repeat names */
    bool (*is_name)(struct slice name); /* says if a name is valid: a pure function, the same at all
                                         * routers; NULL: all names are valid */
};
/* ERR_NOMEM. */
MUST_USE int crdt_registry_create(struct crdt_registry **out,
                                  const struct crdt_registry_config *config);
void crdt_registry_destroy(struct crdt_registry *r);
void crdt_registry_check(const struct crdt_registry *r);
/* Copies the whole registry `from`, whose clock was ahead. Names in the future count as named now.
 * Both registries have the same configuration except for the time, and `r` is empty. */
void crdt_registry_copy(struct crdt_registry *r, const struct crdt_registry *from);

/* Advances the time; an earlier time is ignored. Repeats this router's names before they expire,
 * raises the floor, and forgets the rows below the floor. */
void crdt_registry_advance(struct crdt_registry *r, uint32_t now_s);
uint32_t crdt_registry_floor_s(const struct crdt_registry *r);

/* A row as routers send it to each other, without derived fields. */
struct crdt_registry_row {
    struct slice name; /* 1 .. CRDT_NAME_MAX bytes */
    uint32_t named, born;
    struct crdt_incarnation incarnation;
    uint32_t wish_version, drain_version;
    enum crdt_wish wish;
    bool draining;
    struct slice later; /* at most CRDT_LATER_MAX bytes, no zero at the end */
    uint64_t told_by;   /* the router whose delta brought the row; 0: no delta did; not sent */
};

/* Joins a row, known or new. Returns the row's slot; ERR_AGAIN: the row waits for a slot;
 * ERR_SYNTAX: the name is invalid; ERR_RANGE: the name is empty or too long, or `named` is too far
 * ahead; ERR_STALE: the row is below the floor; ERR_FULL: no room even to wait. Refused rows are
 * counted. `news` says whether the row inflated the registry. If two rkeys collide, another row's
 * incarnation may rise too. If all slots are taken, a row of greater rank than this row may lose
 * its slot and wait again. */
MUST_USE int crdt_registry_join(struct crdt_registry *r, const struct crdt_registry_row *row,
                                bool *news);
/* Finds or makes the row of a name, with the results and `news` of crdt_registry_join(). `ours`:
 * from now on this router lists the name. */
MUST_USE int crdt_registry_name(struct crdt_registry *r, struct slice name, bool ours, bool *news);
/* This router saw the replica up, or down. */
void crdt_registry_seen(struct crdt_registry *r, unsigned slot, bool up);
/* This router no longer lists the replica. */
void crdt_registry_unname(struct crdt_registry *r, struct slice name);
/* Set an operator's wish, or drain, with the next version; the row counts as named now. Both return
 * whether something changed. crdt_registry_wish() also queues the row for the other routers, and
 * may move the row to another place. */
bool crdt_registry_wish(struct crdt_registry *r, unsigned place, enum crdt_wish wish);
bool crdt_registry_drain(struct crdt_registry *r, unsigned place, bool draining);
/* See crdt_state_restarted(). */
bool crdt_registry_restarted(struct crdt_registry *r, unsigned slot, uint64_t started);
/* Holds or releases a slot. While a slot is held, it gets no other name: for callers with data
 * under the slot's number. */
void crdt_registry_hold(struct crdt_registry *r, unsigned slot, bool held);

/* --- all rows, waiting ones too: what routers compare and send -------------------------------- */

/* Every row has a *place*. The place of a row in use is the slot. Returns the next place with a row
 * after `after` (-1: the first place), or -1. */
MUST_USE int crdt_registry_next(const struct crdt_registry *r, int after);
MUST_USE int crdt_registry_place(const struct crdt_registry *r, uint64_t key);
MUST_USE int crdt_registry_place_of(const struct crdt_registry *r, struct slice name);
struct crdt_registry_row crdt_registry_row(const struct crdt_registry *r, unsigned place);
/* A row's key, hash and `named`. */
struct crdt_registry_mark {
    uint64_t key, hash;
    uint32_t named;
};
struct crdt_registry_mark crdt_registry_mark(const struct crdt_registry *r, unsigned place);
/* The sum of the hashes of rows named at `from_s` or later. */
uint64_t crdt_registry_digest(const struct crdt_registry *r, uint32_t from_s);

/* The queue of rows to send to the other routers. crdt_registry_news(): the place of the next row
 * to send, or -1. crdt_registry_sent(): this row was sent. crdt_registry_tell(): queues a row. */
MUST_USE int crdt_registry_news(const struct crdt_registry *r);
void crdt_registry_sent(struct crdt_registry *r, unsigned place);
void crdt_registry_tell(struct crdt_registry *r, unsigned place);

#endif
