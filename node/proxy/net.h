/* The proxy's view of the network: TCP streams and host names. Events come up, actions go down.
 *
 *   events    connected, received, ended, written, closed, resolved
 *   actions   connect, write, queue, read, finish, close, round_trip_us; open_host, resolve, ip,
 *             close_host
 *
 * node/io/tcp.c and node/io/names.c implement the network with libuv; tests and simulations
 * implement it in virtual time. No action may deliver an event before returning, so a function
 * called by the proxy never calls back.
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

/* The resource missing on this machine to open a connection; not the peer's failure. */
enum net_shortage {
    NET_SHORT_OF_PORTS,  /* ERR_FULL: all local ports are in use for the address */
    NET_SHORT_OF_FILES,  /* ERR_LIMIT: no file descriptors, in this process or in the system */
    NET_SHORT_OF_MEMORY, /* ERR_NOMEM: no memory in this process, or no buffers in the kernel */
    NET_SHORTAGES,
};

/* net_shortage_name() returns a name for logs, metrics and gvctl: "ports", "files" or "memory".
 * net_shortage_want() returns the remedy in words for people. */
const char *net_shortage_name(enum net_shortage kind);
const char *net_shortage_want(enum net_shortage kind);

static inline bool net_is_shortage(int err)
{
    return err == ERR_FULL || err == ERR_LIMIT || err == ERR_NOMEM;
}

struct net_events {
    /* Returns memory for the next received bytes. If there is none, or the function is NULL, the
     * network uses its own buffer. */
    struct slice (*room)(void *owner);
    /* `err`: 0, ERR_CLOSED (the port refused), ERR_DENIED (the certificate), ERR_UNSUPPORTED (no
     * TLS at the port), ERR_VERSION (any other failure of TLS), ERR_UNREACHABLE, or a shortage. */
    void (*connected)(void *owner, int err, uint64_t now_ms);
    /* The bytes are borrowed for the call. */
    void (*received)(void *owner, struct slice bytes, uint64_t now_ms);
    /* The peer sends no more. `err`: 0, or ERR_CLOSED if the connection broke. */
    void (*ended)(void *owner, int err, uint64_t now_ms);
    /* The kernel accepted the queued bytes (`err` is 0), or never will. */
    void (*written)(void *owner, int err, uint64_t now_ms);
    /* The last event: the network no longer uses the owner's memory. */
    void (*closed)(void *owner);
};

/* The network's own struct begins with this struct. */
struct net_stream {
    const struct net_events *events;
    void *owner;
};

enum {
    NET_ADDRESSES_MAX = 8, /* addresses used per name */
    NET_ADDRESS_NEW = 255, /* in net_found.before: not in the previous result */
    NET_IP_BYTES = 64,     /* an address as text, with zone and NUL */
};

/* The result of a look-up: the name's addresses from now on. */
struct net_found {
    unsigned count; /* addresses found; 0: none, and the known addresses stay */
    /* Each address's number in the previous result, or NET_ADDRESS_NEW. If a previous number is
     * missing here, the address is gone. */
    uint8_t before[NET_ADDRESSES_MAX];
    /* The reason for no address: ERR_NOT_FOUND (the name has none), ERR_TIMEOUT (no DNS server
     * answered), ERR_UNREACHABLE (any other failure). `error` is the reason in words. */
    int err;
    const char *error;
    bool more; /* the look-up continues and will report another result */
};

/* A name and the addresses of the name; the network's own struct begins with this struct. */
struct net_host {
    void (*resolved)(void *owner, const struct net_found *found, uint64_t now_ms);
    void *owner;
};

enum {
    NET_PIECES_MAX = 64, /* pieces per write */
    /* A vanished machine closes no connection. So on both sides the kernel sends a probe after
     * NET_KEEPALIVE_S of silence, and then every NET_KEEPALIVE_EVERY_S. The connection breaks after
     * NET_SILENT_MS without a reply, to probes or to data (TCP_USER_TIMEOUT, RFC 5482). */
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
    /* Begins to look up the name. Returns true if the look-up began. */
    bool (*resolve)(struct net_host *host);
    /* Writes the address as text. The function is NULL if the network has only names. */
    void (*ip)(const struct net_host *host, unsigned address, char out[NET_IP_BYTES]);
    /* Closes a host; no event follows. */
    void (*close_host)(struct net_host *host);

    /* Begins a connection with TCP keep-alive. Errors: those of a shortage (enum net_shortage), and
     * ERR_CLOSED or ERR_UNREACHABLE for failures known at once. */
    int (*connect)(void *context, struct net_host *host, unsigned address, struct net_stream **out);
    /* Writes at most NET_PIECES_MAX pieces, as far as the kernel accepts them at once. Returns the
     * number of bytes, 0 if the kernel's buffer is full, or ERR_CLOSED. */
    ptrdiff_t (*write)(struct net_stream *stream, const struct slice *pieces, unsigned count);
    /* Writes all pieces as fast as the kernel accepts them. The bytes must stay valid, and no
     * second call may follow, until the event `written` or `closed`. After ERR_CLOSED or ERR_NOMEM
     * no event follows. */
    int (*queue)(struct net_stream *stream, const struct slice *pieces, unsigned count);
    /* Begins or ends receiving. */
    void (*read)(struct net_stream *stream, bool on);
    /* Returns the round-trip time to the peer, in microseconds, as TCP measures it (RFC 6298,
     * SRTT); 0: unknown. Costs a system call. */
    uint64_t (*round_trip_us)(struct net_stream *stream);
    /* Sends FIN after the queued bytes. */
    void (*finish)(struct net_stream *stream);
    /* Closes the stream: the event `closed` follows, and no other. `reset`: by RST, if possible. */
    void (*close)(struct net_stream *stream, bool reset);
};

#endif
