/* Merges the events of all routers in a cluster: the answers to GET /events?all=1 become a single
 * list in order of time. Pure except for messages about silent routers.
 *
 * With --follow, gvctl asks a router repeatedly for all routers' events `within` the last moments,
 * by each router's clock. Windows may overlap: events taken before are recognised by number. The
 * answer of a new router, or of a router silent meanwhile, counts only once the window reaches back
 * to the last event taken from this router.
 *
 * Memory: a row for each router with an answer so far, at most GATHER_ROUTERS_MAX. */
#ifndef NODE_GVCTL_GATHER_H
#define NODE_GVCTL_GATHER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    GATHER_ROUTERS_MAX = 1024, /* beyond this number all are forgotten, and kept events are shown
                                * again */
    GATHER_OVERLAP_MS = 2000,  /* overlap of two windows */
    GATHER_NAMED_MAX = 8,      /* routers named as not asked; the others are counted */
};

struct gather {
    const char *only; /* name of the only router of interest; NULL: all routers */
    json_t *routers;  /* owned; name -> position of the last event taken */
    json_t *silent;   /* owned; name -> reason why the last answer is missing */
};

/* Returns false if out of memory. `only` is borrowed until gather_end(). */
bool gather_begin(struct gather *g, const char *only);
void gather_end(struct gather *g);

/* Returns how far back the question at `now_s` (of call_seconds()) has to reach, in milliseconds;
 * 0: to the oldest event kept. */
uint64_t gather_within_ms(const struct gather *g, double now_s);
/* Takes the answer to a question asked at `now_s` for the time `within_ms`. Returns the new events
 * in order of time, oldest first, each with a field `router`; owned by the caller. NULL: an answer
 * of another form. */
json_t *gather_take(struct gather *g, const json_t *answer, double now_s, uint64_t within_ms);

/* Prints a line to stderr for each router without an answer now, unless it lacked an answer at the
 * last call too. */
void gather_tell_silent(struct gather *g, const json_t *answer);
/* Prints a line to stderr with the routers not asked: dead routers, and routers without a common
 * version of the protocol. */
void gather_tell_not_asked(const struct gather *g, const json_t *answer);

#endif
