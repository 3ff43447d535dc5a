/* The last decisions of a router, each with the candidate table and the outcome.
 *
 * A ring of fixed size, allocated once. If requests come faster than NODE_DECISIONS_PER_S, the ring
 * keeps a sample, and all retries. Prompts are not kept, except for the size. Request ids, model
 * names and aliases are cut at the limits below.
 *
 * Each entry has a number, from 1 on. A single counter gives each new entry a `change`, and a
 * higher `change` when the attempt's outcome and the request's result are known. A reader asks for
 * all changes beyond the last `change` seen, and so misses no entry of the ring. */
#ifndef NODE_ROUTE_DECISIONS_H
#define NODE_ROUTE_DECISIONS_H

#include "base/json_write.h"
#include "node/route/result.h"
#include "node/route/router.h"

enum {
    NODE_DECISIONS_MAX = 512,     /* decisions in the ring */
    NODE_DECISIONS_PER_S = 64,    /* decisions kept each second; a sample if there are more */
    NODE_DECISIONS_BURST = 256,   /* decisions kept at once after a pause */
    NODE_DECISION_ROWS_MAX = 8,   /* replicas in a table: the cheapest, and the chosen one */
    NODE_DECISION_ID_BYTES = 64,  /* limit of the request's id */
    NODE_DECISION_NAME_BYTES = 96 /* limit of a model's name, and of an alias */
};

struct node_decisions;

/* The outcome of an attempt. Token counts that the engine did not report are -1. */
struct node_decision_end {
    enum node_outcome outcome;
    unsigned status;         /* status sent or meant for the client; 0: no answer */
    uint64_t first_token_ms; /* time of the first token; 0: none */
    int64_t prompt_tokens, cached_tokens, completion_tokens; /* as reported by the engine */
};

enum node_decisions_order {
    NODE_DECISIONS_LAST,    /* the newest entries, in the order of their numbers */
    NODE_DECISIONS_AFTER,   /* the first entries with a number above `beyond` */
    NODE_DECISIONS_CHANGES, /* the first entries with a change above `beyond`, in the order of
                             * changes */
    NODE_DECISIONS_ONE,     /* the entry with the number `beyond` */
};

/* Selects entries. */
struct node_decisions_query {
    enum node_decisions_order order;
    uint64_t beyond;
    unsigned count; /* select at most this number of entries */
    bool ended;     /* select only entries with an ended attempt */
    /* Filters of decisions; empty or 0: any. */
    struct slice model;   /* the model's name, or the alias that the client named */
    struct slice replica; /* the chosen replica */
    bool has_reason;
    enum node_reason reason;
    bool failed;      /* the attempt failed, even if a retry hid the failure from the client */
    uint64_t slow_ms; /* the first token took longer than this, or is missing for longer; for an
                       * answer without a stream, the whole answer */
};

/* Creates an empty ring. ERR_NOMEM. */
MUST_USE int node_decisions_create(struct node_decisions **out);
void node_decisions_destroy(struct node_decisions *d);
/* The router records decisions in `d` from now on. `d` is borrowed; NULL: records none. */
void node_router_decisions(struct node_router *r, struct node_decisions *d);

/* The attempt with this number ended. Does nothing if the entry is no longer in the ring. */
void node_decisions_end(struct node_decisions *d, uint64_t number,
                        const struct node_decision_end *end, uint64_t now_ms);

/* The request ended with this result, and the attempt with this number was the last. Call after
 * node_decisions_end(). An attempt without a result was retried. */
void node_decisions_result(struct node_decisions *d, uint64_t number, enum node_result result);

/* The greatest number so far; 0: none. */
uint64_t node_decisions_newest(const struct node_decisions *d);
/* Number of decisions made, kept or not. */
uint64_t node_decisions_made(const struct node_decisions *d);
/* True if the entry with this number is in the ring, and the attempt has ended. */
bool node_decisions_ended(const struct node_decisions *d, uint64_t number);

/* Writes an array of the entries selected by the query. `unix_ms` is the present Unix time. Returns
 * `beyond` for the next query by changes: the last change in the array, or after a query in another
 * order the last change of all. */
uint64_t node_decisions_write(const struct node_decisions *d, const struct node_router *r,
                              const struct node_decisions_query *query, uint64_t now_ms,
                              uint64_t unix_ms, struct json_writer *w);
/* Writes only the outcome of the entry with this number, as an object: {"id":..,"outcome":{..}}. */
void node_decisions_end_write(const struct node_decisions *d, uint64_t number,
                              struct json_writer *w);
/* Checks the invariants. */
void node_decisions_check(const struct node_decisions *d);

#endif
