/* The door: admits or refuses new connections, and counts each client's connections.
 *
 * If connections-max are open, a new connection replaces the first available of these: a member of
 * a crowd of slow heads or bodies (slow.h); the connection idle for longest; a connection that
 * lingers after an error answer; a slow head; a slow body. If there is none, the new connection is
 * refused with an answer that gives the reason. For such answers a 16th of connections-max more
 * connections may be open. Further connections are reset.
 *
 * The admin port and the probe port share a separate limit. At this limit, the connection longest
 * without a whole head closes. If none is old enough, the next choices are an incomplete body, an
 * unread answer, and a recent connection. If the router is working on requests of all connections,
 * the new connection is reset. */
#ifndef NODE_PROXY_GUARD_DOOR_H
#define NODE_PROXY_GUARD_DOOR_H

#include "node/proxy/client/client.h"

enum {
    /* At most 1/16 of connections-max more connections get an answer with the reason. */
    PROXY_SURPLUS_SHARE = 16,
};

/* Reads the settings. ERR_NOMEM. */
MUST_USE int door_init(struct proxy *p);
void door_free(struct proxy *p);

/* Admits an accepted connection, or answers and closes it. A connection on the client port counts
 * for the peer's IP address, unless a PROXY header comes first (c->awaits_header). */
void door_enter(struct client *c);
/* Counts the connection for the client's address in the PROXY header. */
void door_identify(struct client *c);
/* The PROXY header is missing or malformed. The connection closes without an answer, because a
 * balancer would pass the answer to the balancer's client. */
void door_refuse_stranger(struct client *c);

#endif
