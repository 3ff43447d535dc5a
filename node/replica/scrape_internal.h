/* Reads figures from /metrics by a table with a row per metric (scrape_table.c). */
#ifndef NODE_REPLICA_SCRAPE_INTERNAL_H
#define NODE_REPLICA_SCRAPE_INTERNAL_H

#include <stddef.h>

#include "base/slice.h"
#include "node/replica/scrape.h"

/* The figures filled in by the rows; the rest of a scrape follows from them. -1: missing. */
struct node_scrape_figures {
    struct node_scrape told;
    double awake;       /* below 1: a rank of vLLM sleeps */
    double prompts;     /* vLLM: tokens of the prompts in prefill_s */
    double configs;     /* vLLM: number of ranks with a reported cache size */
    double blocks;      /* vLLM: cache blocks of all ranks; the server adds up the ranks' values */
    double rank_tokens; /* vLLM: cache tokens of a rank */
    double pages;       /* SGLang: cache pages of `block_tokens` each */
    double computed;    /* SGLang's schedulers: tokens of prompts */
    double reused;      /* SGLang's schedulers: cached tokens of these prompts; missing until the
                         * first cached token */
    double decoded;     /* SGLang's schedulers: tokens of answers */
    double nothing;     /* for rows that are signs of work and fill no figure */
};

/* How a figure is combined from several ranks' values, and the figure's value for each rank. */
enum node_scrape_how {
    ADD,
    COUNTER, /* added; a falling value shows a restart */
    MEAN,
    RATIO, /* added; if the process has a single value for all ranks, each rank gets this value */
    MOST,  /* all ranks report the same, so all ranks together and each rank get this value */
};

/* Bits for signs of work (work.h). */
enum { STEP = 1, GAUGE = 2 };

struct node_scrape_row {
    struct slice name;
    size_t figure; /* offset in struct node_scrape_figures; if several rows fill a figure, the first
                    * with a value counts */
    enum node_scrape_how how;
    unsigned sign;
    struct slice label; /* only series with this label count; empty: all series */
    struct slice is;    /* the value that the label must have; empty: the figure is the label's
                         * value */
};

enum { NODE_SCRAPE_ROWS = 48 };

/* The first NODE_WORK_SIGNS rows are the signs of work. */
extern const struct node_scrape_row node_scrape_rows[NODE_SCRAPE_ROWS];

#endif
