/* The last decisions of one router, each with its candidate table and its outcome.
 *
 * A ring of fixed size, allocated once. If requests come faster than NODE_DECISIONS_PER_S, the
 * ring keeps a sample, and all retries. Of a prompt only the size is kept. Request ids, model names
 * and aliases are cut at their limits.
 *
 * Each entry has a number, from 1 on. A new entry gets a `change` from one counter, and another
 * one when its attempt ends. A reader that asks for all changes beyond the last one seen misses
 * no entry that is still here. */
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

/* The outcome of an attempt; -1: not reported. */
struct node_decision_end {
    enum node_outcome outcome;
    unsigned status;         /* sent to the client, or meant for it; 0: no answer */
    uint64_t first_token_ms; /* time of the first token; 0: none */
    int64_t prompt_tokens, cached_tokens, completion_tokens; /* as reported by the engine */
};

enum node_decisions_order {
    NODE_DECISIONS_LAST,    /* the last ones, by their numbers */
    NODE_DECISIONS_AFTER,   /* the first ones beyond that number */
    NODE_DECISIONS_CHANGES, /* the first ones beyond that change, by their changes */
    NODE_DECISIONS_ONE,     /* only that number */
};

/* Selects entries. */
struct node_decisions_query {
    enum node_decisions_order order;
    uint64_t beyond;
    unsigned count; /* at most so many */
    bool ended;     /* only those that have ended */
    /* Filters of decisions; empty or 0: any. */
    struct slice model;   /* as the client named it, or what an alias stands for */
    struct slice replica; /* the chosen one */
    bool has_reason;
    enum node_reason reason;
    bool failed;      /* the attempt failed, whether a retry hid that from the client or not */
    uint64_t slow_ms; /* the first token came later, or is not there after so long; of answers that
                       * are no stream, the whole */
};

/* ERR_NOMEM. */
MUST_USE int node_decisions_create(struct node_decisions **out);
void node_decisions_destroy(struct node_decisions *d);
/* The router keeps its decisions there from now on; borrowed. NULL: keeps none. */
void node_router_decisions(struct node_router *r, struct node_decisions *d);

/* The attempt with that number ended. Does nothing if the entry is not kept. */
void node_decisions_end(struct node_decisions *d, uint64_t number,
                        const struct node_decision_end *end, uint64_t now_ms);

/* The request itself ended so with the attempt of that number, its last; after
 * node_decisions_end(). Of an attempt of which that is never said the request was retried. */
void node_decisions_result(struct node_decisions *d, uint64_t number, enum node_result result);

/* The greatest number so far; 0: none. */
uint64_t node_decisions_newest(const struct node_decisions *d);
/* Number of decisions made, kept or not. */
uint64_t node_decisions_made(const struct node_decisions *d);
/* True if the entry with that number is here, and has ended. */
bool node_decisions_ended(const struct node_decisions *d, uint64_t number);

/* Writes an array of the entries that the query selects. `unix_ms` is the present Unix time.
 * Returns the last change in the array: `beyond` of the next query by changes. */
uint64_t node_decisions_write(const struct node_decisions *d, const struct node_router *r,
                              const struct node_decisions_query *query, uint64_t now_ms,
                              uint64_t unix_ms, struct json_writer *w);
/* Writes only the outcome of that entry, as an object: {"id":..,"outcome":{..}}. */
void node_decisions_end_write(const struct node_decisions *d, uint64_t number,
                              struct json_writer *w);
/* Checks the invariants. */
void node_decisions_check(const struct node_decisions *d);

#endif
