/* All clients: this room's part of struct proxy. */
#ifndef NODE_PROXY_CLIENT_CLIENTS_H
#define NODE_PROXY_CLIENT_CLIENTS_H

#include "base/ip.h"
#include "base/slice.h"
#include "node/proxy/limit/peers.h"

enum {
    PROXY_OUT_BYTES_HIGH = 256 * 1024, /* queued for a slow client: stop reading the engine */
    PROXY_FRESH_MS = 500,              /* a drain's wait for the first request of a connection, */
    PROXY_PARTING_MS = 2000,           /* and for the next request of a used connection */
    PROXY_PIECES_MAX = 59,             /* of an answer, gathered in one event */
    PROXY_LINGER_MS = 30000, /* a client may still send for so long after an error answer, */
    PROXY_LINGER_BYTES_MAX = 256 * 1024 * 1024, /* and so many bytes */
    PROXY_LINGER_SHORT_MS = 2000, /* instead, if connections are scarce or the port is closed */
    PROXY_ADMIN_IDLE_MS = 20000,  /* without a whole head on the admin port and the probe port */
};

/* A connection's state at the door (node/proxy/guard/door.h). */
enum client_standing {
    CLIENT_OUTSIDE, /* closed */
    CLIENT_IN,
    CLIENT_ADMIN,   /* on the admin port or the probe port */
    CLIENT_SURPLUS, /* refused, with an answer */
    CLIENT_STANDINGS,
};

struct client_door {
    unsigned standing[CLIENT_STANDINGS]; /* counts; OUTSIDE has no meaning */
    unsigned surplus_max, admin_max;
    struct peers peers;
    struct ip_net *balancers; /* owned: their connections begin with a PROXY header */
    unsigned balancer_count;  /* 0: with proxy-protocol on, all connections do */
    uint64_t logged_ms;       /* last log line about a missing PROXY header; 0: never */
    unsigned unlogged;        /* refusals since then */
};

/* The output of one event to one client, written with one call. The pieces are borrowed: they are
 * flushed before the event ends, and an event belongs to one client. */
struct client_gathered {
    const struct client *owner; /* NULL: nothing is gathered */
    bool has_head;              /* in proxy->scratch */
    unsigned count;
    size_t bytes;
    struct slice pieces[PROXY_PIECES_MAX + 1]; /* and a piece from an earlier event */
};

struct proxy_clients {
    struct client *all;      /* open connections */
    struct client *waiting;  /* the next request is here already; last first */
    uint64_t slow_looked_ms; /* last search for a slow upload without a result */
    struct client_door door;
    struct client_gathered gathered; /* in the present event */
};

#endif
