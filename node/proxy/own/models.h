/* GET /v1/models and /v1/models/{id} of the client port.
 *
 * The router merges the replicas' lists. If replicas refuse to list their models to the router, it
 * asks them with the client's authorization while the client waits. Such a list goes only to this
 * client, but teaches the router the replica's models. If all such replicas refuse the client too,
 * the client gets the engine's refusal. */
#ifndef NODE_PROXY_OWN_MODELS_H
#define NODE_PROXY_OWN_MODELS_H

#include "node/proxy/exchange/exchange.h"

enum {
    MODELS_AT_ONCE = 8,   /* replicas asked at a time, per client */
    MODELS_ASKS_MAX = 64, /* clients that wait for replicas' lists at a time; others get 503 */
    MODELS_REFUSAL_BYTES_MAX = 4096 /* most bytes of an engine's forwarded refusal */
};

/* Answers now, or after the replicas have answered. `one`: the client requests only the model with
 * `encoded_id`, still percent-encoded as in the path. */
void models_answer(struct exchange *x, const struct http_head *head, struct slice encoded_id,
                   bool one);

/* Frees the merged list. */
void models_forget(struct proxy *p);

#endif
