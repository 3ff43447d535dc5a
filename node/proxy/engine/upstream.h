/* One connection to a replica: sends one request at a time, takes its answer out of the bytes, and
 * waits in the replica's pool for the next.
 *
 *   CONNECTING ──> BUSY ──> IDLE (in the pool, last in first out) ──> BUSY ...
 *        └───────────┴─────────┴──> closed
 *
 * Engines close an idle connection after 5 s, so ours are retired after upstream-keepalive (4 s). A
 * reused connection may be closed by the engine while a request is on its way to it. The end, or a
 * 408 that the engine sends before it closes, is here within a round trip then, before any other
 * byte. That is no failure of the replica: the request is sent again on a fresh connection.
 *
 * It borrows a request (a head, and a body that may still be growing) from the exchange, and does
 * not know what becomes of the answer: proxy.c takes it out and hands it on.
 */
#ifndef NODE_PROXY_ENGINE_UPSTREAM_H
#define NODE_PROXY_ENGINE_UPSTREAM_H

#include "base/err.h"
#include "http/chunked.h"
#include "node/proxy/engine/pool.h"

struct exchange;

enum {
    /* So long after its request went out, what breaks was working on it: UPSTREAM_STALE_MS, which
     * is a round trip within a continent and a busy loop, or UPSTREAM_STALE_TRIPS, if that is
     * more. One round trip is what it takes, the other is for what TCP sends again, or late. */
    UPSTREAM_STALE_MS = 100,
    UPSTREAM_STALE_TRIPS = 2,
    /* An idle connection that closes sooner than this is a sign that the process ends: servers keep
     * them for 5 s (uvicorn, of vLLM and SGLang) or more. */
    UPSTREAM_EARLY_MS = 2000,
};

enum upstream_failure {
    UPSTREAM_CONNECT_FAILED, /* refused, unreachable, or connect timeout */
    UPSTREAM_STALE,          /* a reused connection was already closed by the engine */
    UPSTREAM_BROKEN,         /* closed or reset in the middle */
    UPSTREAM_TIMEOUT,        /* no byte within first-token, whole-answer or idle timeout */
    UPSTREAM_MALFORMED,      /* the answer is not HTTP that can be trusted */
    UPSTREAM_UNFINISHED,     /* its framing is whole, but its terminal event did not come */
    UPSTREAM_STALLED,        /* it stands still with a replica that does */
    UPSTREAM_NO_PLACE,       /* this machine is short of something (shortage.h) */
};

enum upstream_state { UPSTREAM_CONNECTING, UPSTREAM_BUSY, UPSTREAM_IDLE, UPSTREAM_CLOSING };

/* What an upstream needs to know of a request; in the exchange, and good as long as that. */
struct upstream_request {
    struct buf head;     /* as it goes to the replica */
    struct body *body;   /* may still grow until it is complete */
    bool to_head;        /* the request is a HEAD: its answer has no body */
    bool streams_tokens; /* a completion that is streamed */
    bool answered_whole; /* the answer comes at once when it is complete: not streamed */
};

struct upstream {
    struct proxy *proxy;
    struct net_stream *stream;
    struct pool *pool;
    uint32_t address;      /* of the pool's */
    struct upstream *next; /* in the pool's idle list */
    struct upstream *prev;
    struct upstream *all_next; /* in the list of all of the pool's connections */
    struct upstream *all_prev;
    struct exchange *exchange;              /* whose request it has */
    const struct upstream_request *request; /* NULL: none */
    struct deadline deadline;
    uint64_t began_ms;  /* when it got the request */
    uint64_t sent_ms;   /* when the network took the last bytes of it */
    uint64_t active_ms; /* the same, or the last byte of the answer */
    enum upstream_state state;
    uint64_t silent_ms; /* since when a limit is on its silence */
    bool used;          /* an answer was read from this connection already */
    bool reused;        /* the same before it got the present request */
    bool reading;
    bool writing;      /* bytes are queued with the network */
    bool no_place;     /* this machine was short of something for it */
    bool write_failed; /* the rest comes out of the read side */
    bool any_byte;     /* of the present answer */
    bool awaits_token; /* what came of it has no token yet, and a limit is on that */
    bool request_sent; /* whole */
    bool crossed;      /* it broke, and the request may have been on its way: the engine is far */

