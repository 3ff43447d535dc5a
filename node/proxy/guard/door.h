/* The door: admits connections, and counts each for a client.
 *
 * Beyond connections-max a newcomer replaces another connection, in this order: a member of a crowd
 * of slow heads or bodies (slow.h); the connection idle for longest; a connection that only waits
 * until the peer has read an error; a slow head; a slow body. If there is none, the newcomer is
 * refused. At most a 16th more connections stay open for an answer with the reason; any beyond
 * those are reset.
 *
 * The admin port and the probe port share a limit of their own. Beyond this limit, the connection
 * without a whole head for longest closes. If none is old enough, the next choices are an
 * incomplete body, an unread answer, and a new connection. If the router is working on all of them,
 * the newcomer is reset. */
#ifndef NODE_PROXY_GUARD_DOOR_H
#define NODE_PROXY_GUARD_DOOR_H

#include "node/proxy/client/client.h"

enum {
    PROXY_SURPLUS_SHARE = 16, /* beyond connections-max, a 16th more get an answer with the
                                 reason */
};

/* Reads the settings. ERR_NOMEM. */
MUST_USE int door_init(struct proxy *p);
void door_free(struct proxy *p);

/* A connection was accepted. It is admitted, or answered and closed. On the client port it counts
 * for the peer's address, unless a PROXY header comes first (c->awaits_header). */
void door_enter(struct client *c);
/* The PROXY header named the client: counts the connection for the named address. */
void door_identify(struct client *c);
/* The PROXY header is missing or malformed. The connection closes without an answer, because a
 * balancer would pass the answer to its own client. */
void door_refuse_stranger(struct client *c);

#endif
