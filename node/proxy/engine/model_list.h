/* Model lists, as engines answer GET /v1/models: read, and merged into one. */
#ifndef NODE_PROXY_ENGINE_MODEL_LIST_H
#define NODE_PROXY_ENGINE_MODEL_LIST_H

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "node/replica/engine_json.h"

enum {
    MODEL_LIST_MAX = 4096,          /* models read per replica, and in a merged list */
    MODEL_LIST_TEXT_MAX = 1 << 19,  /* bytes of their ids */
    MODEL_LIST_BYTES_MAX = 4 << 20, /* of a merged list */
};

/* The ids of a list. Large (600 KB): not for the stack. */
struct model_list {
    unsigned count;
    bool cut; /* there were more */
    uint32_t text_len;
    enum node_engine engine;              /* by owned_by */
    struct slice ids[MODEL_LIST_MAX];     /* in `text` */
    struct slice parents[MODEL_LIST_MAX]; /* adapters: their base, in `text`; else empty */
    uint32_t contexts[MODEL_LIST_MAX];    /* in tokens; 0: not reported */
    char text[MODEL_LIST_TEXT_MAX];
};

/* ERR_SYNTAX as node_models_parse(). */
MUST_USE int model_list_read(struct model_list *out, struct slice json);

/* Returns the context length of a replica with this list, the same for all of its models; adapters
 * share their base's. 0: none reported, or several. */
uint32_t model_list_context(const struct model_list *list);

/* A merged list: for each model, the object from the replica with the longest context. */
struct model_merge {
    struct buf out;      /* all objects, replaced ones included; freed by the caller */
    struct slice wanted; /* only this model; at == NULL: all */
    const struct hash_secret *secret;
    struct model_list list; /* cut: something did not fit */
    struct {
        uint32_t at, len;
    } objects[MODEL_LIST_MAX];          /* in `out`, by number in `list` */
    uint16_t slots[2 * MODEL_LIST_MAX]; /* a hash set of the ids: number + 1; 0: free */
};

/* `wanted` and `secret` are borrowed. */
void model_merge_begin(struct model_merge *m, const struct hash_secret *secret,
                       struct slice wanted);
/* Returns the id's object; at == NULL: not found. */
struct slice model_merge_find(const struct model_merge *m, struct slice id);
/* Finds the id's number in the list. Returns false if not found. */
bool model_merge_number(const struct model_merge *m, struct slice id, unsigned *number);
/* Adds a new model, or replaces one with a shorter context. For node_models_parse(), with the merge
 * as context. Models without room are left out. ERR_NOMEM. */
MUST_USE int model_merge_add(void *merge, const struct node_listed *model);

#endif
