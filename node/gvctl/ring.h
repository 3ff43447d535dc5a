/* What a router keeps the last of, /decisions and /events: the last ones as a table, or each as it
 * comes. */
#ifndef NODE_GVCTL_RING_H
#define NODE_GVCTL_RING_H

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"
#include "node/gvctl/given.h"

enum { RING_CLOCK_BYTES = 32 };

struct ring {
    const char *name;     /* of the call and of the answer's list: "decisions" */
    const char *followed; /* further query of a call that follows, "&ended=1" or "" */
    unsigned most;        /* that a router keeps, and tells in one answer */
    /* `answer` is what the entries came in; NULL: none yet. */
    void (*head)(const struct show *how, const json_t *answer);
    void (*line)(const struct show *how, const json_t *answer, const json_t *entry);
    const char *legend; /* below a verbose table */
};

/* By the command line: the last ones, and with --follow those that come, until it is ended. The
 * exit status. */
MUST_USE int ring_show(const struct given *g, const struct ring *ring);

/* How many of the last are wanted: --last, or 32; at most as many as there can be. */
unsigned ring_wanted(const struct given *g, const struct ring *ring);

/* The parts of that, for answers that are put together of several. */
/* As ask_here(); says so where the router knows no such call. */
json_t *ring_ask(const struct given *g, const struct ring *ring, const char *target, bool quiet,
                 struct buf *text, int *status);
bool ring_is_table(const struct given *g);
/* The entries, each in the format that is wanted. */
void ring_print(const struct given *g, const struct ring *ring, const json_t *answer);
/* The whole answer, with what stands around a table. */
void ring_print_last(const struct given *g, const struct ring *ring, json_t *answer);
/* Calls `once` every --interval until it fails with a status that will stay. It prints what came;
 * false: the router cannot be asked. */
typedef bool ring_once(const struct given *g, const struct ring *ring, void *context, int *status);
MUST_USE int ring_follow(const struct given *g, const struct ring *ring, ring_once *once,
                         void *context);

/* The time of a field in Unix milliseconds, by strftime() and, after a dot, its milliseconds where
 * `fine`; "-" if there is none. */
const char *ring_clock(const json_t *entry, const char *key, const char *format, bool fine,
                       char out[RING_CLOCK_BYTES]);

#endif
