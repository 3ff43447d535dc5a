/* Replicas' names in the world of a proxy (tests/lib/proxy_world.h), and the look-ups of them. */
#ifndef TESTS_LIB_PROXY_HOSTS_H
#define TESTS_LIB_PROXY_HOSTS_H

#include "tests/lib/proxy_world.h"

/* Actions of struct net_actions. */
int proxy_hosts_open(void *world, const struct node_address *address, struct net_host **out,
                     unsigned *count);
bool proxy_hosts_resolve(struct net_host *host);
void proxy_hosts_close(struct net_host *host);

/* The replica of a name. */
unsigned proxy_hosts_replica(const struct net_host *host);
/* The number of the proxy's address, in the order of discovery, from 1. */
unsigned proxy_hosts_address(const struct net_host *host, unsigned address);
/* The look-up of a replica's name ends, or (`more`) goes on, with these addresses,
 * NET_ADDRESSES_MAX at most. */
void proxy_hosts_resolved(struct proxy_world *w, unsigned replica, const unsigned *addresses,
                          unsigned count, bool more);

#endif
