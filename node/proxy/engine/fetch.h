/* A small HTTP client for a replica: the GETs of probes, and control requests for engines
 * (node/proxy/own/control.h). Requests follow each other on a kept-alive connection. If the engine
 * closes the connection or answers 408 just as a request arrives, the request is repeated once on a
 * fresh connection. */
#ifndef NODE_PROXY_ENGINE_FETCH_H
#define NODE_PROXY_ENGINE_FETCH_H

#include "node/proxy/engine/pool.h"

enum {
    FETCH_BODY_MAX = 4 * 1024 * 1024,    /* bytes of an answer's body */
    FETCH_CONTROL_BODY_MAX = 256 * 1024, /* bytes of an answer with FETCH_PATIENT: many requests run
                                          * at once */
};

/* The time limits of a request; bits. */
enum {
    FETCH_SLOW = 1,    /* a health check for which the engine generates a token */
    FETCH_QUICK = 2,   /* short connect timeout: the replica is down, and the next try comes soon */
    FETCH_PATIENT = 4, /* a control request: loading weights may take long */
};

/* `err`: 0, ERR_UNREACHABLE (`refused`: the port is closed), ERR_TIMEOUT, ERR_CLOSED, ERR_SYNTAX,
 * ERR_LIMIT, ERR_DENIED, ERR_UNSUPPORTED, ERR_VERSION (TLS: net.h); ERR_FULL, ERR_NOMEM (shortages
 * here, which say nothing about the replica). The body is borrowed for the call. The function may
 * begin a new fetch. */
typedef void (*fetch_done)(void *context, int err, bool refused, unsigned status,
                           struct slice body);

struct fetch_connection;

struct fetch {
    struct pool *pool; /* has the replica's address */
    struct fetch_connection *connection;
    struct deadline deadline;
    fetch_done done;
    void *context;
    bool busy;
    unsigned pace;      /* bits FETCH_* */
    bool reused;        /* sent on a previously idle connection, which may be stale */
    unsigned addresses; /* addresses of the name that failed during this fetch */
    int failed;         /* the error passed to `done` by `deadline`; 0: ERR_TIMEOUT */
    bool refused;
    /* During `done`: the answering router's name; empty: no router answered. */
    char router[PROXY_IDENTITY_BYTES];
};

void fetch_init(struct fetch *f, struct pool *pool, fetch_done done, void *context);

/* Begins a GET. `done` is called later, never within this call. `lines`: more header lines, each
 * with CRLF; they are copied. Must not be called while a fetch is busy. */
void fetch_get(struct fetch *f, struct slice path, struct slice lines, unsigned pace);

/* Any request. All fields are copied. A request with a body must not be repeated, so the caller
 * forces a fresh connection by fetch_cancel(). */
struct fetch_question {
    const char *method;
    struct slice target, lines, body;
    unsigned pace;
};
void fetch_ask(struct fetch *f, const struct fetch_question *q);

/* Closes the connection. `done` is not called any more. */
void fetch_cancel(struct fetch *f);

/* Returns the reason, in words for people, why no answer came. */
const char *fetch_error_text(int err);
/* Returns true if TLS with the replica failed. */
static inline bool fetch_error_is_tls(int err)
{
    return err == ERR_DENIED || err == ERR_UNSUPPORTED || err == ERR_VERSION;
}
/* Writes the answering router's name or pseudonym, with a note if the answering router is this
 * router. */
void fetch_router_text(const struct fetch *f, char *out, size_t size);

#endif
