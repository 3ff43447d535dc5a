/* What a scrape reads of /metrics: a table, one row a figure (scrape_table.c). */
#ifndef NODE_REPLICA_SCRAPE_INTERNAL_H
#define NODE_REPLICA_SCRAPE_INTERNAL_H

#include <stddef.h>

#include "base/slice.h"
#include "node/replica/scrape.h"

/* What the rows fill in, and what the rest of a scrape follows from; -1: not told. */
struct node_scrape_figures {
    struct node_scrape told;
    double awake;       /* below 1: one of vLLM's ranks sleeps */
    double prompts;     /* vLLM, tokens of the prompts that prefill_s is of */
    double configs;     /* vLLM, ranks that tell the size of their cache: */
    double blocks;      /* of all of these together: the server adds up what they say */
    double rank_tokens; /* of one of them */
    double pages;       /* SGLang, of `block_tokens` each */
    double computed;    /* SGLang's schedulers, tokens of prompts, */
    double reused;      /* what was cached of them, missing until some is, */
    double decoded;     /* and tokens of answers */
    double nothing;     /* of rows that are signs of work and no more */
};

/* How a figure is made of what several ranks tell, and which of that is true of each one. */
enum node_scrape_how {
    ADD,
    COUNTER, /* added; a restart is seen by its going back */
    MEAN,
    RATIO, /* added; where the process tells it for all its ranks, it is true of each */
    MOST,  /* all tell the same: so it is true of each */
};

/* Of a sign of work (work.h), bits. */
enum { STEP = 1, GAUGE = 2 };

struct node_scrape_row {
    struct slice name;
    size_t figure; /* offset in struct node_scrape_figures; the first row that has a value counts */
    enum node_scrape_how how;
    unsigned sign;
    struct slice label; /* of series that have this label: */
    struct slice is;    /* with this value; empty: the label's value is the figure */
};

enum { NODE_SCRAPE_ROWS = 48 };

/* The first NODE_WORK_SIGNS of them are the signs of work, the rest is none. */
extern const struct node_scrape_row node_scrape_rows[NODE_SCRAPE_ROWS];

#endif
