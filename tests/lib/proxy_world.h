/* A proxy in a simulated world: a network, a clock and replicas under the test's control, and a
 * trace of every action. Pure: no sockets, no waiting. Used by the stories, the properties and the
 * fuzz target of node/proxy.
 *
 * After each event the world delivers everything due (closed streams, bytes for a reader), and
 * checks the invariants of the proxy and the router. */
#ifndef TESTS_LIB_PROXY_WORLD_H
#define TESTS_LIB_PROXY_WORLD_H

#include "base/buf.h"
#include "node/node.h"
#include "node/proxy/proxy.h"

enum { WORLD_REPLICAS_MAX = 8, WORLD_WIRES_MAX = 256, WORLD_NOW_MS = 1000000 };

/* A connection with a client or with a replica. */
struct wire {
    struct net_stream stream; /* first member, because the proxy has a pointer to `stream` */
    struct proxy_world *world;
    char name[12]; /* "A", "B", ... or, to replica 1, "1a", "1b", ... */
    int replica;   /* -1: a client */
    bool used;
    bool connecting;
    bool reading;
    bool closing; /* the proxy closed it */
    bool closed;  /* and was notified of the end */
    bool reset;   /* the proxy closed by a reset */
    bool finished;
    bool peer_ended; /* the end comes after `in` */
    bool peer_broke;
    bool deaf;      /* writes fail, without any other sign */
    size_t room;    /* bytes accepted by the kernel now; SIZE_MAX: all */
    struct buf in;  /* from the peer, not delivered yet */
    struct buf out; /* bytes written to the peer so far */
    unsigned queued_count;
    bool late;               /* the kernel did not take some bytes at once */
    struct slice queued[64]; /* borrowed until written: reading them late finds misuse */
};

struct proxy_world_config {
    unsigned replicas;
    enum node_engine engine;     /* engine of all replicas */
    bool names;                  /* replicas have host names, which must be looked up */
    bool probes;                 /* replicas are probed; if false, they are up from the start */
    const char *key;             /* the API key in probes; NULL: none */
    const char *client_keys;     /* as in client-keys-file; NULL: no client needs a key */
    bool quiet;                  /* no trace */
    bool joins;                  /* the router has others, and has met none yet */
    unsigned admin_connections;  /* as in proxy_config; 0: the default */
    const char *const *settings; /* pairs of name and value, NULL-terminated; NULL: none */
    uint64_t seed;
    /* For a router with others (tests/fuzz/session_fuzz.c): sets the rest of the router's
     * configuration, and the network between routers. NULL: no others. */
    void (*shape)(void *context, struct node_config *node);
    void *context;
    const struct node_replication_io *io;
    bool strangers; /* replicas may have any name, from other routers */
};

struct proxy_world {
    struct proxy *proxy;
    struct node *node;
    struct node_options options;
    struct log log;
    struct net_actions net;
    uint64_t now_ms;
    uint64_t round_trip_us; /* TCP's measurement for all peers */
    struct buf trace;       /* a line per action, since the test last cleared the trace */
    bool traced;
    unsigned settled; /* number of times that all effects of an event were complete */
    bool names;
    bool strangers;
    bool stopped;
    char peer[48];     /* address of the next connection; "": 192.0.2.7, at admin 127.0.0.1 */
    int connect_error; /* immediate error of the next connect; 0: success */
    unsigned ports;    /* limit of open connections to a replica, plus 1; 0: no limit */
    unsigned files;    /* limit of all open connections, plus 1; 0: no limit */
    struct slice key;
    unsigned key_version;
    struct access *access;
    struct world_host *hosts[WORLD_REPLICAS_MAX];
    struct {              /* per client wire: the last traced booking */
        char at;          /* '1': replica 1; 0: none */
        uint64_t booking; /* the booking */
    } booked[WORLD_WIRES_MAX];
    struct wire wires[WORLD_WIRES_MAX];
    unsigned wire_count;
    unsigned connects[WORLD_REPLICAS_MAX];
    char read_buffer[PROXY_READ_BYTES];
};

void proxy_world_open(struct proxy_world *w, const struct proxy_world_config *config);
/* Stops the proxy, delivers the remaining events, checks that nothing remains, and frees. */
void proxy_world_close(struct proxy_world *w);

/* The last wire with this name. NULL: none. */
struct wire *proxy_world_find(struct proxy_world *w, struct slice name);
/* A client connects. NULL if the proxy had no memory for the connection. */
struct wire *proxy_world_connect(struct proxy_world *w, enum proxy_port port);
/* The replica accepts the connection (`err` 0), or the connection fails. */
void proxy_world_accept(struct proxy_world *w, struct wire *wire, int err);
/* The peer sends. */
void proxy_world_send(struct proxy_world *w, struct wire *wire, struct slice bytes);
/* The peer sends no more; `broke`: by a reset. */
void proxy_world_end(struct proxy_world *w, struct wire *wire, bool broke);
/* From now on all writes to the wire fail, while bytes from the peer can still be read. */
void proxy_world_deafen(struct proxy_world *w, struct wire *wire);
/* From now on the kernel accepts this number of bytes, queued bytes first. */
void proxy_world_room(struct proxy_world *w, struct wire *wire, size_t bytes);
void proxy_world_wait(struct proxy_world *w, uint64_t ms);
/* The process does not run for a while. */
void proxy_world_stand_still(struct proxy_world *w, uint64_t ms);
void proxy_world_drain(struct proxy_world *w, bool closed);
/* The proxy closes everything; only proxy_world_close() may follow. */
void proxy_world_stop(struct proxy_world *w);
void proxy_world_key(struct proxy_world *w, struct slice key);
/* An operator adds the next replica, or a removed replica, or removes a replica. */
void proxy_world_wish(struct proxy_world *w, unsigned replica, bool present);
/* The error for lack of ports or files of another connection to the replica; 0: none. */
static inline int proxy_world_shortage(const struct proxy_world *w, int replica)
{
    unsigned there = 0, all = 0;
    for (unsigned i = 0; i < w->wire_count; i++) {
        bool open = w->wires[i].used && !w->wires[i].closing && w->wires[i].replica >= 0;
        all += open;
        there += open && w->wires[i].replica == replica;
    }
    if (w->files > 0 && all + 1 >= w->files)
        return ERR_LIMIT;
    return w->ports > 0 && there + 1 >= w->ports ? ERR_FULL : 0;
}
/* Delivers everything due, and checks the invariants. */
void proxy_world_settle(struct proxy_world *w);

#endif
