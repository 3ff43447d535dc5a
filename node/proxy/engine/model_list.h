/* Lists of models, as engines answer GET /v1/models: read, and merged to one. */
#ifndef NODE_PROXY_ENGINE_MODEL_LIST_H
#define NODE_PROXY_ENGINE_MODEL_LIST_H

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "node/replica/engine_json.h"

enum {
    MODEL_LIST_MAX = 4096,          /* models read of one replica, and in one merged list */
    MODEL_LIST_TEXT_MAX = 1 << 19,  /* bytes of their ids */
    MODEL_LIST_BYTES_MAX = 4 << 20, /* of one merged list */
};

/* The ids of one list. Large (600 KB): not for the stack. */
struct model_list {
    unsigned count;
    bool cut; /* there were more */
    uint32_t text_len;
    enum node_engine engine;              /* whose list it is, by its owned_by */
    struct slice ids[MODEL_LIST_MAX];     /* in `text` */
    struct slice parents[MODEL_LIST_MAX]; /* of adapters: their base, in `text`; else empty */
    uint32_t contexts[MODEL_LIST_MAX];    /* context lengths in tokens; 0: not told */
    char text[MODEL_LIST_TEXT_MAX];
};

/* ERR_SYNTAX as node_models_parse. */
MUST_USE int model_list_read(struct model_list *out, struct slice json);

/* The context length that a replica with this list has, whatever it is asked for: that of its
 * models, which its adapters share. 0: it tells none, or several. */
uint32_t model_list_context(const struct model_list *list);

/* One list of several: of each model the object of the replica whose context is longest. */
struct model_merge {
    struct buf out;      /* the objects, those that gave way too; freed by the caller */
    struct slice wanted; /* only this one; at == NULL: all */
    const struct hash_secret *secret;
    struct model_list list; /* cut: something did not fit */
    struct {
        uint32_t at, len;
    } objects[MODEL_LIST_MAX];          /* in `out`, by number in `list` */
    uint16_t slots[2 * MODEL_LIST_MAX]; /* a hash set of the ids: their numbers and 1; 0: free */
};

/* `wanted` and `secret` are borrowed. */
void model_merge_begin(struct model_merge *m, const struct hash_secret *secret,
                       struct slice wanted);
/* The object of that id; at == NULL: it is not there. */
struct slice model_merge_find(const struct model_merge *m, struct slice id);
/* Its number in the list. False: it is not there. */
bool model_merge_number(const struct model_merge *m, struct slice id, unsigned *number);
/* Adds a model that is not there yet, or is there with a shorter context; for node_models_parse(),
 * with the merge as context. What does not fit is left out. ERR_NOMEM. */
MUST_USE int model_merge_add(void *merge, const struct node_listed *model);

#endif