    /* Sending: position in the request. */
    size_t head_sent;
    uint64_t body_sent;
    struct segment *segment; /* being sent; NULL: none begun */
    size_t segment_sent;
    struct body *write_body; /* keeps the bytes that are queued */
    size_t write_bytes;
    char *write_head; /* copy of the head's unsent rest, while it is queued */

    /* Receiving. */
    struct buf in;       /* a head that is not whole yet */
    struct buf held;     /* the same while it is taken from: `window` is in it */
    struct slice window; /* what is left to take */
    bool too_large;      /* what came does not fit behind what is held */
    bool ends_apart;     /* the end of the body comes alone: some of its bytes may be given back */
    bool held_back;      /* `in` is a part of the body that was given back */
    size_t head_bytes;   /* of the heads of this answer: interim ones (1xx), and the last */
    bool in_body;
    enum http_framing framing;
    uint64_t remaining;
    bool keep_alive;
    struct http_chunked chunked;
};

/* --- the request ----------------------------------------------------------------------------- */

/* Takes an idle connection, or opens one (always when `fresh`), for the exchange's request.
 * ERR_FULL: upstream-connections-max, or no port, file or buffer is left here (shortage.h);
 * ERR_UNREACHABLE: no address yet, or it failed at once; ERR_NOMEM. */
MUST_USE int upstream_start(struct pool *pool, struct exchange *x,
                            const struct upstream_request *request, bool fresh,
                            struct upstream **out);
/* It is connected: the request can be sent. */
void upstream_connected(struct upstream *u);
/* Sends what is there of the request: at the start, when the body grows, when it is complete, and
 * when what was queued is written. */
void upstream_push(struct upstream *u);
/* What was queued is written, or will never be. False: no request is on its way any more. */
bool upstream_written(struct upstream *u, int err);
/* Lets go of the parts of its body that are sent. Returns whether there were any. */
bool upstream_release_sent(struct upstream *u, struct body *b);

/* --- its answer ------------------------------------------------------------------------------ */

/* What upstream_next() took: a head (of a final answer), a piece of the body, the end; all that are
 * there, in this order. */
struct upstream_output {
    const struct http_head *head; /* good for the call; NULL: none */
    struct slice body;
    bool end;       /* the connection waits in its pool now, or is closed */
    bool stale;     /* with a head: it is a 408 to the connection, not to the request */
    bool malformed; /* the connection is as it was: fail it */
};

/* New bytes, borrowed until upstream_rest(). */
void upstream_feed(struct upstream *u, struct slice bytes);
/* Takes the next piece; false: there is none, or nobody wants it any more. */
bool upstream_next(struct upstream *u, struct upstream_output *out);
/* The last `n` bytes of the piece of a body that it took last, and all behind them, wait for
 * upstream_again(); until then there is no next piece. Of an answer in a content coding. ERR_NOMEM.
 */
MUST_USE int upstream_hold(struct upstream *u, size_t n);
/* What waits can be taken now, as if it came now; upstream_rest() follows. */
void upstream_again(struct upstream *u);
/* Keeps what was not taken. False: that is more than a head may have, fail it. */
bool upstream_rest(struct upstream *u);

/* The replica will send no more. True: that was the end of the answer. */
bool upstream_ended(struct upstream *u);
/* The first token of its answer came, or it is none that has tokens: from now on the limit is that
 * between two pieces. */
void upstream_token_came(struct upstream *u);
/* Its client is slow: no more is read, and more again. */
void upstream_pause(struct upstream *u);
void upstream_resume(struct upstream *u);

/* --- the end --------------------------------------------------------------------------------- */

/* It failed: closes it. Returns how the exchange should see it. */
enum upstream_failure upstream_fail(struct upstream *u, enum upstream_failure failure);
/* The exchange wants nothing more of it: closes it, if it is not in the pool. */
void upstream_abort(struct upstream *u);
/* After the stream's last event. */
void upstream_free(struct upstream *u);
/* Closes the idle connections: the replica is down or the node ends. */
void upstream_flush_pool(struct pool *pool);

#endif
