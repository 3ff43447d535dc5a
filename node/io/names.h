/* Names of hosts and their addresses for the proxy (node/proxy/net.h), by DNS
 * (node/io/lookup.h). */
#ifndef NODE_IO_NAMES_H
#define NODE_IO_NAMES_H

#include <uv.h>

#include "base/err.h"
#include "node/proxy/net.h"

struct tls_host;

/* These are actions of struct net_actions. */
MUST_USE int names_open(void *shell, const struct node_address *address, struct net_host **out,
                        unsigned *count);
bool names_resolve(struct net_host *host);
void names_ip(const struct net_host *host, unsigned address, char out[NET_IP_BYTES]);
void names_close(struct net_host *host);

/* Returns the host's TLS state; NULL: no TLS. */
struct tls_host *names_tls(const struct net_host *host);
/* Returns an address of the host. */
const struct sockaddr *names_address(const struct net_host *host, unsigned address);

#endif
