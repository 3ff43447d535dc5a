/* A connection on the client port or the admin port. It takes requests from the received bytes one
 * by one, gathers and writes answers, and detects a slow or vanished peer.
 *
 *   HEAD ──> BODY ──> ANSWER ──> HEAD ...        pipelined requests wait in `in`
 *     └────────┴────────┴──> LINGER ──> closed   after an error the peer may still be sending
 *
 * There is one exchange at a time. Bytes that arrive during an answer (a pipeline) are stored, up
 * to the limit of one head; beyond that the stream is not read. Reading continues while an answer
 * is awaited, because only a read shows that the client has left.
 *
 * The connection does not follow an exchange: proxy.c takes requests from the connection for the
 * exchange, which writes the answer back. */
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
    enum proxy_limit armed; /* the limit of an armed `deadline` */
    bool reading;
    bool writing;
    bool waiting;   /* in proxy->clients.waiting */
    bool asked;     /* a request arrived on this connection */
    bool taking;    /* between client_feed() and client_rest() */
    bool begun;     /* `window` began with a part of a head */
    bool too_large; /* the received bytes do not fit behind `held` */
    bool last;      /* close after the present answer */
    /* Refused at the door: the answer says so and does not count as a request. */
    bool surplus;
    bool awaits_header;     /* a PROXY header comes first (http/proxy_header.h) */
    bool lingering;         /* the answer is an error: let the peer finish sending */
    bool ended;             /* the present answer is complete, but not yet fully written */
    bool reset_at_end;      /* the answer was cut, which only a reset can show */
    bool half_closed;       /* the peer sends no more, and gets the answers to complete requests */
    enum client_end broken; /* the reason why writing has ended; DONE: it has not */

    struct buf in; /* unparsed: part of a head, or a pipeline */
    /* `in`, while client_next() takes from it: `window` points into this buffer. */
    struct buf held;
    struct slice window; /* the bytes left to take */
    struct http_progress progress;
    bool parsed_once; /* the head in `in`: look for the end before parsing again */
    enum client_standing standing;
    struct peers_client *from; /* the address for which the connection counts; NULL: none */
    uint64_t lingered;         /* bytes received in state LINGER */
    struct exchange *exchange;
    enum http_framing framing; /* of the present body */
    uint64_t remaining;
    struct http_chunked chunked;
    const char *room;     /* memory into which the network reads a body; NULL: none */
    struct upload upload; /* the body's pace, if not received with the head */

    struct segment *out_first; /* bytes the kernel has not accepted yet */
    struct segment *out_last;
    size_t out_bytes;

    char peer[48]; /* IP address as text */
};

/* NULL: no memory. */
struct client *client_new(struct proxy *p, struct net_stream *stream, enum proxy_port port,
                          const char *peer);
/* Called after the stream's last event. */
void client_free(struct client *c);
/* Takes the client off proxy->clients.waiting, because the next request is handled now. */
void client_stop_waiting(struct client *c);
/* Arms the limit of the present state. */
void client_arm(struct client *c);

/* --- requests from the client's bytes -------------------------------------------------------- */

/* A result of client_next(): a head, a piece of a body, the end of the request. All that are
 * present come in this order. */
struct client_input {
    const struct http_head *head; /* of a new request, valid for the call; NULL: none */
    bool has_body;                /* with `head` */
    struct slice body;
    bool end;
    bool header;      /* only a PROXY header, */
    bool identified;  /* which names the client */
    bool stranger;    /* a PROXY header is required and missing */
    unsigned refused; /* status of the refusal; 0: not refused */
    const char *refusal;
    const char *limit; /* the setting that caused the refusal; NULL: none */
};

/* Adds new bytes, borrowed until client_rest(). Without bytes, the stored ones are read again. */
void client_feed(struct client *c, struct slice bytes);
/* Takes the next piece. Returns false if there is none, or if the client must wait. The caller
 * calls client_body_ended() after handling `end`. */
bool client_next(struct client *c, struct client_input *out);
/* Keeps the bytes not taken. False: no memory; the caller closes. */
bool client_rest(struct client *c);

static inline void client_body_ended(struct client *c)
{
    c->state = CLIENT_ANSWER;
    upload_end(&c->upload);
    if (c->armed != PROXY_CLIENT_WRITE && c->armed != PROXY_CLIENT_SHORT)
        deadline_clear(&c->deadline); /* a pending write (100 Continue) keeps its limit */
}

/* The client closed its half of the connection. Returns true if complete requests are still
 * answered (client-half-close). */
bool client_half_close(struct client *c);

/* Returns how many body bytes may be read straight into their segments; 0: none. */
uint64_t client_direct_bytes(const struct client *c);
/* Stop and continue reading the body. */
void client_hold_body(struct client *c);
void client_resume_body(struct client *c);

/* --- the answer ------------------------------------------------------------------------------ */

/* Gather an answer's head, and pieces of the body, for client_flush() at the event's end. The
 * pieces are borrowed until then. */
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
/* Writes the gathered bytes, as one chunk if the body is `chunked`. With `last`, the end of the
 * chunked body follows. Returns the number of bytes. */
size_t client_flush(struct client *c, bool chunked, bool last);
static inline size_t client_gathered_bytes(const struct client *c)
{
    return client_has_gathered(c) ? c->proxy->clients.gathered.bytes : 0;
}
/* Moves the gathered bytes to the end of `out`; `*head_bytes` grows by the head's size. After
 * ERR_NOMEM nothing has changed. */
MUST_USE int client_gather_keep(struct client *c, struct buf *out, size_t *head_bytes);
/* Puts a head (empty: none) and a piece of the body before the gathered pieces. */
void client_gather_front(struct client *c, struct slice head, struct slice body);
/* Drops the gathered bytes. */
void client_discard(struct client *c);

/* Writes as much as the kernel accepts and queues the rest. After an error the connection closes
 * later. */
void client_write(struct client *c, const struct slice *pieces, unsigned count);
/* The queued bytes are written. */
void client_written(struct client *c);
/* Returns true if too many bytes are queued for the peer: stop producing. */
static inline bool client_congested(const struct client *c)
{
    return c->out_bytes > PROXY_OUT_BYTES_HIGH;
}

/* Counts dropped bytes of a peer with an answer. False: too many; close. */
bool client_linger(struct client *c, size_t bytes);

/* The exchange is gone after a whole answer. */
void client_answered(struct client *c);
/* The exchange is gone after a cut answer. The queued bytes are still written, then the connection
 * closes. `by_reset`: the connection's plain end would pass for the end of the answer. */
void client_answer_cut(struct client *c, bool by_reset);

/* --- the end --------------------------------------------------------------------------------- */

/* Closes now; there is no exchange any more. `reset`: the connection's plain end would pass for the
 * end of the answer. */
void client_close(struct client *c, bool reset);
/* The client port is closed. On an idle connection a request may still arrive, sent before the
 * close became visible to the peer. The router waits PROXY_PARTING_MS for such a request, and
 * PROXY_FRESH_MS on a new connection. */
void client_drain(struct client *c);

#endif
