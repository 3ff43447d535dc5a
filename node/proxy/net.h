/* The network as the proxy sees it: TCP streams and names of hosts. Events come up, actions go
 * down.
 *
 *   events    connected, received, ended, written, closed, resolved
 *   actions   connect, write, queue, read, finish, close, round_trip_us; open_host, resolve, ip,
 *             close_host
 *
 * node/io/tcp.c and node/io/names.c implement it with libuv, tests and simulations in virtual time.
 * One rule makes the proxy a one-way street: no event is delivered from within an action. So
 * nothing that the proxy calls ever calls it back.
 *
 * A stream has one owner, which sets `events` and `owner` before the first event. Each event brings
 * the time, in milliseconds of a monotonic clock; nothing in the proxy reads a clock.
 */
#ifndef NODE_PROXY_NET_H
#define NODE_PROXY_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"

struct node_address;

/* What this machine is short of when a connection is to be opened; no failure of the peer. */
enum net_shortage {
    NET_SHORT_OF_PORTS,  /* ERR_FULL: all local ports are in use towards that address */
    NET_SHORT_OF_FILES,  /* ERR_LIMIT: of this process or of the system */
    NET_SHORT_OF_MEMORY, /* ERR_NOMEM: ours, or buffers of the kernel */
    NET_SHORTAGES,
};

/* In a word, for logs, metrics and gvctl: "ports", "files", "memory"; for people: the remedy. */
const char *net_shortage_name(enum net_shortage kind);
const char *net_shortage_want(enum net_shortage kind);

static inline bool net_is_shortage(int err)
{
    return err == ERR_FULL || err == ERR_LIMIT || err == ERR_NOMEM;
}

struct net_events {
    /* Where the next bytes may be read to. Empty, or no such function: the network has memory of
     * its own for them. */
    struct slice (*room)(void *owner);
    /* 0, ERR_CLOSED (its port refused), ERR_DENIED (its certificate), ERR_UNSUPPORTED (no TLS at
     * its port), ERR_VERSION (any other failure of TLS), ERR_UNREACHABLE, or a shortage. */
    void (*connected)(void *owner, int err, uint64_t now_ms);
    /* The bytes are borrowed for the call. */
    void (*received)(void *owner, struct slice bytes, uint64_t now_ms);
    /* The peer will send no more: 0, or ERR_CLOSED where the connection broke. */
    void (*ended)(void *owner, int err, uint64_t now_ms);
    /* What was queued is with the kernel, or (not 0) will never be. */
    void (*written)(void *owner, int err, uint64_t now_ms);
    /* The last event: nobody uses the owner's memory any more. */
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

/* What a look-up has found: the addresses that the name has from now on. */
struct net_found {
    unsigned count; /* 0: none, and what was known stays */
    /* The number that each had until now, or NET_ADDRESS_NEW. What is not here is gone. */
    uint8_t before[NET_ADDRESSES_MAX];
    /* Why there is none: ERR_NOT_FOUND (the name has no address), ERR_TIMEOUT (no DNS server
     * answered), ERR_UNREACHABLE (the look-up failed otherwise); and in words. */
    int err;
    const char *error;
    bool more; /* the look-up goes on, and tells more */
};

/* A name and its addresses; the network's own struct begins with this one. */
struct net_host {
    void (*resolved)(void *owner, const struct net_found *found, uint64_t now_ms);
    void *owner;
};

enum {
    NET_PIECES_MAX = 64, /* of one write */
    /* A machine that vanishes closes nothing. On both sides the kernel asks after NET_KEEPALIVE_S
     * of silence, and then every NET_KEEPALIVE_EVERY_S; the connection is broken when the peer was
     * silent for NET_SILENT_MS: to that, or to what was sent (TCP_USER_TIMEOUT, RFC 5482). */
    NET_KEEPALIVE_S = 15,
    NET_KEEPALIVE_EVERY_S = 5,
    NET_SILENT_MS = 30000,
};

struct net_actions {
    void *context;

    /* `*count` is 1 for an IP address, which is ready at once, and 0 for a name, which must be
     * resolved. ERR_NOMEM. */
    int (*open_host)(void *context, const struct node_address *address, struct net_host **out,
                     unsigned *count);
    /* Begins to look up the name. One look-up at a time. Returns whether it began. */
    bool (*resolve)(struct net_host *host);
    /* That address as text. NULL: connections know the name alone. */
    void (*ip)(const struct net_host *host, unsigned address, char out[NET_IP_BYTES]);
    /* No event follows. */
    void (*close_host)(struct net_host *host);

    /* Opens a connection with TCP keep-alive. A shortage (enum net_shortage), or ERR_CLOSED,
     * ERR_UNREACHABLE where that is known at once. */
    int (*connect)(void *context, struct net_host *host, unsigned address, struct net_stream **out);
    /* Writes what the kernel takes at once of at most NET_PIECES_MAX pieces. Returns how many bytes
     * that were, 0 where the kernel is full, or ERR_CLOSED. */
    ptrdiff_t (*write)(struct net_stream *stream, const struct slice *pieces, unsigned count);
    /* Writes as the kernel takes it; the bytes must stay until `written` or `closed`. One at a
     * time. ERR_CLOSED, ERR_NOMEM: no event follows. */
    int (*queue)(struct net_stream *stream, const struct slice *pieces, unsigned count);
    /* Begins or ends receiving. */
    void (*read)(struct net_stream *stream, bool on);
    /* The time from here to the peer and back, in microseconds, as TCP measures it (RFC 6298,
     * SRTT); 0: not known. It costs a system call. */
    uint64_t (*round_trip_us)(struct net_stream *stream);
    /* Says that no more will be written (FIN), behind what is queued. */
    void (*finish)(struct net_stream *stream);
    /* `closed` follows, and no other event. `reset`: by RST, where it can be. */
    void (*close)(struct net_stream *stream, bool reset);
};

#endif
