/* Shows a router's rings, /decisions and /events: the last entries as a table, or each new entry as
 * it comes. */
#ifndef NODE_GVCTL_RING_H
#define NODE_GVCTL_RING_H

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"
#include "node/gvctl/given.h"

enum { RING_CLOCK_BYTES = 32, RING_FILTER_MAX = 800 /* bytes of a query */ };

struct ring {
    const char *name;     /* name of the call and of the answer's list: "decisions" */
    const char *followed; /* further query for following, "&ended=1" or "" */
    const char *filter;   /* further query of each call, "&failed=1" or "" */
    unsigned most;        /* entries kept by a router and returned in an answer */
    /* Print the head of the table, and the line of an entry. `answer` contains all entries; NULL:
     * none yet. */
    void (*head)(const struct show *how, const json_t *answer);
    void (*line)(const struct show *how, const json_t *answer, const json_t *entry);
    const char *legend; /* text below a verbose table */
};

/* Shows the last entries, and with --follow new ones until interrupted. Returns the exit status. */
MUST_USE int ring_show(const struct given *g, const struct ring *ring);

/* Returns the number of last entries to show: --last, or 32; limited to `most`. */
unsigned ring_wanted(const struct given *g, const struct ring *ring);

/* The parts of ring_show(), for answers merged from several routers. */
/* As ask_here(), with a message if the router does not have such a call. */
json_t *ring_ask(const struct given *g, const struct ring *ring, const char *target, bool quiet,
                 struct buf *text, int *status);
bool ring_is_table(const struct given *g);
/* Prints the entries, each in the requested format. */
void ring_print(const struct given *g, const struct ring *ring, const json_t *answer);
/* Prints the whole answer, with the head and legend of a table. */
void ring_print_last(const struct given *g, const struct ring *ring, json_t *answer);
/* Calls `once` every --interval until it fails with a permanent status. `once` prints new entries;
 * false: the router cannot be asked. */
typedef bool ring_once(const struct given *g, const struct ring *ring, void *context, int *status);
MUST_USE int ring_follow(const struct given *g, const struct ring *ring, ring_once *once,
                         void *context);

/* Returns the time in a field of Unix milliseconds, formatted by strftime(), with milliseconds
 * after a dot if `fine`; "-" if there is none. */
const char *ring_clock(const json_t *entry, const char *key, const char *format, bool fine,
                       char out[RING_CLOCK_BYTES]);

#endif
