/* A connection to a replica: sends one request at a time, takes the answer from the received bytes,
 * and waits in the replica's pool for the next request.
 *
 *   CONNECTING ──> BUSY ──> IDLE (in the pool, last in first out) ──> BUSY ...
 *        └───────────┴─────────┴──> closed
 *
 * Engines close an idle connection after 5 s, so the router retires its own after
 * upstream-keepalive (4 s). A reused connection may be closed by the engine while a request is in
 * transit. Then the end, or a 408 before the end, arrives within a round trip, before any other
 * byte. This is no failure of the replica: the request is sent again on a fresh connection.
 *
 * The exchange lends the request: a head, and a body that may still be growing. The connection does
 * not follow the answer further: proxy.c takes each piece and passes it on. */
#ifndef NODE_PROXY_ENGINE_UPSTREAM_H
#define NODE_PROXY_ENGINE_UPSTREAM_H

#include "base/err.h"
#include "http/chunked.h"
#include "node/proxy/engine/pool.h"

struct exchange;

enum {
    /* If a connection breaks so long after the request was sent, the engine was working on the
     * request: UPSTREAM_STALE_MS, which is a round trip within a continent and a busy loop, or
     * UPSTREAM_STALE_TRIPS, if longer. The first trip is the minimum; the second is for TCP's
     * retransmissions and delays. */
    UPSTREAM_STALE_MS = 100,
    UPSTREAM_STALE_TRIPS = 2,
    /* If an idle connection closes earlier, the process is ending: servers keep connections for 5 s
     * (uvicorn, of vLLM and SGLang) or more. */
    UPSTREAM_EARLY_MS = 2000,
};

enum upstream_failure {
    UPSTREAM_CONNECT_FAILED, /* refused, unreachable, or connect timeout */
    UPSTREAM_STALE,          /* a reused connection was already closed by the engine */
    UPSTREAM_BROKEN,         /* closed or reset too early */
    UPSTREAM_TIMEOUT,        /* no byte within first-token, whole-answer or idle timeout */
    UPSTREAM_MALFORMED,      /* the answer is not valid HTTP */
    UPSTREAM_UNFINISHED,     /* the framing is complete, but the terminal event is missing */
    UPSTREAM_STALLED,        /* the replica is stalled */
    UPSTREAM_NO_PLACE,       /* a shortage of this machine (shortage.h) */
};

enum upstream_state { UPSTREAM_CONNECTING, UPSTREAM_BUSY, UPSTREAM_IDLE, UPSTREAM_CLOSING };

/* The request as an upstream needs it; part of the exchange, and valid as long. */
struct upstream_request {
    struct buf head;     /* as sent to the replica */
    struct body *body;   /* may still grow until it is complete */
    bool to_head;        /* the request is a HEAD: the answer has no body */
    bool streams_tokens; /* a streamed completion */
    bool answered_whole; /* the answer comes at its end: not streamed */
};

struct upstream {
    struct proxy *proxy;
    struct net_stream *stream;
    struct pool *pool;
    uint32_t address;      /* an id of the pool's */
    struct upstream *next; /* in the pool's idle list */
    struct upstream *prev;
    struct upstream *all_next; /* in the list of all connections of the pool */
    struct upstream *all_prev;
    struct exchange *exchange;              /* of the present request */
    const struct upstream_request *request; /* NULL: none */
    struct deadline deadline;
    uint64_t began_ms;  /* start of the request */
    uint64_t sent_ms;   /* last time the network accepted bytes of the request */
    uint64_t active_ms; /* the same, or the last byte of the answer */
    enum upstream_state state;
    uint64_t silent_ms; /* start of the silence under a time limit */
    bool used;          /* an answer was read before on this connection */
    bool reused;        /* `used` at the start of the present request */
    bool reading;
    bool writing;      /* bytes are queued with the network */
    bool no_place;     /* this machine had a shortage */
    bool write_failed; /* the read side shows the rest */
    bool any_byte;     /* of the present answer */
    bool awaits_token; /* no token yet, and a limit on the wait */
    bool request_sent; /* whole */
    bool crossed;      /* broken while the request may have been in transit to a distant engine */

