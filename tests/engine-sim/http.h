/* A small HTTP/1.1 server that behaves like uvicorn, the server of the real engines. Idle
 * connections close 5 s after their last answer, a closing client is noticed at once, and each
 * piece of a stream leaves at once. Pure: bytes come in and go out through a carrier, sockets in
 * the daemon (tcp.c), virtual streams in a simulation.
 *
 * One request at a time per connection; pipelined requests wait. The handler answers with
 * sim_http_answer(), or with begin, any number of writes, and end, at once or later. Until then
 * conn->job is the handler's. If the client goes first, on_gone is called with the connection,
 * and the handler must not answer. */
#ifndef TESTS_ENGINE_SIM_HTTP_H
#define TESTS_ENGINE_SIM_HTTP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/deadline.h"
#include "http/chunked.h"
#include "http/head.h"
#include "tests/engine-sim/gzip.h"
#include "tests/engine-sim/journal.h"

enum { SIM_IDLE_MS = 5000, SIM_BODY_BYTES_MAX = 64 << 20 };

struct sim_conn;
struct sim_server;

/* The carrier of the bytes. These functions never call back. */
struct sim_carrier {
    /* Takes all bytes. If some do not go out at once, `writes` of the connection rises, and
     * sim_conn_written() follows. */
    void (*write)(struct sim_conn *c, const struct slice *pieces, unsigned count);
    /* By FIN, or by RST. sim_conn_free() follows. */
    void (*close)(struct sim_conn *c, bool reset);
    /* Connections are refused from now on, or taken again. */
    void (*listen)(struct sim_server *s, bool on);
    /* The clocks: monotonic, and Unix time. */
    uint64_t (*now_ns)(struct sim_server *s);
    double (*unix_s)(struct sim_server *s);
};

/* The end of an idle connection: FIN, RST, or an unsolicited 408 and FIN. */
enum sim_idle_end { SIM_IDLE_CLOSE, SIM_IDLE_RESET, SIM_IDLE_408 };

enum sim_coding { SIM_CODING_NONE, SIM_CODING_IDENTITY, SIM_CODING_GZIP };

struct sim_conn {
    struct sim_server *server;
    void *stream; /* the carrier's */
    struct deadline idle;
    struct sim_conn *prev;
    struct sim_conn *next;
    struct buf in;   /* the request being read or served, and later bytes */
    struct buf body; /* decoded, of a chunked request */
    struct http_head head;
    struct http_chunked chunked;
    size_t request_bytes; /* bytes of `in` that the request being served takes */
    size_t chunked_at;    /* bytes of `in` of which the chunked body is decoded */
    bool reading_body;
    bool continued; /* 100 Continue was sent */
    bool dispatching;
    bool serving;
    bool streaming;
    bool chunks; /* the stream is chunked */
    bool keep_alive;
    bool ends; /* close as soon as everything is written */
    bool closing;
    unsigned writes; /* under way */
    unsigned later_status;
    uint64_t later_ns;      /* when the late answer is due; 0: none */
    void *job;              /* the handler's */
    enum sim_coding coding; /* of the answer, set by the handler before it: Content-Encoding, */
    struct sim_gzip gzip;
    bool by_bytes; /* and each byte of a stream is a separate piece */
    struct sim_entry entry;
};

struct sim_server {
    const struct sim_carrier *carrier;
    void *carrier_context;
    bool listening;
    struct sim_conn *conns;
    unsigned conn_count;
    unsigned later_count; /* answers that wait for their time */
    struct deadline_queue idle;
    uint64_t idle_ms;  /* set before sim_server_init(); 0: SIM_IDLE_MS */
    unsigned idle_end; /* enum sim_idle_end */
    struct sim_journal journal;
    void *context;
    void (*on_request)(void *context, struct sim_conn *conn, struct slice body);
    /* NULL, or called when a head is complete, its body perhaps not. True: answered, and the
     * connection closes. */
    bool (*on_head)(void *context, struct sim_conn *conn);
    void (*on_gone)(void *context, struct sim_conn *conn);
};

/* The carrier and the handlers are set already. */
void sim_server_init(struct sim_server *s);
/* Takes connections from now on, or refuses them. */
void sim_server_listen(struct sim_server *s, bool on);
/* Closes all connections that wait for a request. */
void sim_server_close_idle(struct sim_server *s);
/* When an idle connection must close or a late answer is due (of now_ns(); UINT64_MAX: never), and
 * doing so. */
uint64_t sim_server_due_ns(const struct sim_server *s);
void sim_server_run(struct sim_server *s);

/* --- for the carrier ------------------------------------------------------------------------- */

struct sim_conn *sim_conn_open(struct sim_server *s, void *stream);
/* The place for the next bytes (empty: no memory), and their number. */
struct slice sim_conn_room(struct sim_conn *c);
void sim_conn_received(struct sim_conn *c, size_t n);
/* A write under way is over, or (false) failed. */
void sim_conn_written(struct sim_conn *c, bool well);
/* The peer closed, or the connection broke: closes the connection. */
void sim_conn_lost(struct sim_conn *c);
/* After the connection was closed. */
void sim_conn_free(struct sim_conn *c);

/* --- for the handler ------------------------------------------------------------------------- */

/* `extra`: more header lines, each with CRLF, or NULL. */
void sim_http_answer(struct sim_conn *c, unsigned status, const char *type, struct slice body,
                     const char *extra);
/* An empty answer after that time. */
void sim_http_answer_later(struct sim_conn *c, unsigned status, uint64_t after_ms);
void sim_http_stream_begin(struct sim_conn *c, const char *type);
void sim_http_stream_write(struct sim_conn *c, struct slice bytes);
void sim_http_stream_end(struct sim_conn *c);
/* A 1xx head ahead of the answer's own. */
void sim_http_interim(struct sim_conn *c, unsigned status);
/* Bytes that are no HTTP wherever they come, and the end. */
void sim_http_garbage(struct sim_conn *c);

/* The request is given up: the journal calls it failed, whatever follows of the answer; or
 * rejected, although its status is 200. Its first token is made. */
void sim_http_failed(struct sim_conn *c);
void sim_http_refused(struct sim_conn *c);
void sim_http_first(struct sim_conn *c, uint64_t prompt_tokens, uint64_t cached_tokens);

/* FIN, or RST. on_gone is not called. */
void sim_conn_close(struct sim_conn *c);
void sim_conn_reset(struct sim_conn *c);

#endif
