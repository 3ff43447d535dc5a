/* Finds the router to ask if no --admin is given: this machine's, from the router's settings. They
 * give the admin port in a container, a pod or a host, whether the port uses TLS, and the token. */
#ifndef NODE_GVCTL_LOCAL_H
#define NODE_GVCTL_LOCAL_H

#include <stdbool.h>

#include "node/gvctl/given.h"

struct command;

/* Fills in the address, the trusted certificate and the token, unless the command line or the
 * environment gives them. Returns false after printing an error if an explicitly named file cannot
 * be read. */
bool local_find(struct given *g, const struct command *c);

#endif
