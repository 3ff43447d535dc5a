/* The names of --replica-dns: each address is a replica, named by address and port.
 *
 * A is asked for, then AAAA of the same name, and not both at once: c-ares takes one without the
 * other for a good answer. A question that fails leaves the addresses of its kind as they were.
 * Where none succeeds, the source fails (node/discover/discover.h). A name that is not there has no
 * addresses: some DNS servers say so of a service without instances. SRV records name hosts and
 * ports; these hosts are looked up in the same way, REPLICA_DNS_AT_ONCE at a time.
 */
#ifndef NODE_IO_REPLICA_DNS_H
#define NODE_IO_REPLICA_DNS_H

#include <uv.h>

#include "base/err.h"
#include "node/discover/discover.h"
#include "node/settings/options.h"

enum {
    REPLICA_DNS_AT_ONCE = 16,     /* hosts of SRV records that are looked up at the same time */
    REPLICA_DNS_HOSTS_MAX = 1024, /* hosts of the SRV records of one name; more count as failure */
    REPLICA_DNS_RETRY_MS = 1000, /* or replica-dns-interval, if less, until a name has had a list */
};

struct replica_dns;

/* Registers a source for each name and begins to look them up. `options` and `d` are borrowed until
 * replica_dns_free(). ERR_FULL, ERR_NOMEM, ERR_SYNTAX. */
MUST_USE int replica_dns_open(struct replica_dns **out, uv_loop_t *loop,
                              const struct node_options *options, struct discover *d);
/* Begins what is due. */
void replica_dns_tick(struct replica_dns *r, uint64_t now_ms);
/* When the next look-up begins; UINT64_MAX: when one that is under way has ended. */
uint64_t replica_dns_due_ms(const struct replica_dns *r);
/* No more asking. */
void replica_dns_stop(struct replica_dns *r);
/* The loop has ended, or never ran. NULL is fine. */
void replica_dns_free(struct replica_dns *r);

#endif
