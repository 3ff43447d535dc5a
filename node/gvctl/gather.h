/* What each router of a cluster saw, put together: the answers to GET /events?all=1 as one list by
 * time. Pure but for what it prints of routers that are silent.
 *
 * To follow, the router that is asked is asked again and again for what happened `within` the last
 * moments, each by its own clock. What was taken before is known by its number, so windows may
 * overlap. A router that was silent meanwhile, or is new, gets a window of its own: its answer
 * counts once the window reaches back to what was last taken of it.
 *
 * In memory: a row for each router that ever answered, at most GATHER_ROUTERS_MAX.
 */
#ifndef NODE_GVCTL_GATHER_H
#define NODE_GVCTL_GATHER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    GATHER_ROUTERS_MAX = 1024, /* then all are forgotten, and what is kept is shown once more */
    GATHER_OVERLAP_MS = 2000,  /* of two windows */
    GATHER_NAMED_MAX = 8,      /* of those that were not asked; the others are counted */
};

struct gather {
    const char *only; /* the one router whose events are wanted; NULL: all */
    json_t *routers;  /* owned; name -> how far it was taken */
    json_t *silent;   /* owned; name -> why it did not answer the last time */
};

/* False: there is no memory. `only` is borrowed until gather_end(). */
bool gather_begin(struct gather *g, const char *only);
void gather_end(struct gather *g);

/* How far back the question at `now_s` (of call_seconds()) has to reach, in milliseconds; 0: to the
 * oldest that is kept. */
uint64_t gather_within_ms(const struct gather *g, double now_s);
/* Takes the answer to a question of `now_s` that reached so far back. Returns what is new by time,
 * the oldest first, each entry with its `router`; the caller's. NULL: it is no such answer. */
json_t *gather_take(struct gather *g, const json_t *answer, double now_s, uint64_t within_ms);

/* A line on stderr for each router that did not answer and did before, or was not asked before. */
void gather_tell_silent(struct gather *g, const json_t *answer);
/* A line on stderr with those that were not asked: they are dead, or not understood. */
void gather_tell_not_asked(const struct gather *g, const json_t *answer);

#endif
