/* An engine's foreign load and its limits of room, by its own gauges (docs/adr/0031). Engines
 * without such gauges have neither.
 *
 * Foreign requests are the engine's running and waiting requests, less all routers' bookings at
 * that moment. Gauges and bookings differ slightly in time, so the lesser of two consecutive
 * readings counts. Without new readings the figure fades.
 *
 * Room has two limits. The first is the number of requests that run at once, learned when some wait
 * while the most ever seen run. The second is the memory that contexts fill. */
#ifndef NODE_REPLICA_FOREIGN_H
#define NODE_REPLICA_FOREIGN_H

#include <stdbool.h>
#include <stdint.h>

struct node_load;
struct node_scrape;

/* Part of struct node_replica. Zeroed: nothing is known. */
struct node_foreign {
    double seen;           /* foreign requests at the last reading */
    double requests;       /* foreign requests: the lesser of the last two readings */
    double waiting;        /* foreign requests in the engine's queue */
    double strange_seen;   /* `seen`, less the requests booked at the ranks of this address */
    double strange;        /* `requests`, less those at the ranks, for operators. Without a rank a
                            * request meets the ranks' load too, so decisions use `requests` */
    double context_tokens; /* mean memory of a running request; 0: unknown */
    double used_tokens;    /* used memory at the last reading; < 0 or at_ms 0: unknown */
    double booked_tokens;  /* contexts that routers had booked at the last reading */
    double running_most;   /* most ever seen running */
    double running_max;    /* limit on running requests; 0: none was seen */
    unsigned full;         /* readings in a row that looked like a limit */
    uint64_t at_ms;        /* time of the last reading; 0: none */
};

/* `at_ranks`: requests that routers have booked at the ranks of the address; `load` has those
 * booked at the address itself. */
void node_foreign_scraped(struct node_foreign *f, const struct node_load *load, double at_ranks,
                          const struct node_scrape *before, const struct node_scrape *now,
                          uint64_t now_ms);

/* All that is under way there, from routers and others. */
struct node_under_way {
    double requests;
    double context_tokens;
    double foreign_waiting; /* foreign requests before the end of their prefill */
};
struct node_under_way node_under_way(const struct node_foreign *f, const struct node_load *load,
                                     uint64_t now_ms);

/* Seconds until a prompt of this number of new tokens finds room. `residence_s` is the time that a
 * running request stays, `cache_tokens` the size of the engine's own memory (0: unknown). */
double node_foreign_wait_s(const struct node_foreign *f, const struct node_load *load,
                           const struct node_under_way *all, double new_tokens, double residence_s,
                           double cache_tokens);

#endif
