/* Connections to replicas: a pool of kept-alive ones per replica, one request at a time on each.
 *
 *   CONNECTING ──> BUSY ──> IDLE (in the pool, last in first out) ──> BUSY ...
 *        └───────────┴─────────┴──> closed
 *
 * Engines close an idle connection after 5 s, so ours are retired after upstream-keepalive (4 s). A
 * connection that the engine closed before any byte of an answer came is no failure of the replica
 * when it was a reused one: the request is sent again on a fresh connection.
 *
 * The exchange hands over its request (a head, and a body that may still be growing) and gets the
 * answer back through the exchange_on_*() functions, from within read callbacks.
 */
#ifndef NODE_IO_UPSTREAM_H
#define NODE_IO_UPSTREAM_H

#include "node/io/shell.h"

#include "http/chunked.h"

struct exchange;

enum { UPSTREAM_ADDRESSES_MAX = 8 }; /* of one name */

enum upstream_failure {
    UPSTREAM_CONNECT_FAILED, /* refused, unreachable, or connect time-out */
    UPSTREAM_STALE,          /* a reused connection was already closed by the engine */
    UPSTREAM_BROKEN,         /* closed or reset in the middle */
    UPSTREAM_TIMEOUT,        /* no byte within first-byte, whole-answer or idle time-out */
    UPSTREAM_MALFORMED,      /* the answer is not HTTP that can be trusted */
};

enum upstream_state { UPSTREAM_CONNECTING, UPSTREAM_BUSY, UPSTREAM_IDLE, UPSTREAM_CLOSING };

struct upstream {
    uv_tcp_t tcp;
    uv_connect_t connect;
    uv_write_t write;
    struct shell *shell;
    struct upstream_pool *pool;
    unsigned address;          /* of the pool's */
    struct upstream *next;     /* in the pool's idle list */
    struct upstream *all_next; /* in the list of all of the pool's connections */
    struct upstream *all_prev;
    struct exchange *exchange;
    struct deadline deadline;
    uint64_t active_ms; /* last byte either way */
    enum upstream_state state;
    unsigned served; /* answers already read from this connection */
    bool reading;
    bool writing;      /* a uv_write is under way */
    bool write_failed; /* the rest comes out of the read side */
    bool any_byte;     /* of the present answer */
    bool request_sent; /* whole */

    /* Sending: position in the request. */
    size_t head_sent;
    uint64_t body_sent;
    struct segment *segment; /* being sent; NULL: none begun */
    size_t segment_sent;
    struct body *write_body; /* keeps the bytes of a write under way */
    size_t write_bytes;
    char *write_head; /* copy of the head's unsent rest, owned by the write under way */

    /* Receiving. */
    struct buf in; /* a head that is not whole yet */
    bool in_body;
    enum http_framing framing;
    uint64_t remaining;
    bool keep_alive;
    struct http_chunked chunked;
};

struct upstream_pool {
    struct shell *shell;
    unsigned replica;
    struct node_address address;
    struct sockaddr_storage addresses[UPSTREAM_ADDRESSES_MAX];
    unsigned address_count; /* 0: not looked up yet */
    unsigned address_at;    /* the one to connect to: moves on when connecting to it fails */
    bool is_name;           /* needs DNS */
    bool resolving;
    uint64_t resolved_ms;
    uv_getaddrinfo_t resolver;
    struct upstream *all;
    struct upstream *idle;
    unsigned idle_count;
    unsigned open_count;
};

/* Literal addresses are ready at once, names after their first look-up. */
void upstream_pool_init(struct upstream_pool *pool, struct shell *shell, unsigned replica,
                        const struct node_address *address);
/* Looks the name up again if it is one and the last look-up is older than `age_ms`. */
void upstream_pool_resolve(struct upstream_pool *pool, uint64_t age_ms);
/* Where to connect to; there must be an address. */
const struct sockaddr *upstream_pool_address(const struct upstream_pool *pool);
/* Connecting to that one failed: the next one of the name, if it has several, is used from now. */
void upstream_pool_address_failed(struct upstream_pool *pool, unsigned address);
/* Closes idle connections: the replica is down or the daemon ends. */
void upstream_pool_flush(struct upstream_pool *pool);
/* Breaks the connections whose answer has not moved for `silent_ms`: their engine is dead. */
void upstream_pool_fail_silent(struct upstream_pool *pool, uint64_t silent_ms);

/* Takes an idle connection, or opens one (always when `fresh`), for the exchange, and begins to
 * send. ERR_FULL: upstream-connections-max, or no file is left; ERR_UNREACHABLE: no address yet, or
 * no socket. */
int upstream_start(struct upstream_pool *pool, struct exchange *x, bool fresh,
                   struct upstream **out);

/* More of the body is there, or it is complete. */
void upstream_push(struct upstream *u);
void upstream_pause(struct upstream *u);
void upstream_resume(struct upstream *u);

/* The exchange wants nothing more of it: closed. No callback follows. */
void upstream_abort(struct upstream *u);

#endif
