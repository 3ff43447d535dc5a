/* A connection to a replica: sends a request, takes the answer from the received bytes, and waits
 * in the replica's pool for the next request.
 *
 *   CONNECTING ──> BUSY ──> IDLE (in the pool, last in first out) ──> BUSY ...
 *        └───────────┴─────────┴──> closed
 *
 * Engines close an idle connection after 5 s, so the router closes idle connections after
 * upstream-keepalive (4 s). The engine may still close a reused connection while a request is in
 * transit. Then FIN, or a 408 and FIN, arrives within a round trip, before any other byte. This is
 * no failure of the replica: the request is sent again on a fresh connection.
 *
 * The exchange lends the request: a head, and a body that may still be growing. The connection does
 * not know the exchange's state: proxy.c takes each piece of the answer and passes it on. */
#ifndef NODE_PROXY_ENGINE_UPSTREAM_H
#define NODE_PROXY_ENGINE_UPSTREAM_H

#include "base/err.h"
#include "http/chunked.h"
#include "node/proxy/engine/pool.h"

struct exchange;

enum {
    /* If a connection breaks later than this after the request was sent, the engine was working on
     * the request. The limit is the longer of UPSTREAM_STALE_MS (a round trip within a continent,
     * and a busy loop) and UPSTREAM_STALE_TRIPS round trips. The first trip is the minimum; the
     * second allows for TCP's retransmissions and delays. */
    UPSTREAM_STALE_MS = 100,
    UPSTREAM_STALE_TRIPS = 2,
    /* If the engine closes a connection that was idle for a shorter time, the process is ending.
     * Servers keep idle connections for at least 5 s, as does uvicorn of vLLM and SGLang. */
    UPSTREAM_EARLY_MS = 2000,
};

enum upstream_failure {
    UPSTREAM_CONNECT_FAILED, /* refused, unreachable, or connect timeout */
    UPSTREAM_STALE,          /* a reused connection was already closed by the engine */
    UPSTREAM_BROKEN,         /* the connection was closed or reset before the answer's end */
    UPSTREAM_TIMEOUT,        /* no byte within first-token, whole-answer or idle timeout */
    UPSTREAM_MALFORMED,      /* the answer is not valid HTTP */
    UPSTREAM_UNFINISHED,     /* the HTTP body is complete, but the stream's last event is missing */
    UPSTREAM_STALLED,        /* the watchdog found the replica stalled */
    UPSTREAM_NO_PLACE,       /* a shortage of this machine (shortage.h) */
};

enum upstream_state { UPSTREAM_CONNECTING, UPSTREAM_BUSY, UPSTREAM_IDLE, UPSTREAM_CLOSING };

/* A request as a connection needs it. Part of the exchange, and valid as long. */
struct upstream_request {
    struct buf head;     /* as sent to the replica */
    struct body *body;   /* may grow until complete */
    bool to_head;        /* the request is a HEAD: the answer has no body */
    bool streams_tokens; /* the answer is a streamed completion */
    bool answered_whole; /* the answer is not streamed, but comes whole at the end */
};

struct upstream {
    struct proxy *proxy;
    struct net_stream *stream;
    struct pool *pool;
    uint32_t address;      /* id of the pool's address (pool_address()) */
    struct upstream *next; /* in the pool's idle list */
    struct upstream *prev;
    struct upstream *all_next; /* in the list of all connections of the pool */
    struct upstream *all_prev;
    struct exchange *exchange;              /* the present request's exchange */
    const struct upstream_request *request; /* NULL: none */
    struct deadline deadline;
    uint64_t began_ms;  /* start of the request */
    uint64_t sent_ms;   /* last time the network accepted bytes of the request */
    uint64_t active_ms; /* last time a byte of the request was accepted, or a byte of the answer
                         * came */
    enum upstream_state state;
    uint64_t silent_ms; /* start of the silence to which the time limit applies */
    bool used;          /* an earlier answer was read on this connection */
    bool reused;        /* `used` at the start of the present request */
    bool reading;
    bool writing;      /* bytes are queued with the network */
    bool no_place;     /* this machine had a shortage */
    bool write_failed; /* nothing more can be sent, but an answer may still come */
    bool any_byte;     /* a byte of the present answer has come */
    bool awaits_token; /* no token has come yet, and the wait has a limit */
    bool request_sent; /* the whole request has been sent */
    bool crossed;      /* broken while the request may have been in transit to a distant engine */

