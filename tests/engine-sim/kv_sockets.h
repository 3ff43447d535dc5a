/* The sockets of a publisher (kv_publisher.h), by libzmq in a libuv loop: for each rank a socket
 * for subscribers, and perhaps a socket for replays. */
#ifndef TESTS_ENGINE_SIM_KV_SOCKETS_H
#define TESTS_ENGINE_SIM_KV_SOCKETS_H

#include <uv.h>

#include "tests/engine-sim/kv_publisher.h"

struct sim_kv_sockets;

/* Binds the publisher's ports, and sets them in the publisher; if the first rank's port is 0, the
 * kernel picks the ports. Returns an error of libzmq, or 0. */
int sim_kv_sockets_open(struct sim_kv_sockets **out, uv_loop_t *loop, struct sim_publisher *p,
                        const char *host);
/* NULL: none. Memory is freed when the loop has run. */
void sim_kv_sockets_close(struct sim_kv_sockets *s);

#endif
