/* Requests answered by the router itself: health and models on the client port, everything on the
 * admin port (proxy_config.admin). Loopback replicas, also called local, are in
 * node/replica/local.h. */
#ifndef NODE_PROXY_OWN_LOCAL_H
#define NODE_PROXY_OWN_LOCAL_H

#include "node/proxy/exchange/exchange.h"

/* Answers a complete request. Ends the exchange, now or later. */
void local_answer(struct exchange *x);

#endif
