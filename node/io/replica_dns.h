/* The names of --replica-dns: each address is a replica, named by address and port.
 *
 * A records are queried first, then AAAA records of the same name. Each kind has a separate
 * question, because c-ares reports success for a question about both if only one is answered. If a
 * question fails, the addresses of the kind stay. If all fail, the source fails
 * (node/discover/discover.h). A non-existent name counts as an empty list, because some DNS servers
 * answer so for a service without instances. SRV records have hosts and ports. These hosts are
 * looked up in the same way, REPLICA_DNS_AT_ONCE at a time. */
#ifndef NODE_IO_REPLICA_DNS_H
#define NODE_IO_REPLICA_DNS_H

#include <uv.h>

#include "base/err.h"
#include "node/discover/discover.h"
#include "node/settings/options.h"

enum {
    REPLICA_DNS_AT_ONCE = 16,     /* SRV hosts looked up at the same time */
    REPLICA_DNS_HOSTS_MAX = 1024, /* hosts in a name's SRV records; if there are more, the source
                                   * fails */
    REPLICA_DNS_RETRY_MS = 1000,  /* longest interval between look-ups before the first list */
};

struct replica_dns;

/* Registers a source for each name and starts the look-ups. `options` and `d` are borrowed until
 * replica_dns_free(). ERR_FULL, ERR_NOMEM, ERR_SYNTAX. */
MUST_USE int replica_dns_open(struct replica_dns **out, uv_loop_t *loop,
                              const struct node_options *options, struct discover *d);
/* Begins due look-ups. */
void replica_dns_tick(struct replica_dns *r, uint64_t now_ms);
/* Returns the time of the next look-up; UINT64_MAX: not known before a present look-up ends. */
uint64_t replica_dns_due_ms(const struct replica_dns *r);
/* Begins no more look-ups. */
void replica_dns_stop(struct replica_dns *r);
/* Called after the loop has ended, or never ran. Accepts NULL. */
void replica_dns_free(struct replica_dns *r);

#endif
