/* The sockets of a publisher (kv_publisher.h), by libzmq in a loop of libuv: of each rank one to
 * subscribe to, and perhaps one that answers who asks for messages again. */
#ifndef TESTS_ENGINE_SIM_KV_SOCKETS_H
#define TESTS_ENGINE_SIM_KV_SOCKETS_H

#include <uv.h>

#include "tests/engine-sim/kv_publisher.h"

struct sim_kv_sockets;

/* Binds the ports that the publisher's configuration has, of a first rank at port 0 those that the
 * kernel picks, and tells it which these are. An error of libzmq, or 0. */
int sim_kv_sockets_open(struct sim_kv_sockets **out, uv_loop_t *loop, struct sim_publisher *p,
                        const char *host);
/* NULL: none. Memory goes when the loop has run. */
void sim_kv_sockets_close(struct sim_kv_sockets *s);

#endif
