/* An engine's foreign load and limits of room, from the engine's gauges (docs/adr/0031). Without
 * such gauges, both are unknown.
 *
 * Foreign requests are the engine's running and waiting requests, less all routers' bookings at the
 * same time. Gauges and bookings differ slightly in time, so the lesser of two consecutive readings
 * counts. Without new readings the figure fades.
 *
 * Room has two limits. The first is the number of concurrently running requests. It is learned when
 * requests wait while the most requests ever seen are running. The second is the memory for
 * contexts. */
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
    double strange_seen;   /* `seen`, less requests booked at the ranks of this address */
    double strange;        /* for operators: `requests`, less requests booked at the ranks.
                            * Decisions use `requests`, because a request without a rank meets the
                            * ranks' load too */
    double context_tokens; /* mean memory of a running request; 0: unknown */
    double used_tokens;    /* used memory at the last reading; < 0 or at_ms 0: unknown */
    double booked_tokens;  /* contexts booked by routers at the last reading */
    double running_most;   /* most requests ever seen running */
    double running_max;    /* limit on running requests; 0: none was seen */
    unsigned full;         /* readings in a row with signs of a limit */
    uint64_t at_ms;        /* time of the last reading; 0: none */
};

/* The metrics were read: `now`, and the reading before. `at_ranks`: requests booked by routers at
 * the ranks of the address; `load` has the requests booked at the address itself. */
void node_foreign_scraped(struct node_foreign *f, const struct node_load *load, double at_ranks,
                          const struct node_scrape *before, const struct node_scrape *now,
                          uint64_t now_ms);

/* All requests under way at the replica, from routers and others. */
struct node_under_way {
    double requests;
    double context_tokens;
    double foreign_waiting; /* foreign requests that wait in the engine's queue */
};
struct node_under_way node_under_way(const struct node_foreign *f, const struct node_load *load,
                                     uint64_t now_ms);

/* Seconds until a prompt of this number of new tokens finds room. `residence_s` is the time for
 * which a running request stays, `cache_tokens` the size of the engine's own memory (0:
 * unknown). */
double node_foreign_wait_s(const struct node_foreign *f, const struct node_load *load,
                           const struct node_under_way *all, double new_tokens, double residence_s,
                           double cache_tokens);

#endif
