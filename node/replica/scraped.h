/* The metrics of an engine, read by one or two routers for all: who reads them, and what the others
 * make of what those report.
 *
 * The first NODE_SCRAPERS of the routers whose turn it is (turn.h) scrape it, and report what they
 * read with what they learned (crdt/learned.h); the others take it as if they had read it. A router
 * for which no figures came for NODE_SCRAPE_STALE_MS scrapes by itself, as does one whose requests
 * get no token (node/proxy/guard/watch.h). What it read itself counts for that long: others'
 * figures are older.
 *
 * Each router also counts how often it saw the engine work (node/replica/work.h), by a reading or
 * by tokens of its own, and reports the count. One that rises is a sign of work at all routers.
 *
 * Only who scraped reports a restart to the registry: to the others it comes from there.
 */
#ifndef NODE_REPLICA_SCRAPED_H
#define NODE_REPLICA_SCRAPED_H

#include <stdbool.h>
#include <stdint.h>

struct crdt_learned;
struct node_replica;
struct node_scrape;

enum {
    NODE_SCRAPERS = 2,           /* one may die, and nobody notices */
    NODE_SCRAPE_STALE_MS = 3500, /* three of the usual intervals, and a report on its way */
};

/* Part of struct node_replica. */
struct node_scraped {
    uint32_t count;         /* of own scrapes */
    uint64_t own_ms;        /* when the last one was; 0: never */
    uint64_t told_by;       /* the router whose count of work is known; 0: nobody's */
    uint64_t source;        /* the router whose figures these are; 0: they are own ones */
    uint32_t counted;       /* its count then */
    bool earlier;           /* the last answer was passed over: node_scraped_is_late() */
    unsigned ranks_missing; /* readings in a row without some rank's counters */
};

/* Whether this router is to read its metrics; `interval_ms` is how often. */
bool node_scraped_due(const struct node_replica *k, uint64_t interval_ms, uint64_t now_ms);
/* Whether its answer is to be passed over: it is of a process that is gone, for one that began at
 * `known_s` has been seen. What says so twice in a row is believed: an engine restarted, and its
 * clock was set back. */
bool node_scraped_is_late(struct node_replica *k, const struct node_scrape *s, double known_s);
/* It did: node_replica_scraped() follows, with `s` as it is then. */
void node_scraped_own(struct node_replica *k, struct node_scrape *s, uint64_t now_ms);
/* Adds what it read, if there is anybody to read it. */
void node_scraped_report(const struct node_replica *k, uint64_t now_ms, struct crdt_learned *out);
/* What `source` reported, and whether the engine is asleep. False: nothing new. */
bool node_scraped_hear(struct node_replica *k, uint64_t source, const struct crdt_learned *in,
                       bool asleep, uint64_t now_ms);

#endif
