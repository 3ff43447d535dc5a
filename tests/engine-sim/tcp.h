/* The sockets of the daemon: what carries the bytes of its server (http.h), on libuv. */
#ifndef TESTS_ENGINE_SIM_TCP_H
#define TESTS_ENGINE_SIM_TCP_H

#include <uv.h>

#include "tests/engine-sim/http.h"

struct sim_tcp {
    uv_loop_t *loop;
    uv_tcp_t listener;
    struct sim_server *server;
    bool bound;
    char host[64];
    unsigned port;
};

/* The carrier of the server from now on. */
void sim_tcp_init(struct sim_tcp *t, uv_loop_t *loop, struct sim_server *server);
/* Port 0 becomes the one that the kernel picks. A libuv error or 0. */
int sim_tcp_bind(struct sim_tcp *t, const char *host, unsigned port);
/* The server listens from now on. A libuv error or 0. */
int sim_tcp_listen(struct sim_tcp *t);

#endif
