/* A small HTTP/1.1 server like uvicorn, the server of the real engines. Idle connections close 5 s
 * after the last answer, a closing client is noticed at once, and each piece of a stream leaves at
 * once. Pure: bytes come in and go out through a carrier, sockets in the daemon (tcp.c), virtual
 * streams in a simulation.
 *
 * A connection serves a single request at a time; pipelined requests wait. The handler answers with
 * sim_http_answer(), or with begin, any number of writes, and end, at once or later. Until then
 * conn->job belongs to the handler. If the client goes first, on_gone is called with the
 * connection, and the handler must not answer. */
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
    /* Takes all bytes. If some do not go out at once, the carrier adds 1 to conn->writes and later
     * calls sim_conn_written(). */
    void (*write)(struct sim_conn *c, const struct slice *pieces, unsigned count);
    /* Closes by FIN, or by RST, and later calls sim_conn_free(). */
    void (*close)(struct sim_conn *c, bool reset);
    /* Refuses connections from now on, or accepts them again. */
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
    void *stream; /* belongs to the carrier */
    struct deadline idle;
    struct sim_conn *prev;
    struct sim_conn *next;
    struct buf in;   /* the request being read or served, and later bytes */
    struct buf body; /* decoded body of a chunked request */
    struct http_head head;
    struct http_chunked chunked;
    size_t request_bytes; /* bytes in `in` of the request being served */
    size_t chunked_at;    /* bytes of `in` decoded so far, of a chunked body */
    bool reading_body;
    bool continued; /* 100 Continue was sent */
    bool dispatching;
    bool serving;
    bool streaming;
    bool chunks; /* the stream is chunked */
    bool keep_alive;
    bool ends; /* close as soon as everything is written */
    bool closing;
    unsigned writes; /* number of unfinished writes */
    unsigned later_status;
    uint64_t later_ns;      /* when the late answer is due; 0: none */
    void *job;              /* belongs to the handler */
    enum sim_coding coding; /* Content-Encoding of the answer, set by the handler beforehand */
    struct sim_gzip gzip;
    bool by_bytes; /* each byte of a stream is a separate piece */
    struct sim_entry entry;
};

struct sim_server {
    const struct sim_carrier *carrier;
    void *carrier_context;
    bool listening;
    struct sim_conn *conns;
    unsigned conn_count;
    unsigned later_count; /* number of late answers not due yet */
    struct deadline_queue idle;
    uint64_t idle_ms;  /* set before sim_server_init(); 0: SIM_IDLE_MS */
    unsigned idle_end; /* enum sim_idle_end */
    struct sim_journal journal;
    void *context;
    void (*on_request)(void *context, struct sim_conn *conn, struct slice body);
    /* NULL, or called when a head is complete, the body perhaps not. True: answered, and the
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
/* When an idle connection must close or a late answer is due, by now_ns(); UINT64_MAX: never.
 * sim_server_run() does both. */
uint64_t sim_server_due_ns(const struct sim_server *s);
void sim_server_run(struct sim_server *s);

/* --- for the carrier ------------------------------------------------------------------------- */

struct sim_conn *sim_conn_open(struct sim_server *s, void *stream);
/* The place for the next bytes (empty: no memory), and their number. */
struct slice sim_conn_room(struct sim_conn *c);
void sim_conn_received(struct sim_conn *c, size_t n);
/* A write ended well, or (false) failed. */
void sim_conn_written(struct sim_conn *c, bool well);
/* The peer closed, or the connection broke: closes the connection. */
void sim_conn_lost(struct sim_conn *c);
/* Call when the carrier has closed the connection. */
void sim_conn_free(struct sim_conn *c);

/* --- for the handler ------------------------------------------------------------------------- */

/* `extra`: more header lines, each with CRLF, or NULL. */
void sim_http_answer(struct sim_conn *c, unsigned status, const char *type, struct slice body,
                     const char *extra);
/* An empty answer after `after_ms`. */
void sim_http_answer_later(struct sim_conn *c, unsigned status, uint64_t after_ms);
void sim_http_stream_begin(struct sim_conn *c, const char *type);
void sim_http_stream_write(struct sim_conn *c, struct slice bytes);
void sim_http_stream_end(struct sim_conn *c);
/* A 1xx head ahead of the answer's head. */
void sim_http_interim(struct sim_conn *c, unsigned status);
/* Bytes that are not HTTP at any point of an answer, and the end. */
void sim_http_garbage(struct sim_conn *c);

/* The journal's result of the request: failed, whatever follows in the answer; or rejected,
 * although the status is 200; or the first token is made. */
void sim_http_failed(struct sim_conn *c);
void sim_http_refused(struct sim_conn *c);
void sim_http_first(struct sim_conn *c, uint64_t prompt_tokens, uint64_t cached_tokens);

/* FIN, or RST. on_gone is not called. */
void sim_conn_close(struct sim_conn *c);
void sim_conn_reset(struct sim_conn *c);

#endif
