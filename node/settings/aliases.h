/* Model aliases, as the setting model-alias writes them:
 *
 *   NAME=MODEL                   one model under another name
 *   NAME=MODEL:90,MODEL:10       a weighted split
 *   NAME=MODEL>MODEL             the second where no replica of the first is up
 *
 * The setting is a list, and commas separate its entries. So an entry without = continues the split
 * of the one before.
 *
 * Pure. */
#ifndef NODE_SETTINGS_ALIASES_H
#define NODE_SETTINGS_ALIASES_H

#include "node/settings/options.h"

enum {
    NODE_ALIAS_TARGETS_MAX = 16,       /* models of one alias */
    NODE_ALIAS_WEIGHT_MAX = 1000000,   /* of one side of a split */
    NODE_ALIAS_REASON_BYTES = 4 * 256, /* of what is wrong: it quotes two names */
};

struct node_alias_target {
    struct slice model;
    uint32_t weight; /* of a side of the split; 0: a fallback */
    /* Requests that went there, and those of them that another target had no replica for. */
    uint64_t requests, fallbacks;
};

struct node_alias {
    struct slice name;
    uint32_t weight; /* of all sides */
    uint8_t sides;   /* they come first; fallbacks follow */
    uint8_t count;
    struct node_alias_target *targets;
};

struct node_aliases {
    unsigned count;
    bool splits;           /* one has several sides */
    struct node_alias *at; /* by name */
    struct node_alias_target *targets;
    char *text; /* of all names */
};

/* What is wrong with the entries together. */
struct node_alias_fault {
    unsigned entry; /* its number */
    char reason[NODE_ALIAS_REASON_BYTES];
};

/* What is wrong with an entry by itself, and would be right; NULL: nothing. */
const char *node_alias_wrong(struct slice entry);

/* ERR_NOMEM; ERR_RANGE: an entry contradicts others, and `fault` is which and how. `out` is empty
 * after an error. */
MUST_USE int node_aliases_make(struct node_aliases *out, const struct node_strings *entries,
                               struct node_alias_fault *fault);
void node_aliases_free(struct node_aliases *a);
/* NULL: there is none of that name. */
struct node_alias *node_alias_find(const struct node_aliases *a, struct slice name);
/* Number of that model among the targets; ERR_NOT_FOUND. */
MUST_USE int node_alias_target(const struct node_alias *a, struct slice model);
/* The counters of what is in both go on. */
void node_aliases_count_on(struct node_aliases *fresh, const struct node_aliases *before);
/* Writes the numbers of the targets in the order in which a request of that hash tries them: its
 * side of the split, the other sides, the fallbacks. Returns how many. */
unsigned node_alias_order(const struct node_alias *a, uint64_t hash,
                          uint8_t out[NODE_ALIAS_TARGETS_MAX]);

#endif
