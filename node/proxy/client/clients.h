/* All clients together: what struct proxy holds of them. */
#ifndef NODE_PROXY_CLIENT_CLIENTS_H
#define NODE_PROXY_CLIENT_CLIENTS_H

#include "base/ip.h"
#include "base/slice.h"
#include "node/proxy/limit/peers.h"

enum {
    PROXY_OUT_BYTES_HIGH = 256 * 1024, /* queued to a slow client: stop reading the engine */
    PROXY_FRESH_MS = 500,    /* a drain waits so long for the first request of a connection */
    PROXY_PARTING_MS = 2000, /* and so long for the next one of a connection that was used */
    PROXY_PIECES_MAX = 59,   /* of an answer, gathered in one read */
    PROXY_LINGER_MS = 30000, /* after an error answer: how long a client may still send */
    PROXY_LINGER_BYTES_MAX = 256 * 1024 * 1024, /* and how much */
    PROXY_LINGER_SHORT_MS = 2000, /* the same where connections are scarce, or the port is closed */
    PROXY_ADMIN_IDLE_MS = 20000,  /* without a whole head on the admin port and the probe port */
};

/* Where a connection stands at the door (node/proxy/guard/door.h). */
enum client_standing {
    CLIENT_OUTSIDE, /* it is closed */
    CLIENT_IN,
    CLIENT_ADMIN,   /* on the admin port or the probe port */
    CLIENT_SURPLUS, /* refused, and hears so */
    CLIENT_STANDINGS,
};

struct client_door {
    unsigned standing[CLIENT_STANDINGS]; /* how many; OUTSIDE means nothing */
    unsigned surplus_max, admin_max;
    struct peers peers;
    struct ip_net *balancers; /* owned: whose connections begin with a PROXY header */
    unsigned balancer_count;  /* 0: all of them do, if any */
    uint64_t logged_ms;       /* when one was last refused for its PROXY header; 0: never */
    unsigned unlogged;        /* since then */
};

/* What goes to one client within one event, written with one call. The pieces are borrowed: they
 * are flushed before the event ends, and one event belongs to one client. */
struct client_gathered {
    const struct client *owner; /* NULL: nothing is gathered */
    bool has_head;              /* in proxy->scratch */
    unsigned count;
    size_t bytes;
    struct slice pieces[PROXY_PIECES_MAX + 1]; /* and one that was held before */
};

struct proxy_clients {
    struct client *all;      /* open connections */
    struct client *waiting;  /* whose next request is here already, last first */
    uint64_t slow_looked_ms; /* when last no slow upload was found, memory being short */
    struct client_door door;
    struct client_gathered gathered; /* in the present event */
};

#endif