    /* Sending: the position in the request. */
    size_t head_sent;
    uint64_t body_sent;
    struct segment *segment; /* the body's segment to send next; NULL: none begun */
    size_t segment_sent;
    struct body *write_body; /* a reference to the body while bytes are queued with the network */
    size_t write_bytes;
    char *write_head; /* while queued: a copy of the head's unsent rest */

    /* Receiving. */
    struct buf in; /* stored bytes: an incomplete head, or a held-back part of the body */
    /* The buffer `in` while upstream_next() reads: `window` points into `held`. */
    struct buf held;
    struct slice window; /* the bytes not yet taken by upstream_next() */
    bool too_large;      /* the received bytes do not fit after the stored ones in `held` */
    bool ends_apart;     /* upstream_next() reports the body's end apart from the last bytes */
    bool held_back;      /* `in` is a part of the body, given back by upstream_hold() */
    size_t head_bytes;   /* bytes of this answer's heads, interim ones (1xx) included */
    bool in_body;
    enum http_framing framing;
    uint64_t remaining;
    bool keep_alive;
    struct http_chunked chunked;
};

/* --- the request ---------------------------------------------------------------------------- */

/* Takes an idle connection, or opens one (always if `fresh`), for the exchange's request. ERR_FULL:
 * upstream-connections-max is reached, or this machine has a shortage (shortage.h).
 * ERR_UNREACHABLE: no address is known yet, or connecting failed at once. ERR_NOMEM. */
MUST_USE int upstream_start(struct pool *pool, struct exchange *x,
                            const struct upstream_request *request, bool fresh,
                            struct upstream **out);
/* Called when the connection is open: sends the request. */
void upstream_connected(struct upstream *u);
/* Sends the available part of the request: at the start, when the body grows or is complete, and
 * after a queued write. */
void upstream_push(struct upstream *u);
/* Called when the queued bytes are written, or never will be. Returns false if no request is under
 * way any more. */
bool upstream_written(struct upstream *u, int err);
/* Releases the memory of the body's sent segments. Returns true if there were any. */
bool upstream_release_sent(struct upstream *u, struct body *b);

/* --- the answer ----------------------------------------------------------------------------- */

/* A result of upstream_next(): any of a final answer's head, a piece of the body, and the end, in
 * this order. */
struct upstream_output {
    const struct http_head *head; /* valid for the call; NULL: none */
    struct slice body;
    bool end;       /* the answer is complete; the connection is back in the pool, or closed */
    bool stale;     /* `head` is a 408 that closes an idle connection, not a reply to the request */
    bool malformed; /* the answer is malformed: the caller must fail the connection */
};

/* Adds new bytes, borrowed until upstream_rest(). */
void upstream_feed(struct upstream *u, struct slice bytes);
/* Takes the next result. Returns false if there is none, or if the exchange has ended. */
bool upstream_next(struct upstream *u, struct upstream_output *out);
/* Gives back the last `n` bytes of the last piece of the body, and all later bytes. Then there is
 * no next piece until upstream_again(). For answers in a content coding. ERR_NOMEM. */
MUST_USE int upstream_hold(struct upstream *u, size_t n);
/* Makes the bytes given back available to upstream_next(). The caller calls upstream_rest()
 * later. */
void upstream_again(struct upstream *u);
/* Keeps the bytes not taken. Returns false if a head is too large; the caller fails the
 * connection. */
bool upstream_rest(struct upstream *u);

/* Called when the replica sends no more. Returns true if the answer has thereby ended. */
bool upstream_ended(struct upstream *u);
/* Called when the first token came, or if the answer has no tokens. From now on the time limit for
 * the gap between two pieces applies. */
void upstream_token_came(struct upstream *u);
/* upstream_pause() stops reading the answer while the client is slow. upstream_resume()
 * continues. */
void upstream_pause(struct upstream *u);
void upstream_resume(struct upstream *u);

/* --- the end -------------------------------------------------------------------------------- */

/* Closes a failed connection. Returns the failure to count: UPSTREAM_STALE if the engine had
 * probably closed a reused connection before the request came, otherwise `failure`. */
enum upstream_failure upstream_fail(struct upstream *u, enum upstream_failure failure);
/* Called when the exchange gives up the connection. Closes the connection unless already in the
 * pool. */
void upstream_abort(struct upstream *u);
/* Called after the stream's last event. */
void upstream_free(struct upstream *u);
/* Closes the idle connections, because the replica is down or the node ends. */
void upstream_flush_pool(struct pool *pool);

#endif
