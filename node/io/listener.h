/* A port for connections. Calls accept() directly instead of uv_listen(). Beyond the limit on open
 * files libuv silently closes waiting connections, and retries forever if its spare file cannot be
 * reopened (uv__server_io of 1.44). Here, connections that cannot be accepted wait in the kernel.
 * The listener tries again after 100 ms, then 200, up to a second. */
#ifndef NODE_IO_LISTENER_H
#define NODE_IO_LISTENER_H

#include <uv.h>

#include "base/err.h"
#include "node/proxy/proxy.h"

struct shell;

struct listener {
    uv_poll_t poll;
    uv_check_t check; /* runs after the reads of a turn of the loop */
    struct shell *shell;
    enum proxy_port port;
    int fd;                    /* -1: closed */
    struct node_address bound; /* with the port that the kernel chose */
    bool shared;               /* with other processes (reuse-port) */
    uint64_t retired_ms;       /* time to close, after listener_retired() was called; 0: never
                                * called */
    uint64_t resume_ms;        /* time to accept again; 0: accepting */
    uint64_t pause_ms;         /* the last pause */
    uint64_t logged_ms;        /* when a pause was last logged; 0: never */
};

/* Opens the port. After an error, logs a line and returns ERR_UNREACHABLE. */
MUST_USE int listener_open(struct listener *l, struct shell *shell, enum proxy_port port,
                           const struct node_address *address);
/* Called until it returns true, before closing. From the first call on, a port shared with other
 * processes gets no new connections. Connections being set up have time to finish: closing the port
 * would reset them. */
MUST_USE bool listener_retired(struct listener *l, uint64_t now_ms);
/* Accepts all connections that the system has set up: closing the port would reset them. */
void listener_accept_waiting(struct listener *l);
/* Closes the port, once; does nothing for a port never opened. */
void listener_close(struct listener *l);
/* Applies a changed client-write-timeout to connections from now on. */
void listener_renew(struct listener *l);
void listener_tick(struct listener *l, uint64_t now_ms);
/* True while the port does not accept: the tick is needed soon. */
static inline bool listener_waits(const struct listener *l)
{
    return l->resume_ms != 0;
}

#endif
