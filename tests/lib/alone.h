/* Routers without others, for unit tests and benches of the routing. Random numbers are equal in
 * each run. */
#ifndef TESTS_LIB_ALONE_H
#define TESTS_LIB_ALONE_H

#include "node/node.h"

/* A daemon's configuration without options, except for the seed, which is 1. */
struct node_config alone_config(void);
/* The router's clocks begin at 0. Aborts on failure. */
struct node_router *alone_router(const struct node_config *config);
void alone_destroy(struct node_router *r);

#endif
