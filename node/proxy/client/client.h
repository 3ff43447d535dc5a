/* A connection on the client port, the admin port or the probe port. Takes requests from the
 * received bytes in their order, gathers and writes answers, and detects a slow or vanished peer.
 *
 *   HEAD ──> BODY ──> ANSWER ──> HEAD ...        pipelined requests wait in `in`
 *     └────────┴────────┴──> LINGER ──> closed   error sent; the peer may still be sending
 *
 * There is one exchange at a time. Bytes that arrive during an answer (a pipeline) are stored, up
 * to the size limit of one head. Then reading stops. Otherwise the router reads even while an
 * answer is awaited, because only a read shows a closed connection.
 *
 * The connection knows nothing of an exchange's state: proxy.c takes requests from the connection
 * for the exchange, which writes the answer back. */
#ifndef NODE_PROXY_CLIENT_CLIENT_H
#define NODE_PROXY_CLIENT_CLIENT_H

#include "http/chunked.h"
#include "http/forward.h"
#include "node/proxy/client/upload.h"
#include "node/proxy/proxy_internal.h"

struct exchange;

enum client_state { CLIENT_HEAD, CLIENT_BODY, CLIENT_ANSWER, CLIENT_LINGER, CLIENT_CLOSING };

struct client {
    struct proxy *proxy;
    struct net_stream *stream;
    struct client *next;
    struct client *prev;
    struct client *waiting_next;
    struct client *waiting_prev;
    struct deadline deadline;
    enum proxy_port port;
    enum client_state state;
    enum proxy_limit armed; /* the queue of `deadline`, if armed */
    bool reading;
    bool writing;
    bool waiting;   /* in proxy->clients.waiting */
    bool asked;     /* a request has arrived on this connection */
    bool taking;    /* between client_feed() and client_rest() */
    bool begun;     /* `window` began with stored bytes of an incomplete head */
    bool too_large; /* the received bytes do not fit after the stored ones in `held` */
    bool last;      /* the connection closes after the present answer */
    /* The connection was refused, and the answer gives the reason. Not counted as a request. */
    bool surplus;
    bool awaits_header; /* a PROXY header must come first (http/proxy_header.h) */
    bool lingering;     /* the answer is an error: the peer may finish sending before the close */
    bool ended;         /* the present answer is complete, but not yet fully written */
    bool reset_at_end;  /* the answer was cut off: only a reset tells the peer */
    bool half_closed;   /* the peer sent FIN, and still gets answers to complete requests */
    enum client_end
        broken; /* why nothing can be written any more; CLIENT_END_DONE: writing works */

    struct buf in; /* unparsed bytes: part of a head, or a pipeline */
    /* The buffer `in` while client_next() reads: `window` points into `held`. */
    struct buf held;
    struct slice window; /* the bytes not yet taken by client_next() */
    struct http_progress progress;
    /* `in` was parsed and is incomplete: the head's end must come before the next try. */
    bool parsed_once;
    enum client_standing standing;
    struct peers_client *from; /* the address to which the connection is counted; NULL: none */
    uint64_t lingered;         /* bytes received in state LINGER */
    struct exchange *exchange;
    enum http_framing framing; /* the present body's framing */
    uint64_t remaining;        /* bytes of the body yet to come, by Content-Length */
    struct http_chunked chunked;
    const char *room;     /* memory into which the network reads a body; NULL: none */
    struct upload upload; /* the body's pace, unless the whole body came with the head */

    struct segment *out_first; /* first of the segments not yet accepted by the kernel */
    struct segment *out_last;
    size_t out_bytes;

    char peer[48]; /* IP address as text */
};

/* Returns NULL if there is no memory. */
struct client *client_new(struct proxy *p, struct net_stream *stream, enum proxy_port port,
                          const char *peer);
/* Called after the stream's last event. */
void client_free(struct client *c);
/* Takes the client off proxy->clients.waiting, because the next request is handled now. */
void client_stop_waiting(struct client *c);
/* Arms the time limit of the present state. */
void client_arm(struct client *c);

/* --- requests from the client's bytes -------------------------------------------------------- */

/* A result of client_next(): any of a head, a piece of a body, and the end of the request, in this
 * order. */
