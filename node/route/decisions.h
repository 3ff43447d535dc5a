/* The last decisions of one router, with the table that each was made by and how it ended.
 *
 * A ring of fixed size, allocated once. Where requests come faster than NODE_DECISIONS_PER_S it
 * keeps a sample, and further attempts of a request whatever the rate. It holds nothing of a prompt
 * but its size. The id of a request and the names of its model and alias are cut at their limits.
 *
 * Each entry has a number, from 1 on. Each time one is made, or ends, it gets a new `change`, from
 * one counter: who asks for all beyond the last change that it has seen misses nothing that is
 * still here.
 */
#ifndef NODE_ROUTE_DECISIONS_H
#define NODE_ROUTE_DECISIONS_H

#include "base/json_write.h"
#include "node/route/result.h"
#include "node/route/router.h"

enum {
    NODE_DECISIONS_MAX = 512,     /* kept */
    NODE_DECISIONS_PER_S = 64,    /* beyond that a sample */
    NODE_DECISIONS_BURST = 256,   /* at once */
    NODE_DECISION_ROWS_MAX = 8,   /* replicas in a table: the cheapest, and the chosen one */
    NODE_DECISION_ID_BYTES = 64,  /* of the request's id */
    NODE_DECISION_NAME_BYTES = 96 /* of its model's name, and its alias's */
};

struct node_decisions;

/* How the attempt ended; -1 where nothing said so. */
struct node_decision_end {
    enum node_outcome outcome;
    unsigned status;         /* that the client got, or would have; 0: there was no answer */
    uint64_t first_token_ms; /* when it came; 0: none did */
    int64_t prompt_tokens, cached_tokens, completion_tokens; /* as the engine told them */
};

enum node_decisions_order {
    NODE_DECISIONS_LAST,    /* the last ones, by their numbers */
    NODE_DECISIONS_AFTER,   /* the first ones beyond that number */
    NODE_DECISIONS_CHANGES, /* the first ones beyond that change, by their changes */
    NODE_DECISIONS_ONE,     /* that number alone */
};

/* Which entries are wanted. */
struct node_decisions_query {
    enum node_decisions_order order;
    uint64_t beyond;
    unsigned count; /* so many at most */
    bool ended;     /* only those that have ended */
};

/* ERR_NOMEM. */
MUST_USE int node_decisions_create(struct node_decisions **out);
void node_decisions_destroy(struct node_decisions *d);
/* From now on the router keeps its decisions there; borrowed. NULL: it keeps none. */
void node_router_decisions(struct node_router *r, struct node_decisions *d);

/* The attempt of that number ended; does nothing for one that is not kept. */
void node_decisions_end(struct node_decisions *d, uint64_t number,
                        const struct node_decision_end *end, uint64_t now_ms);

/* The request itself ended so with the attempt of that number, its last; after
 * node_decisions_end(). Of an attempt of which that is never said the request was retried. */
void node_decisions_result(struct node_decisions *d, uint64_t number, enum node_result result);

/* The greatest number so far; 0: none. */
uint64_t node_decisions_newest(const struct node_decisions *d);
/* How many were made, kept or not. */
uint64_t node_decisions_made(const struct node_decisions *d);
/* Whether the entry of that number is here, and has ended. */
bool node_decisions_ended(const struct node_decisions *d, uint64_t number);

/* Writes an array of the entries that the query wants. `unix_ms` is the time now in Unix time.
 * Returns the change up to which the array goes: `beyond` of the next query by changes. */
uint64_t node_decisions_write(const struct node_decisions *d, const struct node_router *r,
                              const struct node_decisions_query *query, uint64_t now_ms,
                              uint64_t unix_ms, struct json_writer *w);
/* Of the entry of that number only how it ended, as an object: {"id":..,"outcome":{..}}. */
void node_decisions_end_write(const struct node_decisions *d, uint64_t number,
                              struct json_writer *w);
/* Its invariants. */
void node_decisions_check(const struct node_decisions *d);

#endif
