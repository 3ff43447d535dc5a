/* A small HTTP/1.1 server on libuv that behaves like uvicorn, the server of the real engines:
 * idle connections are closed 5 s after their last answer, a client that closes is noticed at
 * once, each piece of a stream leaves at once.
 *
 * One request at a time per connection; what is pipelined behind it waits. The handler answers
 * with sim_http_answer(), or with begin, any number of writes, and end, at once or later. Until
 * then conn->job is the handler's; if the client goes first, on_gone is called with the
 * connection, and then no answer is to be given.
 */
#ifndef TESTS_ENGINE_SIM_HTTP_H
#define TESTS_ENGINE_SIM_HTTP_H

#include <stdbool.h>
#include <uv.h>

#include "base/buf.h"
#include "http/chunked.h"
#include "http/head.h"

enum { SIM_IDLE_MS = 5000, SIM_BODY_BYTES_MAX = 64 << 20 };

struct sim_server;

struct sim_conn {
    uv_tcp_t tcp; /* first */
    uv_timer_t idle;
    struct sim_server *server;
    struct sim_conn *prev;
    struct sim_conn *next;
    struct buf in;   /* the request being read or served, and what is behind it */
    struct buf body; /* decoded, of a chunked request */
    struct http_head head;
    struct http_chunked chunked;
    size_t request_bytes; /* of `in`, taken by the request being served */
    size_t chunked_at;    /* of `in`, up to where the chunked body was decoded */
    bool reading_body;
    bool continued; /* 100 Continue was sent */
    bool dispatching;
    bool serving;
    bool streaming;
    bool chunks; /* the stream is chunked */
    bool keep_alive;
    bool ends; /* close as soon as everything is written */
    bool closing;
    unsigned handles;
    unsigned writes; /* under way */
    void *job;       /* the handler's */
};

struct sim_server {
    uv_loop_t *loop;
    uv_tcp_t listener;
    bool listening;
    bool bound;
    struct sim_conn *conns;
    unsigned conn_count;
    char address[64];
    unsigned port;
    void *context;
    void (*on_request)(void *context, struct sim_conn *conn, struct slice body);
    void (*on_gone)(void *context, struct sim_conn *conn);
};

/* Binds; port 0 becomes the one that the kernel picks. A libuv error or 0. */
int sim_server_bind(struct sim_server *s, const char *host, unsigned port);
int sim_server_listen(struct sim_server *s);
/* Closes the listening socket: connections are refused until bind and listen. */
void sim_server_refuse(struct sim_server *s);
/* Closes all connections that wait for a request. */
void sim_server_close_idle(struct sim_server *s);

/* `extra`: more header lines, each with CRLF, or NULL. */
void sim_http_answer(struct sim_conn *c, unsigned status, const char *type, struct slice body,
                     const char *extra);
void sim_http_stream_begin(struct sim_conn *c, const char *type);
void sim_http_stream_write(struct sim_conn *c, struct slice bytes);
void sim_http_stream_end(struct sim_conn *c);

/* FIN, or RST. on_gone is not called. */
void sim_conn_close(struct sim_conn *c);
void sim_conn_reset(struct sim_conn *c);

#endif
