/* Each router's reports about each replica: the router's load there, view of the replica, and
 * learned figures.
 *
 *   (router, replica, kind) -> (epoch, number of the delta, value)
 *
 * Each row is written only by the reporting router, which uses each number once. So the greatest
 * (epoch, number) wins, and ties are equal values. Reports are gauges, not increments: a skipped
 * report does no harm. When a router dies, the router's rows are dropped, and with them the
 * router's load, without a hand-over.
 */
#ifndef CRDT_REPORTS_H
#define CRDT_REPORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "crdt/registry.h"
#include "crdt/value.h"

struct crdt_reports;

/* The replica's load from all other live routers. */
void crdt_reports_load_sum(const struct crdt_reports *r, unsigned slot, struct crdt_load *out);
/* Prefill tokens by which other routers' gauges have dropped since the start, modulo 2^64: only
 * differences have a meaning. Misses tokens that came and went between two reports of a router. */
uint64_t crdt_reports_prefilled(const struct crdt_reports *r, unsigned slot);
/* Calls `visit` with each router's reports about a slot, this router's included, in the order of
 * router ids. NULL: the router has no report of this kind. `visit` returns false to stop. */
void crdt_reports_each(const struct crdt_reports *r, unsigned slot,
                       bool (*visit)(void *context, uint64_t router, const struct crdt_load *load,
                                     const struct crdt_sight *sight,
                                     const struct crdt_learned *learned),
                       void *context);
/* True if the router is alive: then reports from the router count. */
bool crdt_reports_knows(const struct crdt_reports *r, uint64_t router);
/* Version numbers for pollers. The first changes with every change of a load, the second with every
 * other change. */
uint64_t crdt_reports_load_version(const struct crdt_reports *r);
uint64_t crdt_reports_version(const struct crdt_reports *r);

/* --- for crdt/state.c ----------------------------------------------------------------------- */

struct crdt_report {
    uint64_t router;
    uint64_t epoch;
    uint64_t seq;
    unsigned slot;
    enum crdt_report_kind kind;
    union crdt_report_value value;
    struct slice later; /* borrowed: fields of a later version */
};

/* `registry` is borrowed until crdt_reports_destroy(): hashes use the registry's keys, because
 * slots differ between routers. At most `routers_max` routers report, this router included.
 * ERR_NOMEM. */
MUST_USE int crdt_reports_create(struct crdt_reports **out, const struct crdt_registry *registry,
                                 uint64_t self, unsigned routers_max);
void crdt_reports_destroy(struct crdt_reports *r);
void crdt_reports_check(const struct crdt_reports *r);

/* See crdt_state_epoch(), crdt_state_router() and crdt_state_router_gone(). */
void crdt_reports_epoch(struct crdt_reports *r, uint64_t epoch);
void crdt_reports_router(struct crdt_reports *r, uint64_t router, uint64_t epoch);
void crdt_reports_router_gone(struct crdt_reports *r, uint64_t router);

/* Copies this router's rows from `from`, and queues them to be sent. `r` is new, with the same
 * registry. */
void crdt_reports_copy_own(struct crdt_reports *r, const struct crdt_reports *from);

/* Drops all reports about a slot whose name was forgotten. */
void crdt_reports_forget(struct crdt_reports *r, unsigned slot);

/* Sets a row of this router (router, epoch and number are filled in). A changed row is queued to be
 * sent. */
void crdt_reports_set(struct crdt_reports *r, const struct crdt_report *own);
/* The slot of this router's next row of this kind that waits to be sent, from `slot` on, or -1. */
MUST_USE int crdt_reports_waiting(const struct crdt_reports *r, enum crdt_report_kind kind,
                                  unsigned slot);
bool crdt_reports_any_waiting(const struct crdt_reports *r);
void crdt_reports_own(const struct crdt_reports *r, enum crdt_report_kind kind, unsigned slot,
                      struct crdt_report *out);
/* The row was sent in delta number `seq`. */
void crdt_reports_heard(struct crdt_reports *r, enum crdt_report_kind kind, unsigned slot,
                        uint64_t seq);

/* Joins another router's row. 1: news; 0: known; ERR_NOT_FOUND: the router is not alive with this
 * epoch, or is this router itself; ERR_STALE: an earlier epoch; ERR_NOMEM. A peer may still have
 * this router's row about a name forgotten here. Then a zero row is queued to replace it. */
MUST_USE int crdt_reports_join(struct crdt_reports *r, const struct crdt_report *in);

/* The digests of each router's reports, this router's included, in the order of router ids. */
struct crdt_reporter_digest {
    uint64_t router;
    uint64_t epoch;
    uint64_t loads;  /* sum of the hashes of the router's loads */
    uint64_t others; /* sum of the hashes of the other reports, which rarely change */
};
bool crdt_reports_is_self(const struct crdt_reports *r, uint64_t router);
unsigned crdt_reports_routers(const struct crdt_reports *r);
struct crdt_reporter_digest crdt_reports_router_at(const struct crdt_reports *r, unsigned index);
/* The sums over all routers of the digests above. */
void crdt_reports_digest(const struct crdt_reports *r, uint64_t *loads, uint64_t *others);
/* A row of the router at `index`. False: there is no row, or the row waits to be sent and has no
 * number yet. */
bool crdt_reports_row(const struct crdt_reports *r, unsigned index, enum crdt_report_kind kind,
                      unsigned slot, struct crdt_report *out);

#endif
