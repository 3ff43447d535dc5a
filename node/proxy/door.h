/* The door: which connections come in on the client port, and whose they are.
 *
 * Beyond connections-max the connection that has been idle longest goes, and where none is idle,
 * one that only waits for its peer to take note of an error; else the newcomer is refused. A 16th
 * more than that many are open at most, with an answer that says so; what is beyond them is reset.
 *
 * It decides and counts; proxy.c answers.
 */
#ifndef NODE_PROXY_DOOR_H
#define NODE_PROXY_DOOR_H

#include "node/proxy/client.h"

enum door_verdict {
    DOOR_IN,
    DOOR_FULL,        /* connections-max */
    DOOR_CLIENT_FULL, /* connections-per-client-max */
    DOOR_CROWDED,     /* there is no room for an answer either */
};

/* By the settings. ERR_NOMEM. */
MUST_USE int door_init(struct proxy *p);
void door_free(struct proxy *p);

/* A connection was accepted: counts it, as of its peer's address unless a PROXY header comes first
 * (c->awaits_header). */
enum door_verdict door_enter(struct client *c);
/* Its PROXY header named the client: counts it as of that address. */
enum door_verdict door_identify(struct client *c);

#endif
