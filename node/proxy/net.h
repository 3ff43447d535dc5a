/* The proxy's view of the network: TCP streams and host names. Events come up, actions go down.
 *
 *   events    connected, received, ended, written, closed, resolved
 *   actions   connect, write, queue, read, finish, close, round_trip_us; open_host, resolve, ip,
 *             close_host
 *
 * node/io/tcp.c and node/io/names.c implement the network with libuv, tests and simulations in
 * virtual time. The proxy is a one-way street by a single rule: no action delivers an event before
 * it returns. So nothing called by the proxy ever calls back.
 *
 * A stream has an owner, which sets `events` and `owner` before the first event. Each event brings
 * the time, in milliseconds of a monotonic clock; nothing in the proxy reads a clock. */
#ifndef NODE_PROXY_NET_H
#define NODE_PROXY_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"

struct node_address;

/* A shortage of this machine when a connection should open; not the peer's failure. */
enum net_shortage {
    NET_SHORT_OF_PORTS,  /* ERR_FULL: all local ports are in use for the address */
    NET_SHORT_OF_FILES,  /* ERR_LIMIT: of this process or of the system */
    NET_SHORT_OF_MEMORY, /* ERR_NOMEM: of this process, or buffers of the kernel */
    NET_SHORTAGES,
};

/* The shortage's name for logs, metrics and gvctl ("ports", "files", "memory"), and its remedy for
 * people. */
const char *net_shortage_name(enum net_shortage kind);
const char *net_shortage_want(enum net_shortage kind);

static inline bool net_is_shortage(int err)
{
    return err == ERR_FULL || err == ERR_LIMIT || err == ERR_NOMEM;
}

struct net_events {
    /* Returns memory for the next bytes. Empty, or NULL: the network uses memory of its own. */
    struct slice (*room)(void *owner);
    /* `err`: 0, ERR_CLOSED (the port refused), ERR_DENIED (the certificate), ERR_UNSUPPORTED (no
     * TLS at the port), ERR_VERSION (any other failure of TLS), ERR_UNREACHABLE, or a shortage. */
    void (*connected)(void *owner, int err, uint64_t now_ms);
    /* The bytes are borrowed for the call. */
    void (*received)(void *owner, struct slice bytes, uint64_t now_ms);
    /* The peer sends no more. `err`: 0, or ERR_CLOSED if the connection broke. */
    void (*ended)(void *owner, int err, uint64_t now_ms);
    /* The kernel has the queued bytes, or (not 0) never will. */
    void (*written)(void *owner, int err, uint64_t now_ms);
    /* The last event: the network no longer uses the owner's memory. */
    void (*closed)(void *owner);
};

/* The network's own struct begins with this one. */
struct net_stream {
    const struct net_events *events;
    void *owner;
};

enum {
    NET_ADDRESSES_MAX = 8, /* of one name */
    NET_ADDRESS_NEW = 255,
    NET_IP_BYTES = 64, /* an address as text, with its zone and NUL */
};

/* The result of a look-up: the name's addresses from now on. */
struct net_found {
    unsigned count; /* 0: none, and the known addresses stay */
    /* Each address's previous number, or NET_ADDRESS_NEW. Missing numbers are gone. */
    uint8_t before[NET_ADDRESSES_MAX];
    /* The reason for no address: ERR_NOT_FOUND (the name has none), ERR_TIMEOUT (no DNS server
     * answered), ERR_UNREACHABLE (any other failure); `error`: in words. */
    int err;
    const char *error;
    bool more; /* the look-up continues, with further results */
};

/* A name and its addresses; the network's own struct begins with this one. */
struct net_host {
    void (*resolved)(void *owner, const struct net_found *found, uint64_t now_ms);
    void *owner;
};

enum {
    NET_PIECES_MAX = 64, /* of one write */
    /* A vanished machine closes nothing. On both sides the kernel sends a probe after
     * NET_KEEPALIVE_S of silence, and then every NET_KEEPALIVE_EVERY_S. The connection is broken
     * after NET_SILENT_MS without a reply, to probes or to data (TCP_USER_TIMEOUT, RFC 5482). */
    NET_KEEPALIVE_S = 15,
    NET_KEEPALIVE_EVERY_S = 5,
    NET_SILENT_MS = 30000,
};

struct net_actions {
    void *context;

    /* Opens a host. `*count` is 1 for an IP address, which is ready at once, and 0 for a name,
     * which must be resolved. ERR_NOMEM. */
    int (*open_host)(void *context, const struct node_address *address, struct net_host **out,
                     unsigned *count);
    /* Begins to look up the name, one look-up at a time. Returns true if the look-up began. */
    bool (*resolve)(struct net_host *host);
    /* Writes the address as text. NULL: connections know only the name. */
    void (*ip)(const struct net_host *host, unsigned address, char out[NET_IP_BYTES]);
    /* Closes a host; no event follows. */
    void (*close_host)(struct net_host *host);

    /* Opens a connection with TCP keep-alive. Returns a shortage (enum net_shortage), or ERR_CLOSED
     * or ERR_UNREACHABLE if known at once. */
    int (*connect)(void *context, struct net_host *host, unsigned address, struct net_stream **out);
    /* Writes at most NET_PIECES_MAX pieces, as far as the kernel accepts them at once. Returns the
     * number of bytes, 0 if the kernel is full, or ERR_CLOSED. */
    ptrdiff_t (*write)(struct net_stream *stream, const struct slice *pieces, unsigned count);
    /* Writes as fast as the kernel accepts; the bytes must stay until `written` or `closed`. One
     * call at a time. After ERR_CLOSED or ERR_NOMEM no event follows. */
    int (*queue)(struct net_stream *stream, const struct slice *pieces, unsigned count);
    /* Begins or ends receiving. */
    void (*read)(struct net_stream *stream, bool on);
    /* Returns the round-trip time to the peer, in microseconds, as TCP measures it (RFC 6298,
     * SRTT); 0: unknown. Costs a system call. */
    uint64_t (*round_trip_us)(struct net_stream *stream);
    /* Announces the end of writing (FIN), after the queued bytes. */
    void (*finish)(struct net_stream *stream);
    /* Closes the stream; `closed` follows, and no other event. `reset`: by RST, if possible. */
    void (*close)(struct net_stream *stream, bool reset);
};

#endif
