/* All clients: this folder's part of struct proxy. */
#ifndef NODE_PROXY_CLIENT_CLIENTS_H
#define NODE_PROXY_CLIENT_CLIENTS_H

#include "base/ip.h"
#include "base/slice.h"
#include "node/proxy/limit/peers.h"

enum {
    PROXY_OUT_BYTES_HIGH = 256 * 1024, /* queued for a slow client: stop reading the engine */
    PROXY_FRESH_MS = 500,              /* a drain's wait for a new connection's first request */
    PROXY_PARTING_MS = 2000,           /* a drain's wait for a used connection's next request */
    PROXY_PIECES_MAX = 59,             /* pieces of an answer gathered per event */
    PROXY_LINGER_MS = 30000, /* longest time in which a client may still send after an error */
    PROXY_LINGER_BYTES_MAX = 256 * 1024 * 1024, /* most bytes after an error, in PROXY_LINGER_MS */
    /* Replaces PROXY_LINGER_MS if connections are scarce or the port is closed. */
    PROXY_LINGER_SHORT_MS = 2000,
    PROXY_ADMIN_IDLE_MS = 20000, /* longest time without a whole head, on admin and probe ports */
};

/* How a connection counts for the limits (node/proxy/guard/door.h). */
enum client_standing {
    CLIENT_OUTSIDE, /* not counted: closed */
    CLIENT_IN,      /* admitted on the client port */
    CLIENT_ADMIN,   /* on the admin port or the probe port */
    CLIENT_SURPLUS, /* refused, and open until the answer is written */
    CLIENT_STANDINGS,
};

struct client_door {
    unsigned standing[CLIENT_STANDINGS]; /* connections of each kind; OUTSIDE is unused */
    unsigned surplus_max, admin_max;
    struct peers peers;
    struct ip_net *balancers; /* owned: load balancers with a PROXY header */
    unsigned balancer_count;  /* 0: no list; then with proxy-protocol all connections need a PROXY
                               * header */
    uint64_t logged_ms;       /* last log line about a missing PROXY header; 0: never */
    unsigned unlogged;        /* connections without a PROXY header since `logged_ms` */
};

/* An event's output to a client, written by a single call. An event belongs to a single client. The
 * pieces are borrowed, and flushed before the event ends. */
struct client_gathered {
    const struct client *owner; /* NULL: nothing is gathered */
    bool has_head;              /* proxy->scratch has the answer's head */
    unsigned count;
    size_t bytes;
    struct slice pieces[PROXY_PIECES_MAX + 1]; /* the extra place: a piece from an earlier event */
};

struct proxy_clients {
    struct client *all;      /* open connections */
    struct client *waiting;  /* clients whose next request has arrived, the latest first */
    uint64_t slow_looked_ms; /* last search that found no slow upload */
    struct client_door door;
    struct client_gathered gathered; /* output of the present event */
};

#endif
