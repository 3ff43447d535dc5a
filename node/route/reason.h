/* The reason for a choice: in one word for counters and the access log, and in a phrase for people
 * (GET /decisions, which gvctl and the page show). explain.c has the whole table for a request.
 */
#ifndef NODE_ROUTE_REASON_H
#define NODE_ROUTE_REASON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct node_candidate;

enum node_reason {
    NODE_REASON_LOAD,    /* no prompt was read, so the load alone decided */
    NODE_REASON_MAKER,   /* the replica made the stored response */
    NODE_REASON_ONLY,    /* no other replica could be chosen */
    NODE_REASON_COLD,    /* no replica has a part of the prompt */
    NODE_REASON_CACHED,  /* no replica has more of the prompt */
    NODE_REASON_CHEAPER, /* another replica holds more of the prompt, but costs more, or is busier,
                          * by the policy */
    NODE_REASON_DUE,     /* slow, with less work than the replica's speed deserves (due.c) */
    NODE_REASON_PLAIN,   /* the plain policy chose, in shadow mode or for the control group
                          * (shadow.h) */
    NODE_REASONS,
};

/* "cached", ...: the label of grapevine_decisions_total. */
const char *node_reason_text(enum node_reason reason);

/* Sets `*out` to the reason with this name. False: no reason has this name. */
bool node_reason_parse(struct slice text, enum node_reason *out);

/* Facts for the phrase. `most` is the other replica with most of the prompt cached, `next` the
 * cheapest other replica. A NULL candidate: there is no other replica. */
struct node_reason_row {
    const struct node_candidate *candidate;
    struct slice name;
};
struct node_reason_facts {
    enum node_reason reason;
    unsigned attempt;
    uint64_t prompt_tokens;
    bool has_costs;
    double displaced_weight;
    struct node_reason_row chosen, most, next;
};
enum { NODE_REASON_WORDS_BYTES = 512 };
/* Writes the phrase, such as "holds 4900 of 5210 prompt tokens; 10.0.0.3:8000 is next with 1200".
 * Returns `out`. */
const char *node_reason_words(const struct node_reason_facts *facts,
                              char out[NODE_REASON_WORDS_BYTES]);

/* The reason for a policy's choice among `count` candidates. */
enum node_reason node_reason_of(const struct node_candidate *candidates, unsigned count,
                                unsigned chosen);

#endif
