/* GET /v1/models and /v1/models/{id} of the client port.
 *
 * The lists that replicas told the router are merged. Replicas that refuse the router's own
 * question are asked with the client's authorization while it waits: what they answer goes to this
 * client alone, and teaches the router who serves what. If all that could tell refuse the client
 * too, it gets the refusal of the engine.
 */
#ifndef NODE_IO_MODEL_LIST_H
#define NODE_IO_MODEL_LIST_H

#include "node/io/exchange.h"
#include "node/replica/engine_json.h"

enum {
    MODEL_LIST_MAX = 256,               /* models read of one replica, and in one merged list */
    MODEL_LIST_BYTES_MAX = 4 << 20,     /* of one merged list */
    MODEL_LIST_AT_ONCE = 8,             /* replicas that are asked for one client at a time */
    MODEL_LIST_ASKS_MAX = 64,           /* clients that are asked for at a time; then 503 */
    MODEL_LIST_REFUSAL_BYTES_MAX = 4096 /* of an engine's refusal that is passed on */
};

/* The ids of one list. Large: one of them is static. */
struct model_list {
    unsigned count;
    bool cut;                         /* there were more */
    enum node_engine engine;          /* whose list it is, by its owned_by */
    struct slice ids[MODEL_LIST_MAX]; /* in `text` */
    char text[MODEL_LIST_MAX][NODE_MODEL_ID_MAX];
};

/* ERR_SYNTAX as node_models_parse. */
int model_list_read(struct model_list *out, struct slice json);

/* Answers, now or when replicas have. `encoded_id` as it stands in the path; empty: all. */
void model_list_answer(struct exchange *x, const struct http_head *head, struct slice encoded_id,
                       bool one);
/* The client is gone before (x->model_ask). */
void model_list_forget(struct exchange *x);

#endif
