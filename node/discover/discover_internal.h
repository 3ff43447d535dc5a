/* Shared by the files of node/discover: discover.c decides, list.c stores a source's list, show.c
 * writes JSON and metrics. */
#ifndef NODE_DISCOVER_DISCOVER_INTERNAL_H
#define NODE_DISCOVER_DISCOVER_INTERNAL_H

#include "node/discover/discover.h"

/* An owned copy of a discover_entry. */
struct discover_item {
    enum discover_state state;
    struct node_labels labels; /* without the texts, which are in the arrays below */
    uint16_t name_len, model_len, health_len, kv_events_len;
    char name[NODE_NAME_MAX];
    char model[NODE_MODEL_ID_MAX];
    char health[NODE_HEALTH_PATH_MAX];
    char kv_events[KV_NAMED_MAX];
};

/* Sorted by name, each name once. */
struct discover_items {
    struct discover_item *at; /* owned; NULL while empty */
    unsigned count;
};

/* Makes a sorted list of the entries; of a repeated name the first entry counts. ERR_LIMIT,
 * ERR_RANGE or ERR_NOMEM, as discover_list(). Free `out` with discover_items_free(). */
MUST_USE int discover_items_of(struct discover_items *out, const struct discover_entry *entries,
                               unsigned count);
void discover_items_free(struct discover_items *list);
bool discover_items_equal(const struct discover_items *a, const struct discover_items *b);
bool discover_item_same(const struct discover_item *a, const struct discover_item *b);
/* Returns the item of this name, or NULL. */
const struct discover_item *discover_items_find(const struct discover_items *list,
                                                struct slice name);

static inline struct slice discover_item_name(const struct discover_item *item)
{
    return slice_of(item->name, item->name_len);
}
/* Returns the item's labels, whose texts are borrowed from the item. */
static inline struct node_labels discover_item_labels(const struct discover_item *item)
{
    struct node_labels labels = item->labels;
    labels.model = slice_of(item->model, item->model_len);
    labels.health = slice_of(item->health, item->health_len);
    labels.kv_events = slice_of(item->kv_events, item->kv_events_len);
    return labels;
}
/* Compares names by length, then by bytes: returns less than 0, 0, or more than 0. */
MUST_USE int discover_name_compare(struct slice a, struct slice b);

struct discover_origin {
    const char *kind;
    char *name;              /* owned */
    char *model;             /* from the setting's label; owned; NULL: no model */
    bool adapters_on_demand; /* from the labels in the setting */
    struct discover_items list;
    bool listed, failing;
    bool said_empty;   /* the last list was empty, whether applied or not */
    uint64_t failures; /* failures since the start */
    uint64_t success_ms;
    uint64_t empty_ms; /* when the source first gave the empty list that is not applied yet; 0: no
                        * such list */
    char why[DISCOVER_WHY_MAX];
    char lacks[DISCOVER_WHY_MAX]; /* missing in the list, as text for people; empty: nothing */
    char hint[DISCOVER_WHY_MAX];  /* why the list is empty, if known */
};

enum discover_use {
    DISCOVER_USE_NEW, /* the host does not have the name, or refuses it */
    DISCOVER_USE_USED,
    DISCOVER_USE_DRAINING,
};

/* A name listed by a source, or still present at the host. */
struct discover_row {
    struct discover_item said; /* item of the last successful use(); before, of a list */
    enum discover_use use;
    bool refused;         /* refused by the host: logged, and tried again */
    uint64_t vanished_ms; /* time since which no source lists the name; 0: listed */
};

struct discover {
    struct discover_host host;
    struct log *log;
    struct discover_origin sources[DISCOVER_SOURCES_MAX];
    unsigned source_count;
    struct discover_row *rows; /* sorted by name; owned */
    unsigned row_count;
    bool pending; /* the next tick has work to do */
};

enum { DISCOVER_TITLE_BYTES = 512 };
/* Writes kind and name of the source to `out`, of DISCOVER_TITLE_BYTES: "dns
 * engines.internal:8000"; the kind alone if the source has no name. */
struct slice discover_title(const struct discover_origin *s, char *out);

/* True if the source's last list was empty, even if that does not count yet. */
bool discover_says_empty(const struct discover_origin *s);
/* Returns why the source lists no replica, for people. */
const char *discover_why_empty(const struct discover_origin *s);

#endif
