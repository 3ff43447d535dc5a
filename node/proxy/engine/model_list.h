/* Reads the model lists with which engines answer GET /v1/models, and merges them. */
#ifndef NODE_PROXY_ENGINE_MODEL_LIST_H
#define NODE_PROXY_ENGINE_MODEL_LIST_H

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "node/replica/engine_json.h"

enum {
    MODEL_LIST_MAX = 4096,          /* most models read per replica, and in a merged list */
    MODEL_LIST_TEXT_MAX = 1 << 19,  /* most bytes of a list's model ids */
    MODEL_LIST_BYTES_MAX = 4 << 20, /* most bytes of a merged list */
};

/* The ids of a list. Large (600 KB): not for the stack. */
struct model_list {
    unsigned count;
    bool cut; /* there were more models than fit */
    uint32_t text_len;
    enum node_engine engine;              /* the engine's type, by owned_by */
    struct slice ids[MODEL_LIST_MAX];     /* slices of `text` */
    struct slice parents[MODEL_LIST_MAX]; /* an adapter's base model, in `text`; otherwise empty */
    uint32_t contexts[MODEL_LIST_MAX];    /* context lengths in tokens; 0: not reported */
    char text[MODEL_LIST_TEXT_MAX];
};

/* Reads a list. ERR_SYNTAX: node_models_parse() cannot parse the JSON. */
MUST_USE int model_list_read(struct model_list *out, struct slice json);

/* Returns the context length, in tokens, if equal for all models of the list; an adapter has the
 * context length of the base model. 0: none is reported, or they differ. */
uint32_t model_list_context(const struct model_list *list);

/* A merged list: for each model, the object from the replica with the longest context. */
struct model_merge {
    struct buf out;      /* all JSON objects, even replaced ones; freed by the caller */
    struct slice wanted; /* the only model to merge; at == NULL: all */
    const struct hash_secret *secret;
    struct model_list list; /* the merged models */
    struct {
        uint32_t at, len;
    } objects[MODEL_LIST_MAX];          /* position in `out` of each model of `list` */
    uint16_t slots[2 * MODEL_LIST_MAX]; /* hash table of ids: number in `list` + 1; 0: free */
};

/* Begins an empty merged list. `wanted` and `secret` are borrowed. */
void model_merge_begin(struct model_merge *m, const struct hash_secret *secret,
                       struct slice wanted);
/* Returns the JSON object of the model; at == NULL: not found. */
struct slice model_merge_find(const struct model_merge *m, struct slice id);
/* Finds the model's number in the list. Returns false if there is no such model. */
bool model_merge_number(const struct model_merge *m, struct slice id, unsigned *number);
/* Adds a model, or replaces the same model if the earlier object has a shorter context. A callback
 * for node_models_parse() with the merge as context. Models beyond the limits are left out.
 * ERR_NOMEM. */
MUST_USE int model_merge_add(void *merge, const struct node_listed *model);

#endif
