/* Reads figures from /metrics by a table, one row a figure (scrape_table.c). */
#ifndef NODE_REPLICA_SCRAPE_INTERNAL_H
#define NODE_REPLICA_SCRAPE_INTERNAL_H

#include <stddef.h>

#include "base/slice.h"
#include "node/replica/scrape.h"

/* The figures that the rows fill in, and from which the rest of a scrape follows; -1: missing. */
struct node_scrape_figures {
    struct node_scrape told;
    double awake;       /* below 1: one of vLLM's ranks sleeps */
    double prompts;     /* vLLM, tokens of the prompts that prefill_s is of */
    double configs;     /* vLLM, ranks that tell the size of their cache: */
    double blocks;      /* of all ranks together: the server adds up their values */
    double rank_tokens; /* of one rank */
    double pages;       /* SGLang, of `block_tokens` each */
    double computed;    /* SGLang's schedulers, tokens of prompts, */
    double reused;      /* cached tokens of these, missing until the first one, */
    double decoded;     /* and tokens of answers */
    double nothing;     /* for rows that are only signs of work */
};

/* How a figure is combined from several ranks' values, and its value for each rank. */
enum node_scrape_how {
    ADD,
    COUNTER, /* added; a restart is seen by its going back */
    MEAN,
    RATIO, /* added; a value of the process for all its ranks holds for each rank */
    MOST,  /* all ranks report the same, so the value holds for each rank */
};

/* Bits for signs of work (work.h). */
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

/* The first NODE_WORK_SIGNS of them are the signs of work; the rest are not. */
extern const struct node_scrape_row node_scrape_rows[NODE_SCRAPE_ROWS];

#endif
