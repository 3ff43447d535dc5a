/* GET /v1/models and /v1/models/{id} of the client port.
 *
 * The router merges the replicas' lists. Replicas that refuse the router's own request are asked
 * with the client's authorization while the client waits. These answers go only to this client, and
 * teach the router which replica serves which model. If all such replicas refuse the client too,
 * the client gets the engine's refusal. */
#ifndef NODE_PROXY_OWN_MODELS_H
#define NODE_PROXY_OWN_MODELS_H

#include "node/proxy/exchange/exchange.h"

enum {
    MODELS_AT_ONCE = 8,             /* replicas asked for one client at a time */
    MODELS_ASKS_MAX = 64,           /* clients with such requests at a time; beyond these 503 */
    MODELS_REFUSAL_BYTES_MAX = 4096 /* of an engine's forwarded refusal */
};

/* Answers, now or after the replicas have answered. `encoded_id`: the path's text, if only `one`
 * model is requested. */
void models_answer(struct exchange *x, const struct http_head *head, struct slice encoded_id,
                   bool one);

/* Frees the merged list. */
void models_forget(struct proxy *p);

#endif
