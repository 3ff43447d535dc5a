/* The door: which connections come in, and whose they are.
 *
 * Beyond connections-max one of a crowd of slow heads or bodies goes (slow.h); where there is none,
 * the connection that has been idle longest; where none is idle, one that only waits for its peer
 * to take note of an error, then a slow head, then a slow body; else the newcomer is refused. A
 * 16th more than that many are open at most, with an answer that says so; what is beyond them is
 * reset.
 *
 * The admin port and the probe port have a number of their own, together. Beyond it the connection
 * goes that has been without a whole head longest; where none has for long, one whose body is
 * waited for, then one whose reading is, then one that has just come. Else, where the router is at
 * work on all of them, the newcomer is reset.
 */
#ifndef NODE_PROXY_GUARD_DOOR_H
#define NODE_PROXY_GUARD_DOOR_H

#include "node/proxy/client/client.h"

enum {
    PROXY_SURPLUS_SHARE = 16, /* beyond connections-max a 16th more get an answer that says so */
};

/* By the settings. ERR_NOMEM. */
MUST_USE int door_init(struct proxy *p);
void door_free(struct proxy *p);

/* A connection was accepted: it comes in, on the client port counted as of its peer's address
 * unless a PROXY header comes first (c->awaits_header), or is answered and closes. */
void door_enter(struct client *c);
/* Its PROXY header named the client: the same, as of that address. */
void door_identify(struct client *c);
/* It has no PROXY header, or a malformed one. It gets no answer: a balancer would take that for an
 * answer to its client. */
void door_refuse_stranger(struct client *c);

#endif
