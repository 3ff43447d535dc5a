/* One accepted connection, on the client port or the admin port: takes requests from its bytes one
 * after the other, gathers and writes answers, and knows when its peer is slow or gone.
 *
 *   HEAD ──> BODY ──> ANSWER ──> HEAD ...        requests of a pipeline wait in `in`
 *     └────────┴────────┴──> LINGER ──> closed   after an error the peer may still be sending
 *
 * One exchange at a time. Bytes that come while an answer is on its way (a pipeline) are held up to
 * one head's limit; beyond that the stream is not read. Reading goes on while an answer is awaited,
 * because that is how a client that went away is noticed.
 *
 * It does not know what an exchange does: proxy.c takes requests out of it for the exchange, which
 * writes its answer into it.
 */
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
    enum proxy_limit armed; /* the limit that `deadline` waits for, while it does */
    bool reading;
    bool writing;
    bool waiting;           /* it stands in proxy->clients.waiting */
    bool asked;             /* a request came, so it is known what the client did last */
    bool taking;            /* between client_feed() and client_rest() */
    bool begun;             /* `window` began with a part of a head */
    bool too_large;         /* what came does not fit behind what is held */
    bool last;              /* close after the present answer */
    bool surplus;           /* refused at the door: its answer says so and counts as no request */
    bool awaits_header;     /* a PROXY header comes first (http/proxy_header.h) */
    bool lingering;         /* the answer is an error: let the peer finish talking */
    bool ended;             /* the present answer is complete, but not all of it is written */
    bool reset_at_end;      /* the answer was cut and only a reset can tell */
    bool half_closed;       /* it sends no more, and gets the answers to what it has sent */
    enum client_end broken; /* writing is over, for that reason; DONE: it is not */

    struct buf in;       /* unparsed: part of a head, or a pipeline */
    struct buf held;     /* the same while it is taken from: `window` is in it */
    struct slice window; /* what is left to take */
    struct http_progress progress;
    bool parsed_once; /* of the head in `in`: look for its end before parsing again */
    enum client_standing standing;
    struct peers_client *from; /* whose connection it is counted as; NULL: nobody's */
    uint64_t lingered;         /* bytes that came in state LINGER */
    struct exchange *exchange;
    enum http_framing framing; /* of the body being read */
    uint64_t remaining;
    struct http_chunked chunked;
    const char *room;     /* memory that the network reads a body into; NULL: none */
    struct upload upload; /* how the body arrives, if not with its head */

    struct segment *out_first; /* what the kernel did not take yet */
    struct segment *out_last;
    size_t out_bytes;

    char peer[48]; /* IP address as text */
};

/* NULL without memory. */
struct client *client_new(struct proxy *p, struct net_stream *stream, enum proxy_port port,
                          const char *peer);
/* After the stream's last event. */
void client_free(struct client *c);
/* Its next request is looked at: it stands in proxy->clients.waiting no more. */
void client_stop_waiting(struct client *c);
/* Arms the limit that the present state asks for. */
void client_arm(struct client *c);

/* --- requests out of its bytes --------------------------------------------------------------- */

/* What client_next() took: a head, a piece of a body, the end of the request; all that are there,
 * in this order. */
struct client_input {
    const struct http_head *head; /* of a new request, good for the call; NULL: none */
    bool has_body;                /* with `head` */
    struct slice body;
    bool end;
    bool header;      /* nothing but a PROXY header, */
    bool identified;  /* which says who the client is */
    bool stranger;    /* no PROXY header where one must be */
    unsigned refused; /* status for what cannot be taken; 0: all is well */
    const char *refusal;
    const char *limit; /* the setting that it comes from; NULL: none */
};

/* New bytes, borrowed until client_rest(); or none, to look at those that are held. */
void client_feed(struct client *c, struct slice bytes);
/* Takes the next piece; false: there is none, or it is not its turn. The caller says
 * client_body_ended() when it has taken notice of `end`. */
bool client_next(struct client *c, struct client_input *out);
/* Keeps what was not taken. False: there is no memory for it, close. */
bool client_rest(struct client *c);

static inline void client_body_ended(struct client *c)
{
    c->state = CLIENT_ANSWER;
    upload_end(&c->upload);
    if (c->armed != PROXY_CLIENT_WRITE && c->armed != PROXY_CLIENT_SHORT)
        deadline_clear(&c->deadline); /* what is on its way out (100 Continue) stays timed */
}

/* The client closed its half of the connection. True: it gets the answers to the requests that it
 * sent whole (client-half-close). */
bool client_half_close(struct client *c);

/* How much of a body may be read straight to where it belongs; 0: none. */
uint64_t client_direct_bytes(const struct client *c);
/* Body reading is held back, and may go on. */
void client_hold_body(struct client *c);
void client_resume_body(struct client *c);

/* --- the answer ------------------------------------------------------------------------------ */

/* Gathers the head of an answer, and pieces of its body, for one client_flush() at the end of the
 * event. What is gathered is borrowed until then. */
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
/* Writes what is gathered, as one chunk of a `chunked` body, whose end follows if it is the `last`
 * time. Returns how many bytes that were. */
size_t client_flush(struct client *c, bool chunked, bool last);
static inline size_t client_gathered_bytes(const struct client *c)
{
    return client_has_gathered(c) ? c->proxy->clients.gathered.bytes : 0;
}
/* Moves what is gathered behind `out`; `*head_bytes` grows by the head's. ERR_NOMEM: it is as it
 * was. */
MUST_USE int client_gather_keep(struct client *c, struct buf *out, size_t *head_bytes);
/* Puts a head (empty: none) and a piece of the body before what is gathered. */
void client_gather_front(struct client *c, struct slice head, struct slice body);
/* Nothing of what is gathered goes out. */
void client_discard(struct client *c);

/* Writes now what the kernel takes and queues the rest. An error closes later. */
void client_write(struct client *c, const struct slice *pieces, unsigned count);
/* What was queued has gone out. */
void client_written(struct client *c);
/* More is queued than a peer should let pile up: stop producing. */
static inline bool client_congested(const struct client *c)
{
    return c->out_bytes > PROXY_OUT_BYTES_HIGH;
}

/* Bytes of a peer that has its answer are dropped. False: they are too many, close. */
bool client_linger(struct client *c, size_t bytes);

/* The exchange has given its whole answer and is gone. */
void client_answered(struct client *c);
/* The exchange is gone and its answer is cut: what is queued still goes out, then the connection
 * closes, by a reset where its end would pass for the end of the answer. */
void client_answer_cut(struct client *c, bool by_reset);

/* --- the end --------------------------------------------------------------------------------- */

/* Closes now; there is no exchange any more. `reset`: where the end of the connection would pass
 * for the end of the answer. */
void client_close(struct client *c, bool reset);
/* The client port is closed. Where nothing is under way a request may be, sent before the peer
 * heard of the end: it has PROXY_PARTING_MS, and on a connection that was just accepted
 * PROXY_FRESH_MS. */
void client_drain(struct client *c);

#endif
