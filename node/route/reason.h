/* The reason for a choice, in one word: for counters and the access log. explain.c has the whole
 * table for one request. */
#ifndef NODE_ROUTE_REASON_H
#define NODE_ROUTE_REASON_H

struct node_candidate;

enum node_reason {
    NODE_REASON_LOAD,    /* no prompt was read: by load alone */
    NODE_REASON_MAKER,   /* the replica made the stored response */
    NODE_REASON_ONLY,    /* no other replica could be chosen */
    NODE_REASON_COLD,    /* no replica has a part of the prompt */
    NODE_REASON_CACHED,  /* no replica has more of the prompt */
    NODE_REASON_CHEAPER, /* another holds more, and was not chosen: busier, by the policy */
    NODE_REASON_DUE,     /* slow, with less work than its speed deserves (due.c) */
    NODE_REASONS,
};

/* "cached", ...: the label of grapevine_decisions_total. */
const char *node_reason_text(enum node_reason reason);

/* The reason for a choice among `count` candidates by their prompts. */
enum node_reason node_reason_of(const struct node_candidate *candidates, unsigned count,
                                unsigned chosen);

#endif
