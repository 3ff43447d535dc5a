/* One accepted connection, on the client port or the admin port: reads heads and bodies, keeps
 * requests in order, writes answers and knows when its peer is slow or gone.
 *
 *   HEAD ──> BODY ──> ANSWER ──> HEAD ...        requests of a pipeline wait in `in`
 *     └────────┴────────┴──> LINGER ──> closed   after an error the peer may still be sending
 *
 * One exchange at a time. Bytes that come while an answer is on its way (a pipeline) are held up to
 * one head's limit; beyond that the socket is not read. Reading goes on while an answer is awaited,
 * because that is how a client that went away is noticed.
 */
#ifndef NODE_IO_CLIENT_H
#define NODE_IO_CLIENT_H

#include "http/chunked.h"
#include "node/io/shell.h"

struct exchange;

/* Why a connection closes, or an answer was cut. */
enum client_end {
    CLIENT_END_DONE,      /* nothing is cut */
    CLIENT_END_GONE,      /* the client closed or reset the connection */
    CLIENT_END_SLOW,      /* it did not send or read in time */
    CLIENT_END_ENGINE,    /* the replica broke off its answer */
    CLIENT_END_NO_MEMORY, /* ours, for what it did not read yet */
    CLIENT_END_REFUSED,   /* the rest of its request was refused while the answer went out */
    CLIENT_END_STOPPED,   /* the daemon ends */
    CLIENT_ENDS,
};

enum client_state { CLIENT_HEAD, CLIENT_BODY, CLIENT_ANSWER, CLIENT_LINGER, CLIENT_CLOSING };

struct client {
    uv_tcp_t tcp;
    uv_write_t write;
    uv_shutdown_t shutdown;
    struct shell *shell;
    struct client *next;
    struct client *prev;
    struct deadline deadline;
    enum shell_port port;
    enum client_state state;
    bool reading;
    bool writing;
    bool asked;             /* a request came, so it is known what the client did last */
    bool pumping;           /* client_pump() is on the stack */
    bool last;              /* close after the present answer */
    bool surplus;           /* beyond connections-max: it gets its 503 and counts as no request */
    bool lingering;         /* the answer is an error: let the peer finish talking */
    bool ended;             /* the present answer is complete, but not all of it is written */
    bool reset_at_end;      /* the answer was cut and only a reset can tell */
    enum client_end broken; /* writing is over, for that reason; DONE: it is not */

    struct buf in; /* unparsed: part of a head, or a pipeline */
    struct http_progress progress;
    bool parsed_once; /* of the head in `in`: look for its end before parsing again */
    struct exchange *exchange;
    enum http_framing framing; /* of the body being read */
    uint64_t remaining;
    struct http_chunked chunked;

    struct segment *out_first; /* what the kernel did not take yet */
    struct segment *out_last;
    size_t out_offset;
    size_t out_bytes;

    char peer[48]; /* IP address as text */
};

/* Takes the connection that waits at the listener. Without memory for it, it is closed: libuv
 * listens no more while one waits. */
void client_accept(struct shell *shell, struct shell_listener *listener);
/* Takes all connections that the system has set up and libuv has not told of: whoever closes the
 * listener without it resets them. */
void client_accept_waiting(struct shell *shell, struct shell_listener *listener);

/* Writes now what the socket takes and queues the rest. An error closes later, from the loop. */
void client_write(struct client *c, const uv_buf_t *iov, unsigned count);

/* More is queued than a peer should let pile up: stop producing; exchange_on_client_drained()
 * tells when to go on. */
static inline bool client_congested(const struct client *c)
{
    return c->out_bytes > SHELL_OUT_BYTES_HIGH;
}

/* The exchange has given its whole answer and is gone. */
void client_answered(struct client *c);
/* The exchange is gone and its answer is cut: what is queued still goes out, then the connection
 * closes, by a reset where its end would pass for the end of the answer. */
void client_answer_cut(struct client *c, bool by_reset);

/* Body reading was held back (client_hold_body) and may go on. */
void client_hold_body(struct client *c);
void client_resume_body(struct client *c);

/* The client port is closed: closes this connection too, if nothing is under way, else after the
 * present answer. The first request of a connection that was just accepted is surely on its way:
 * there is a moment for it. */
void client_drain(struct client *c);

/* Closes at once; the exchange, if any, is told why. */
void client_close(struct client *c, enum client_end why);
/* The same with a reset: where the end of the connection would pass for the end of the answer. */
void client_reset(struct client *c, enum client_end why);

#endif
