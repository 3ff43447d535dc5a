/* Lists of models, as engines answer GET /v1/models: read, and merged to one. */
#ifndef NODE_PROXY_MODEL_LIST_H
#define NODE_PROXY_MODEL_LIST_H

#include "base/buf.h"
#include "base/err.h"
#include "node/replica/engine_json.h"

enum {
    MODEL_LIST_MAX = 256,           /* models read of one replica, and in one merged list */
    MODEL_LIST_BYTES_MAX = 4 << 20, /* of one merged list */
};

/* The ids of one list. Large (70 KB): not for the stack. */
struct model_list {
    unsigned count;
    bool cut;                         /* there were more */
    enum node_engine engine;          /* whose list it is, by its owned_by */
    struct slice ids[MODEL_LIST_MAX]; /* in `text` */
    char text[MODEL_LIST_MAX][NODE_MODEL_ID_MAX];
};

/* ERR_SYNTAX as node_models_parse. */
MUST_USE int model_list_read(struct model_list *out, struct slice json);

/* One list of several. */
struct model_merge {
    struct buf out;      /* objects with commas between; freed by the caller */
    struct slice wanted; /* only this one; at == NULL: all */
    struct model_list list;
};

/* `wanted` is borrowed. */
void model_merge_begin(struct model_merge *m, struct slice wanted);
/* Adds a model that is not there yet; for node_models_parse(), with the merge as context. What does
 * not fit is left out. ERR_NOMEM. */
MUST_USE int model_merge_add(void *merge, struct slice id, struct slice object);

#endif
