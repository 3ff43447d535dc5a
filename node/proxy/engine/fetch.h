/* A small HTTP client for one replica: the GETs of probes, and requests that steer engines
 * (node/proxy/own/control.h). One after the other, on a connection that is kept while the engine
 * keeps it. If the engine closed it just as it was asked, or said 408 before it closes it, the
 * question is asked once more on a fresh one.
 */
#ifndef NODE_PROXY_ENGINE_FETCH_H
#define NODE_PROXY_ENGINE_FETCH_H

#include "node/proxy/engine/pool.h"

enum {
    FETCH_BODY_MAX = 4 * 1024 * 1024,
    FETCH_CONTROL_BODY_MAX = 256 * 1024, /* with FETCH_PATIENT: many are asked at a time */
};

/* How long it may take; bits. */
enum {
    FETCH_SLOW = 1,    /* a health check that costs the engine a token */
    FETCH_QUICK = 2,   /* connecting, to a replica that is down: it is asked again soon */
    FETCH_PATIENT = 4, /* a deed of the engine's, which may load weights */
};

/* `err`: 0, ERR_UNREACHABLE (`refused`: nobody listens there), ERR_TIMEOUT, ERR_CLOSED, ERR_SYNTAX,
 * ERR_LIMIT, ERR_DENIED, ERR_UNSUPPORTED, ERR_VERSION (TLS: net.h), ERR_FULL, ERR_NOMEM (of our
 * own: nothing is known of the replica). The body is borrowed for the call. A new fetch may be
 * begun from within. */
typedef void (*fetch_done)(void *context, int err, bool refused, unsigned status,
                           struct slice body);

struct fetch_connection;

struct fetch {
    struct pool *pool; /* for the address */
    struct fetch_connection *connection;
    struct deadline deadline;
    fetch_done done;
    void *context;
    bool busy;
    unsigned pace;      /* FETCH_* */
    bool reused;        /* the connection had been idle: it may be stale */
    unsigned addresses; /* of the name that failed in this fetch */
    int failed;         /* what `done` is to be called with, when the deadline comes; 0: timeout */
    bool refused;
    /* During `done`: how the router that answered names itself; empty: no router answered. */
    char router[PROXY_IDENTITY_BYTES];
};

void fetch_init(struct fetch *f, struct pool *pool, fetch_done done, void *context);

/* Begins; `done` follows, never from within this call. `lines` are more header lines, each with its
 * CRLF, copied. Must not be called while busy. */
void fetch_get(struct fetch *f, struct slice path, struct slice lines, unsigned pace);

/* The same of any request. All is copied. The body is not sent twice: on a fresh connection only
 * (fetch_cancel() before). */
struct fetch_question {
    const char *method;
    struct slice target, lines, body;
    unsigned pace;
};
void fetch_ask(struct fetch *f, const struct fetch_question *q);

/* Closes; `done` is not called any more. */
void fetch_cancel(struct fetch *f);

/* For people: what kept the answer away. */
const char *fetch_error_text(int err);
/* TLS with the replica failed. */
static inline bool fetch_error_is_tls(int err)
{
    return err == ERR_DENIED || err == ERR_UNSUPPORTED || err == ERR_VERSION;
}
/* For people: the name of the router that answered, or its pseudonym; and whether it is this one.
 */
void fetch_router_text(const struct fetch *f, char *out, size_t size);

#endif
