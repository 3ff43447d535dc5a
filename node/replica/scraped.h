/* The metrics of an engine, read by 1 or 2 routers for all: the choice of these routers, and the
 * other routers' use of the reported figures.
 *
 * The first NODE_SCRAPERS routers in turn (turn.h) scrape the engine, and report these figures
 * along with learned figures (crdt/learned.h). The other routers use them as if they had scraped. A
 * router without figures for NODE_SCRAPE_STALE_MS scrapes by itself; so does a router whose
 * requests get no token (node/proxy/guard/watch.h). A router's own figures count for
 * NODE_SCRAPE_STALE_MS, since others' figures are older.
 *
 * Each router also counts and reports how often it saw the engine work (node/replica/work.h), by a
 * reading or by received tokens. At all routers a rising count is a sign of work.
 *
 * Only a scraping router reports a restart to the registry; the others learn of it from the
 * registry. */
#ifndef NODE_REPLICA_SCRAPED_H
#define NODE_REPLICA_SCRAPED_H

#include <stdbool.h>
#include <stdint.h>

struct crdt_learned;
struct node_replica;
struct node_scrape;

enum {
    NODE_SCRAPERS = 2,           /* with 2 scrapers, there is no gap when a scraper dies */
    NODE_SCRAPE_STALE_MS = 3500, /* three of the usual intervals, and the delay of a report */
};

/* Part of struct node_replica. */
struct node_scraped {
    uint32_t count;         /* number of own scrapes */
    uint64_t own_ms;        /* time of the last own scrape; 0: never */
    uint64_t told_by;       /* router whose count of work was read last; 0: none */
    uint64_t source;        /* router that measured the present figures; 0: this router */
    uint32_t counted;       /* number of scrapes in the last report of `source` */
    bool earlier;           /* the last metrics were ignored as late (node_scraped_is_late()) */
    unsigned ranks_missing; /* readings in a row without some rank's counters */
};

/* True if this router is due to read the metrics; `interval_ms` is the period. */
bool node_scraped_due(const struct node_replica *k, uint64_t interval_ms, uint64_t now_ms);
/* True if the answer must be ignored, because it comes from a former process: a process with the
 * start time `known_s` has been seen since. The second such answer in a row is believed: the engine
 * restarted after the clock was set back. */
bool node_scraped_is_late(struct node_replica *k, const struct node_scrape *s, double known_s);
/* This router scraped; the caller then calls node_replica_scraped() with the updated `s`. */
void node_scraped_own(struct node_replica *k, struct node_scrape *s, uint64_t now_ms);
/* Adds this router's figures to the report, if other routers use them. */
void node_scraped_report(const struct node_replica *k, uint64_t now_ms, struct crdt_learned *out);
/* Takes in the figures reported by `source`, and `source`'s view of the engine's sleep. False:
 * nothing new. */
bool node_scraped_hear(struct node_replica *k, uint64_t source, const struct crdt_learned *in,
                       bool asleep, uint64_t now_ms);

#endif
