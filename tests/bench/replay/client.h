/* A small HTTP/1.1 client on libuv: keep-alive pools per target, one exchange at a time on a
 * connection, answers scanned while they arrive.
 *
 * The caller owns an exchange and the body, and leaves both alone from client_send() until `done`.
 * `done` is called exactly once and may send the next exchange. Times are uv_hrtime(). */
#ifndef TESTS_BENCH_REPLAY_CLIENT_H
#define TESTS_BENCH_REPLAY_CLIENT_H

#include <netinet/in.h>
#include <uv.h>

#include "http/chunked.h"
#include "http/head.h"
#include "tests/bench/replay/answer.h"

enum { CLIENT_TARGETS = 64, CLIENT_BODY_PARTS = 3, CLIENT_READ_BYTES = 256 * 1024 };

struct connection;

struct exchange {
    /* Set by the caller. */
    uv_buf_t body[CLIENT_BODY_PARTS];
    unsigned body_count;
    const char *session; /* value of x-session-id, or NULL */
    void (*done)(struct exchange *ex);

    /* The outcome. */
    char failure[24]; /* empty: a complete answer with status 200 */
    unsigned status;
    char replica[64];                    /* x-grapevine-replica, or the target */
    uint64_t start_ns, first_ns, end_ns; /* first_ns: non-empty content; 0 if none came */
    struct answer answer;

    /* The client's. */
    struct connection *connection;
    size_t target;
    bool retried;
    struct exchange *next, *previous; /* of exchanges under way */
};

struct client_target {
    char name[80]; /* host:port */
    struct sockaddr_storage address;
    struct connection *idle; /* newest first */
};

struct client {
    uv_loop_t *loop;
    struct client_target targets[CLIENT_TARGETS];
    size_t target_count;
    double timeout_s;  /* of a whole exchange */
    double idle_max_s; /* older idle connections are not used again: engines close at 5 s */
    struct exchange *active;
    uint64_t connections_made;
    struct http_head head;
    char read[CLIENT_READ_BYTES];
};

void client_init(struct client *c, uv_loop_t *loop);

/* `url` is http://HOST:PORT. Resolves the name now. Prints a line and returns an error on
 * failure. */
int client_add_target(struct client *c, const char *url);

/* POSTs the body parts to /v1/chat/completions of target number `target`. */
void client_send(struct client *c, struct exchange *ex, size_t target);

/* Fails exchanges past the time limit. Call this about once a second. */
void client_sweep(struct client *c);

/* Closes idle connections; call when nothing is under way. */
void client_close(struct client *c);

void exchange_free(struct exchange *ex);

#endif
