/* A port for connections. Calls accept() directly instead of uv_listen(). At the limit on open
 * files, libuv silently closes waiting connections, and retries forever if the spare file cannot be
 * reopened (uv__server_io of 1.44). Here, connections wait in the kernel until they can be
 * accepted. The listener tries again after 100 ms, then after twice as long each time, up to a
 * second. */
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
    struct node_address bound; /* with the port chosen by the kernel */
    bool shared;               /* other processes share the port (reuse-port) */
    uint64_t retired_ms;       /* time to close the port; 0: listener_retired() was not called */
    uint64_t resume_ms;        /* end of the present pause; 0: the port accepts */
    uint64_t pause_ms;         /* length of the last pause */
    uint64_t logged_ms;        /* when a pause was last logged; 0: never */
};

/* Opens the port. Logs an error and returns ERR_UNREACHABLE. */
MUST_USE int listener_open(struct listener *l, struct shell *shell, enum proxy_port port,
                           const struct node_address *address);
/* Call repeatedly before closing the port, until the result is true. From the first call on, a port
 * shared with other processes gets no new connections. Handshakes under way get time to end,
 * because closing the port would reset them. */
MUST_USE bool listener_retired(struct listener *l, uint64_t now_ms);
/* Accepts all connections set up by the kernel, because closing the port would reset them. */
void listener_accept_waiting(struct listener *l);
/* Closes the port, once; does nothing for a port never opened. */
void listener_close(struct listener *l);
/* Applies a changed client-write-timeout to connections from now on. */
void listener_renew(struct listener *l);
void listener_tick(struct listener *l, uint64_t now_ms);
/* Returns true while accepting is paused, so that the tick is needed soon. */
static inline bool listener_waits(const struct listener *l)
{
    return l->resume_ms != 0;
}

#endif
