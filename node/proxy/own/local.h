/* What the router answers itself: health and models on the client port, everything on the admin
 * port (by proxy_config.admin). Replicas of a loopback, also called local: node/replica/local.h.
 */
#ifndef NODE_PROXY_OWN_LOCAL_H
#define NODE_PROXY_OWN_LOCAL_H

#include "node/proxy/exchange/exchange.h"

/* The request is whole, and its head as it came: answers it. Ends the exchange, now or later. */
void local_answer(struct exchange *x);

#endif
