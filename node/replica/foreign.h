/* What an engine does beside what routers booked, and what it has no room for, by its own gauges
 * (docs/adr/0031). Engines that say nothing of the kind have neither.
 *
 * Foreign requests are those that run and wait there, less what all routers have booked at that
 * moment. Gauges and bookings are of slightly different times, so the lesser of two readings in a
 * row counts. Where readings cease it fades. Room has two limits: how many requests run at once,
 * learned where some wait while as many run as ever did, and the memory that contexts fill.
 */
#ifndef NODE_REPLICA_FOREIGN_H
#define NODE_REPLICA_FOREIGN_H

#include <stdbool.h>
#include <stdint.h>

struct node_load;
struct node_scrape;

/* Part of struct node_replica. Zeroed: nothing is known. */
struct node_foreign {
    double seen;           /* foreign requests at the last reading */
    double requests;       /* and those that were there at the one before, too */
    double waiting;        /* of those, in the engine's queue */
    double strange_seen;   /* the same two, less what is booked at the ranks of this address, */
    double strange;        /* for operators: to a request without a rank that is load, too */
    double context_tokens; /* that a running request holds in memory; 0: unknown */
    double used_tokens;    /* of the memory, at the last reading; < 0 or at_ms 0: unknown */
    double booked_tokens;  /* contexts that routers had booked then */
    double running_most;   /* that were ever seen to run */
    double running_max;    /* that can run; 0: no limit was seen */
    unsigned full;         /* readings in a row that looked like a limit */
    uint64_t at_ms;        /* of the last reading; 0: none */
};

/* `at_ranks`: requests that routers have booked at its ranks; `load` has those of the address. */
void node_foreign_scraped(struct node_foreign *f, const struct node_load *load, double at_ranks,
                          const struct node_scrape *before, const struct node_scrape *now,
                          uint64_t now_ms);

/* All that is under way there, of whomever. */
struct node_under_way {
    double requests;
    double context_tokens;
    double foreign_waiting; /* foreign requests whose prompts are not computed yet */
};
struct node_under_way node_under_way(const struct node_foreign *f, const struct node_load *load,
                                     uint64_t now_ms);

/* Seconds until a prompt of so many new tokens finds room. `residence_s` is how long a request
 * stays there once it runs, `cache_tokens` the size of the engine's own memory (0: unknown). */
double node_foreign_wait_s(const struct node_foreign *f, const struct node_load *load,
                           const struct node_under_way *all, double new_tokens, double residence_s,
                           double cache_tokens);

#endif
