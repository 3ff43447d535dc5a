/* The daemon's sockets: the carrier of the server (http.h), on libuv. */
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

/* Makes `t` the server's carrier. */
void sim_tcp_init(struct sim_tcp *t, uv_loop_t *loop, struct sim_server *server);
/* For port 0 the kernel picks the port. Returns a libuv error or 0. */
int sim_tcp_bind(struct sim_tcp *t, const char *host, unsigned port);
/* The server listens from now on. Returns a libuv error or 0. */
int sim_tcp_listen(struct sim_tcp *t);

#endif
