/* GET /v1/models and /v1/models/{id} of the client port.
 *
 * The lists that replicas gave the router are merged. Replicas that refuse the router's own
 * question are asked with the client's authorization while it waits. Their answers go to this
 * client alone, and teach the router which replica serves what. If all that could answer refuse the
 * client too, it gets the engine's refusal.
 */
#ifndef NODE_PROXY_OWN_MODELS_H
#define NODE_PROXY_OWN_MODELS_H

#include "node/proxy/exchange/exchange.h"

enum {
    MODELS_AT_ONCE = 8,             /* replicas that are asked for one client at a time */
    MODELS_ASKS_MAX = 64,           /* clients that are asked for at a time; then 503 */
    MODELS_REFUSAL_BYTES_MAX = 4096 /* of an engine's refusal that is passed on */
};

/* Answers, now or when replicas have. `encoded_id` as it stands in the path, if only `one` model is
 * wanted. */
void models_answer(struct exchange *x, const struct http_head *head, struct slice encoded_id,
                   bool one);

/* Lets go of the merged list. */
void models_forget(struct proxy *p);

#endif
