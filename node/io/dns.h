/* DNS by c-ares, in the loop: addresses of names, and SRV records. /etc/resolv.conf says which
 * servers and search domains, unless servers are given; /etc/hosts is asked first. A resolv.conf
 * that has changed counts from the next question on that finds no other one open.
 *
 * The only file that knows c-ares is dns.c. Answers may come from within the question.
 */
#ifndef NODE_IO_DNS_H
#define NODE_IO_DNS_H

#include <uv.h>

#include "base/err.h"
#include "node/settings/options.h"

enum {
    DNS_TIMEOUT_MS = 2000, /* of the first try at a server; the second has twice that */
    DNS_TRIES = 2,         /* at each server */
    DNS_TEXT_BYTES = 48,   /* of an IP address, with its NUL */
};

enum dns_status {
    DNS_FOUND,
    DNS_NONE,   /* the name has no such record, or is no name */
    DNS_FAILED, /* nobody answered that */
};

struct dns_address {
    char text[DNS_TEXT_BYTES]; /* IPv6 without brackets */
};

struct dns_service {
    char host[NODE_HOST_BYTES];
    uint16_t port;
};

/* `why` says what failed, and `found` has `count` elements, borrowed for the call. `full` is the
 * name that has the addresses, with the search domain that was added; NULL: none has. Not called
 * any more once dns_stop() has begun. */
typedef void (*dns_addresses_done)(void *context, enum dns_status status, const char *why,
                                   const char *full, const struct dns_address *found,
                                   unsigned count);
typedef void (*dns_services_done)(void *context, enum dns_status status, const char *why,
                                  const struct dns_service *found, unsigned count);

struct dns;

/* `servers`: IP[:PORT] each; none: those of the system. ERR_NOMEM; ERR_SYNTAX for servers that
 * c-ares does not take. */
MUST_USE int dns_open(struct dns **out, uv_loop_t *loop, const struct node_strings *servers);
/* The IPv4 (`v6`: the IPv6) addresses of a name. One that ends in a dot is looked up as it is;
 * localhost has IPv4 alone. */
void dns_addresses(struct dns *dns, const char *name, bool v6, dns_addresses_done done,
                   void *context);
/* Its SRV records; priority and weight are left out, and targets of "." (RFC 2782). */
void dns_services(struct dns *dns, const char *name, dns_services_done done, void *context);
/* Closes all sockets; no answer comes any more. */
void dns_stop(struct dns *dns);
/* The loop has ended, or never ran. NULL is fine. */
void dns_free(struct dns *dns);

#endif
