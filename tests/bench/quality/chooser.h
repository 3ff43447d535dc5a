/* The choice of an engine for a request: a chooser for each row of the table.
 *
 * A rival knows as much as such a router in service, and each of several routers knows only its own
 * requests. Perfect knowledge looks into the engines. */
#ifndef TESTS_BENCH_QUALITY_CHOOSER_H
#define TESTS_BENCH_QUALITY_CHOOSER_H

#include "tests/bench/quality/play.h"

enum flight_end { FLIGHT_ANSWERED, FLIGHT_REFUSED, FLIGHT_LEFT }; /* left: by the client */

struct chooser {
    const char *name;
    bool is_bound;      /* knows more than any router can: no rival, but a bound */
    const char *policy; /* of Grapevine's router; NULL: a rival or bound */
    void (*open)(struct play *p);
    void (*close)(struct play *p);
    /* The names of the prompt's blocks are in f->sim.chain. */
    unsigned (*choose)(struct play *p, struct flight *f);
    void (*first)(struct play *p, struct flight *f);
    void (*done)(struct play *p, struct flight *f, enum flight_end how);
    void (*moved)(struct play *p, unsigned engine); /* the engine's cache may have changed */
    void (*tick)(struct play *p);                   /* every 5 s */
    void (*replaced)(struct play *p, unsigned old, unsigned new);
};

/* NULL-terminated; routers of Grapevine first, then rivals, then bounds. */
extern const struct chooser *const choosers[];
const struct chooser *chooser_find(const char *name);

/* --- grapevine.c --- */
extern const struct chooser chooser_cache_aware, chooser_round_robin, chooser_least_request,
    chooser_session, chooser_prefix_hash;
extern const struct chooser chooser_chunk_aware; /* no row of the table: for other engines */
/* --- rivals.c --- */
extern const struct chooser chooser_longest_match, chooser_blended, chooser_queue_uncached;
extern const struct chooser chooser_by_speed; /* no row of the table: knows the speeds */
/* --- perfect.c --- */
extern const struct chooser chooser_perfect, chooser_perfect_queue;
extern const struct chooser chooser_load; /* no row of the table: finds the loads */

#endif