struct client_input {
    const struct http_head *head; /* a new request's head, valid for the call; NULL: none */
    bool has_body;                /* a body follows `head` */
    struct slice body;
    bool end;            /* the request is complete */
    bool header;         /* this result is a PROXY header and nothing else */
    bool identified;     /* the PROXY header names the client */
    bool stranger;       /* the required PROXY header is missing */
    unsigned refused;    /* HTTP status with which to refuse the request; 0: not refused */
    const char *refusal; /* the reason in words */
    const char *limit;   /* the setting behind the refusal; NULL: none */
};

/* Adds new bytes, borrowed until client_rest(). If `bytes` is empty, the stored bytes are read
 * again. */
void client_feed(struct client *c, struct slice bytes);
/* Takes the next result. Returns false if there is none, or if the client must wait. The caller
 * calls client_body_ended() after handling `end`. */
bool client_next(struct client *c, struct client_input *out);
/* Stores the bytes not taken. Returns false if there is no memory; then the caller closes. */
bool client_rest(struct client *c);

static inline void client_body_ended(struct client *c)
{
    c->state = CLIENT_ANSWER;
    upload_end(&c->upload);
    if (c->armed != PROXY_CLIENT_WRITE && c->armed != PROXY_CLIENT_SHORT)
        deadline_clear(&c->deadline); /* a pending write (100 Continue) keeps the time limit */
}

/* The client half-closed the connection. Returns true if complete requests are still answered
 * (client-half-close). */
bool client_half_close(struct client *c);

/* Returns how many of the body's next bytes the network may read straight into the body's segments;
 * 0: none. */
uint64_t client_direct_bytes(const struct client *c);
/* client_hold_body() stops reading the body, and client_resume_body() continues. */
void client_hold_body(struct client *c);
void client_resume_body(struct client *c);

/* --- the answer ------------------------------------------------------------------------------ */

/* Gather an answer's head and pieces of the body for client_flush() at the event's end. The pieces
 * are borrowed until then. */
void client_gather_head(struct client *c, const struct http_head *head,
                        const struct http_forward_response *how);
void client_gather(struct client *c, struct slice bytes);
static inline bool client_gather_full(const struct client *c)
{
    return c->proxy->clients.gathered.count >= PROXY_PIECES_MAX;
}
static inline bool client_has_gathered(const struct client *c)
{
    return c->proxy->clients.gathered.owner == c;
}
/* Writes the gathered bytes, as one chunk if the body is `chunked`. If `last`, the end of the
 * chunked body follows. Returns the number of bytes. */
size_t client_flush(struct client *c, bool chunked, bool last);
static inline size_t client_gathered_bytes(const struct client *c)
{
    return client_has_gathered(c) ? c->proxy->clients.gathered.bytes : 0;
}
/* Moves the gathered bytes to the end of `out` and adds the head's size to `*head_bytes`. After
 * ERR_NOMEM nothing has changed. */
MUST_USE int client_gather_keep(struct client *c, struct buf *out, size_t *head_bytes);
/* Inserts a head (empty: none) and a piece of the body before the gathered pieces. */
void client_gather_front(struct client *c, struct slice head, struct slice body);
/* Drops the gathered bytes. */
void client_discard(struct client *c);

/* Writes as much as the kernel accepts and queues the rest. After an error the connection closes
 * later. */
void client_write(struct client *c, const struct slice *pieces, unsigned count);
/* The network has written the queued bytes. */
void client_written(struct client *c);
/* Returns true if the answer must pause, because too many bytes are queued for the peer. */
static inline bool client_congested(const struct client *c)
{
    return c->out_bytes > PROXY_OUT_BYTES_HIGH;
}

/* Counts bytes received and dropped after the answer. Returns false if they are too many; then the
 * caller closes. */
bool client_linger(struct client *c, size_t bytes);

/* Called when the exchange has ended with a complete answer. */
void client_answered(struct client *c);
/* Called when the exchange has ended with an incomplete answer. Writes the queued bytes, then
 * closes the connection: by a reset if `by_reset`, because the peer would take a plain end for the
 * answer's end. */
void client_answer_cut(struct client *c, bool by_reset);

/* --- the end --------------------------------------------------------------------------------- */

/* Closes now; the exchange must have ended. `reset`: closes by a reset, because the peer would take
 * a plain end for the answer's end. */
void client_close(struct client *c, bool reset);
/* Called when the client port has closed. On an idle connection a request may still arrive: the
 * peer sent it before seeing the close. The router waits PROXY_PARTING_MS for such a request on a
 * used connection, and PROXY_FRESH_MS on a new connection. */
void client_drain(struct client *c);

#endif
