/* A port that clients connect to. It accepts by itself rather than through uv_listen(): beyond the
 * limit on open files libuv closes what waits without a word, and where it cannot open its spare
 * file again it tries for ever (uv__server_io of 1.44). Here what cannot be accepted waits in the
 * kernel, and is tried again after 100 ms, then 200, up to a second.
 */
#ifndef NODE_IO_LISTENER_H
#define NODE_IO_LISTENER_H

#include <uv.h>

#include "base/err.h"
#include "node/proxy/proxy.h"

struct shell;

struct listener {
    uv_poll_t poll;
    uv_check_t check; /* after the reads of a turn of the loop */
    struct shell *shell;
    enum proxy_port port;
    int fd;                    /* -1: closed */
    struct node_address bound; /* with the port that the kernel chose */
    bool shared;               /* with other processes (reuse-port) */
    uint64_t retired_ms;       /* when it may be closed, once that is asked; 0: never was */
    uint64_t resume_ms;        /* when it accepts again; 0: it does */
    uint64_t pause_ms;         /* the last pause */
    uint64_t logged_ms;        /* when a pause was logged; 0: never */
};

/* Opens the port. On an error one line is logged and ERR_UNREACHABLE returned. */
MUST_USE int listener_open(struct listener *l, struct shell *shell, enum proxy_port port,
                           const struct node_address *address);
/* Asked until it is true, before it is closed. A port that other processes share is dealt no new
 * connections from the first time on, and those that are being set up have time to end: closing it
 * would reset them. */
MUST_USE bool listener_retired(struct listener *l, uint64_t now_ms);
/* Takes all connections that the system has set up: closing the port would reset them. */
void listener_accept_waiting(struct listener *l);
/* Once; closing one that never opened does nothing. */
void listener_close(struct listener *l);
/* client-write-timeout is another one: it counts for connections that come from now on. */
void listener_renew(struct listener *l);
void listener_tick(struct listener *l, uint64_t now_ms);
/* It does not accept for now: the tick is needed soon. */
static inline bool listener_waits(const struct listener *l)
{
    return l->resume_ms != 0;
}

#endif
