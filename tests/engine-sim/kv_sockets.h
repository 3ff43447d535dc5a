/* The sockets of a publisher (kv_publisher.h), by libzmq in a libuv loop: for each rank one to
 * subscribe to, and perhaps one for replays. */
#ifndef TESTS_ENGINE_SIM_KV_SOCKETS_H
#define TESTS_ENGINE_SIM_KV_SOCKETS_H

#include <uv.h>

#include "tests/engine-sim/kv_publisher.h"

struct sim_kv_sockets;

/* Binds the publisher's ports (for a first rank at port 0 those that the kernel picks), and sets
 * them in the publisher. An error of libzmq, or 0. */
int sim_kv_sockets_open(struct sim_kv_sockets **out, uv_loop_t *loop, struct sim_publisher *p,
                        const char *host);
/* NULL: none. Memory is freed when the loop has run. */
void sim_kv_sockets_close(struct sim_kv_sockets *s);

#endif
