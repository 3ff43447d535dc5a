/* DNS by c-ares, in the loop: addresses of names, and SRV records. All questions run concurrently,
 * each with its own timeouts: none waits for another, and a shutdown waits for none.
 *
 * /etc/hosts comes first. A name found there, with whatever kind of address, is not looked up
 * elsewhere: the system behaves in the same way. Otherwise /etc/resolv.conf gives the servers and
 * search domains, unless servers are configured. A changed resolv.conf applies from the next
 * question on; questions under way end with their old servers.
 *
 * Only dns.c uses c-ares. No answer arrives before its question's call has returned. */
#ifndef NODE_IO_DNS_H
#define NODE_IO_DNS_H

#include <uv.h>

#include "base/err.h"
#include "node/settings/options.h"

enum {
    DNS_TIMEOUT_MS = 2000, /* of the first try at a server; the second gets twice as long */
    DNS_TRIES = 2,         /* at each server */
    DNS_TEXT_BYTES = 48,   /* of an IP address, with the NUL */
};

enum dns_status {
    DNS_FOUND,
    DNS_NONE,   /* the name has no such record, or is no name */
    DNS_SILENT, /* no server answered */
    DNS_FAILED, /* no answer for another reason */
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

/* Answers a question. `why` is the error, and `found` has `count` elements, borrowed for the call.
 * `full` is the name that has the addresses, including the added search domain; NULL: none, or
 * found in the hosts file. Never called after dns_stop() has begun. */
typedef void (*dns_addresses_done)(void *context, enum dns_status status, const char *why,
                                   const char *full, const struct dns_address *found,
                                   unsigned count);
typedef void (*dns_services_done)(void *context, enum dns_status status, const char *why,
                                  const struct dns_service *found, unsigned count);

struct dns;
/* A question under way: until `done` is called, dns_forget() or dns_stop(). */
struct dns_question;

/* `servers`: IP[:PORT] each; none: the system's. ERR_NOMEM; ERR_SYNTAX for servers that c-ares does
 * not accept. */
MUST_USE int dns_open(struct dns **out, uv_loop_t *loop, const struct node_strings *servers);
/* Asks for the IPv4 (`v6`: the IPv6) addresses of a name. A name that ends in a dot is not
 * completed. NULL: out of memory, and `done` is not called. */
MUST_USE struct dns_question *dns_addresses(struct dns *dns, const char *name, bool v6,
                                            dns_addresses_done done, void *context);
/* Writes the name for the IPv6 question after IPv4 addresses were found under `full`: names of that
 * kind may exist in several search domains. */
void dns_other_kind(char out[NODE_HOST_BYTES + 1], const char *name, const char *full);
/* Asks for SRV records; ignores priority and weight, and targets of "." (RFC 2782). NULL: as
 * above. */
MUST_USE struct dns_question *dns_services(struct dns *dns, const char *name,
                                           dns_services_done done, void *context);
/* Abandons the question: `done` is not called. */
void dns_forget(struct dns_question *q);
/* Closes all sockets; no more answers. */
void dns_stop(struct dns *dns);
/* Called after the loop has ended, or never ran. Accepts NULL. */
void dns_free(struct dns *dns);

#endif
