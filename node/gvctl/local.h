/* Which router is asked where no --admin names one: that of this machine, by its own settings. So
 * gvctl finds the admin port of a container, a pod or a host, whether it speaks TLS, and the token.
 */
#ifndef NODE_GVCTL_LOCAL_H
#define NODE_GVCTL_LOCAL_H

#include <stdbool.h>

#include "node/gvctl/given.h"

struct command;

/* Fills in the address, the certificate that is believed and the token, as far as the command line
 * and the environment name none. False: what was asked for by name cannot be read, which is
 * printed. */
bool local_find(struct given *g, const struct command *c);

#endif
