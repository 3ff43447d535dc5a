/* DNS by c-ares, in the loop: addresses of names, and SRV records. All questions run concurrently,
 * each with separate timeouts: none waits for another, and a shutdown waits for none.
 *
 * /etc/hosts comes first. A name found there, with whatever kind of address, is not looked up
 * elsewhere, which is also the system's behaviour. Otherwise /etc/resolv.conf gives the servers and
 * search domains, unless servers are configured. A changed resolv.conf applies from the next
 * question on; questions under way end with the old servers.
 *
 * Only dns.c uses c-ares. The callback for a question is never called before the function that asks
 * has returned. */
#ifndef NODE_IO_DNS_H
#define NODE_IO_DNS_H

#include <uv.h>

#include "base/err.h"
#include "node/settings/options.h"

enum {
    DNS_TIMEOUT_MS = 2000, /* timeout of the first try at a server; doubled for the second try */
    DNS_TRIES = 2,         /* tries at each server */
    DNS_TEXT_BYTES = 48,   /* bytes of an IP address as text, with the NUL */
};

enum dns_status {
    DNS_FOUND,
    DNS_NONE,   /* the name has no such record, or is no name */
    DNS_SILENT, /* no server answered */
    DNS_FAILED, /* the look-up failed for any other reason */
};
static inline bool dns_is_unknown(enum dns_status status)
{
    return status >= DNS_SILENT;
}

struct dns_address {
    char text[DNS_TEXT_BYTES]; /* IPv6 without brackets */
};

struct dns_service {
    char host[NODE_HOST_BYTES];
    uint16_t port;
};

/* Receives the answer to a question. `why` is the error in words, and `found` has `count` elements,
 * borrowed for the call. `full` is the name of the addresses, with any added search domain; NULL:
 * no addresses, or addresses from the hosts file. Never called after dns_stop() has begun. */
typedef void (*dns_addresses_done)(void *context, enum dns_status status, const char *why,
                                   const char *full, const struct dns_address *found,
                                   unsigned count);
typedef void (*dns_services_done)(void *context, enum dns_status status, const char *why,
                                  const struct dns_service *found, unsigned count);

struct dns;
/* A question under way. Ends with the call of `done`, dns_forget() or dns_stop(). */
struct dns_question;

/* `servers`: DNS servers as IP[:PORT]; if there are none, the system's servers. ERR_NOMEM;
 * ERR_SYNTAX: c-ares does not accept these servers. */
MUST_USE int dns_open(struct dns **out, uv_loop_t *loop, const struct node_strings *servers);
/* Asks for the IPv4 addresses of a name, or the IPv6 addresses if `v6`. A name with a dot at the
 * end gets no search domain. Returns NULL, and does not call `done`, if there is no memory. */
MUST_USE struct dns_question *dns_addresses(struct dns *dns, const char *name, bool v6,
                                            dns_addresses_done done, void *context);
/* Writes the name to use in the IPv6 question after the IPv4 addresses of `name` were found under
 * `full`, because the same short name may exist in several search domains. */
void dns_other_kind(char out[NODE_HOST_BYTES + 1], const char *name, const char *full);
/* Asks for SRV records. Ignores priorities, weights, and targets of "." (RFC 2782). Returns NULL,
 * and does not call `done`, if there is no memory. */
MUST_USE struct dns_question *dns_services(struct dns *dns, const char *name,
                                           dns_services_done done, void *context);
/* Abandons the question: `done` is not called. */
void dns_forget(struct dns_question *q);
/* Closes all sockets. No answer comes after this. */
void dns_stop(struct dns *dns);
/* Called after the loop has ended, or never ran. Accepts NULL. */
void dns_free(struct dns *dns);

#endif
