/* Names of replicas in the world of a proxy (tests/lib/proxy_world.h), and when they are found. */
#ifndef TESTS_LIB_PROXY_HOSTS_H
#define TESTS_LIB_PROXY_HOSTS_H

#include "tests/lib/proxy_world.h"

/* Actions of struct net_actions. */
int proxy_hosts_open(void *world, const struct node_address *address, struct net_host **out,
                     unsigned *count);
bool proxy_hosts_resolve(struct net_host *host, unsigned used);
void proxy_hosts_close(struct net_host *host);

/* Whose name it is. */
unsigned proxy_hosts_replica(const struct net_host *host);
/* The look-up of a replica's name ends. */
void proxy_hosts_resolved(struct proxy_world *w, unsigned replica, unsigned count);

#endif