    /* Sending: the position in the request. */
    size_t head_sent;
    uint64_t body_sent;
    struct segment *segment; /* being sent; NULL: none begun */
    size_t segment_sent;
    struct body *write_body; /* keeps the queued bytes */
    size_t write_bytes;
    char *write_head; /* a copy of the head's unsent rest, while queued */

    /* Receiving. */
    struct buf in;       /* an incomplete head */
    struct buf held;     /* `in`, while upstream_next() takes from it: `window` points into this
                            buffer */
    struct slice window; /* the bytes left to take */
    bool too_large;      /* the received bytes do not fit behind `held` */
    bool ends_apart;     /* the body's end comes separately, because some bytes may be given back */
    bool held_back;      /* `in` is a part of the body, given back */
    size_t head_bytes;   /* of this answer's heads: interim ones (1xx), and the last */
    bool in_body;
    enum http_framing framing;
    uint64_t remaining;
    bool keep_alive;
    struct http_chunked chunked;
};

/* --- the request ---------------------------------------------------------------------------- */

/* Takes an idle connection, or opens one (always if `fresh`), for the exchange's request. ERR_FULL:
 * upstream-connections-max, or a shortage here (shortage.h); ERR_UNREACHABLE: no address yet, or an
 * immediate failure; ERR_NOMEM. */
MUST_USE int upstream_start(struct pool *pool, struct exchange *x,
                            const struct upstream_request *request, bool fresh,
                            struct upstream **out);
/* The connection is open: the request can be sent. */
void upstream_connected(struct upstream *u);
/* Sends the available part of the request: at the start, when the body grows or is complete, and
 * after a queued write. */
void upstream_push(struct upstream *u);
/* The queued bytes are written, or never will be. Returns false if no request is under way any
 * more. */
bool upstream_written(struct upstream *u, int err);
/* Releases the sent parts of the body. Returns true if there were any. */
bool upstream_release_sent(struct upstream *u, struct body *b);

/* --- the answer ----------------------------------------------------------------------------- */

/* A result of upstream_next(): a head (of a final answer), a piece of the body, the end. All that
 * are present come in this order. */
struct upstream_output {
    const struct http_head *head; /* valid for the call; NULL: none */
    struct slice body;
    bool end;       /* the connection is back in the pool, or closed */
    bool stale;     /* with a head: a 408 to the connection, not to the request */
    bool malformed; /* the connection is unchanged; the caller fails it */
};

/* Adds new bytes, borrowed until upstream_rest(). */
void upstream_feed(struct upstream *u, struct slice bytes);
/* Takes the next piece. Returns false if there is none, or the exchange is gone. */
bool upstream_next(struct upstream *u, struct upstream_output *out);
/* Gives back the last `n` bytes of the last body piece, and all later bytes, until
 * upstream_again(). Until then there is no next piece. For answers in a content coding.
 * ERR_NOMEM. */
MUST_USE int upstream_hold(struct upstream *u, size_t n);
/* Makes the bytes given back available as new input; upstream_rest() follows. */
void upstream_again(struct upstream *u);
/* Keeps the bytes not taken. Returns false if a head is too large; the caller fails the
 * connection. */
bool upstream_rest(struct upstream *u);

/* The replica sends no more. Returns true if this was the answer's end. */
bool upstream_ended(struct upstream *u);
/* The first token came, or the answer has no tokens: from now on the limit is between two
 * pieces. */
void upstream_token_came(struct upstream *u);
/* Stop and continue reading the answer, for a slow client. */
void upstream_pause(struct upstream *u);
void upstream_resume(struct upstream *u);

/* --- the end -------------------------------------------------------------------------------- */

/* Closes a failed connection. Returns the failure as the exchange should see it. */
enum upstream_failure upstream_fail(struct upstream *u, enum upstream_failure failure);
/* The exchange gives up the connection, which closes unless in the pool. */
void upstream_abort(struct upstream *u);
/* Called after the stream's last event. */
void upstream_free(struct upstream *u);
/* Closes the idle connections: the replica is down, or the node ends. */
void upstream_flush_pool(struct pool *pool);

#endif
