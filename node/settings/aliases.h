/* Model aliases, as written in the setting model-alias:
 *
 *   NAME=MODEL                   another name for a model
 *   NAME=MODEL:90,MODEL:10       a weighted split
 *   NAME=MODEL>MODEL             the second model if no replica of the first is up
 *
 * The setting is a list, and commas separate the entries. An entry without = therefore continues
 * the split of the entry before.
 *
 * Pure. */
#ifndef NODE_SETTINGS_ALIASES_H
#define NODE_SETTINGS_ALIASES_H

#include "node/settings/options.h"

enum {
    NODE_ALIAS_TARGETS_MAX = 16,       /* targets of an alias */
    NODE_ALIAS_WEIGHT_MAX = 1000000,   /* weight of a side of a split */
    NODE_ALIAS_REASON_BYTES = 4 * 256, /* bytes of an error, which quotes two names */
};

struct node_alias_target {
    struct slice model;
    uint32_t weight; /* weight of a side of the split; 0: a fallback */
    /* Requests sent to this target, and those among them sent here because another target had no
     * replica. */
    uint64_t requests, fallbacks;
};

struct node_alias {
    struct slice name;
    uint32_t weight; /* sum over all sides */
    uint8_t sides;   /* number of sides; in `targets` the sides come before the fallbacks */
    uint8_t count;   /* number of targets */
    struct node_alias_target *targets;
};

struct node_aliases {
    unsigned count;
    bool splits;           /* some alias has several sides */
    struct node_alias *at; /* sorted by name */
    struct node_alias_target *targets;
    char *text; /* the text of all names */
};

/* A contradiction between entries. */
struct node_alias_fault {
    unsigned entry; /* index of the entry */
    char reason[NODE_ALIAS_REASON_BYTES];
};

/* Returns the error in a single entry, as a text with a correct form; NULL: no error. */
const char *node_alias_wrong(struct slice entry);

/* Makes the aliases from entries that node_alias_wrong() accepts. ERR_NOMEM; ERR_RANGE: an entry
 * contradicts others, and `fault` says which and how. `out` is empty after an error. */
MUST_USE int node_aliases_make(struct node_aliases *out, const struct node_strings *entries,
                               struct node_alias_fault *fault);
void node_aliases_free(struct node_aliases *a);
/* Returns the alias with this name; NULL: none. */
struct node_alias *node_alias_find(const struct node_aliases *a, struct slice name);
/* Returns the model's index among the targets of the alias; ERR_NOT_FOUND. */
MUST_USE int node_alias_target(const struct node_alias *a, struct slice model);
/* Copies the counters of each target from `before` to `fresh`, if both have the target. */
void node_aliases_count_on(struct node_aliases *fresh, const struct node_aliases *before);
/* Writes the indices of the targets in the order in which a request with this hash tries them: the
 * side of the split selected by the hash, the other sides, the fallbacks. Returns their number. */
unsigned node_alias_order(const struct node_alias *a, uint64_t hash,
                          uint8_t out[NODE_ALIAS_TARGETS_MAX]);

#endif
