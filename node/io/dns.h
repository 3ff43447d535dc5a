/* DNS by c-ares, in the loop: addresses of names, and SRV records. All questions are under way at
 * the same time, each with timeouts of its own: none waits for another's answer, and the end waits
 * for none.
 *
 * /etc/hosts is asked first. If it has the name, in whatever kind of address, nobody else is
 * asked: so does the system. Else /etc/resolv.conf says which servers and search domains, unless
 * servers are given. A resolv.conf that has changed counts from the next question on; what is
 * under way ends where it began.
 *
 * The only file that knows c-ares is dns.c. No answer comes from within a question.
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

/* `why` says what failed, and `found` has `count` elements, borrowed for the call. `full` is the
 * name that has the addresses, with the search domain that was added; NULL: none has, or the file
 * of hosts. Not called any more once dns_stop() has begun. */
typedef void (*dns_addresses_done)(void *context, enum dns_status status, const char *why,
                                   const char *full, const struct dns_address *found,
                                   unsigned count);
typedef void (*dns_services_done)(void *context, enum dns_status status, const char *why,
                                  const struct dns_service *found, unsigned count);

struct dns;
/* One that is under way: until its `done` is called, it is forgotten, or dns_stop(). */
struct dns_question;

/* `servers`: IP[:PORT] each; none: those of the system. ERR_NOMEM; ERR_SYNTAX for servers that
 * c-ares does not take. */
MUST_USE int dns_open(struct dns **out, uv_loop_t *loop, const struct node_strings *servers);
/* The IPv4 (`v6`: the IPv6) addresses of a name. One that ends in a dot is looked up as it is.
 * NULL: no memory, and `done` is not called. */
MUST_USE struct dns_question *dns_addresses(struct dns *dns, const char *name, bool v6,
                                            dns_addresses_done done, void *context);
/* The name under which to ask for IPv6 when the addresses of IPv4 were found under `full`: search
 * domains may have more than one name of that kind. */
void dns_other_kind(char out[NODE_HOST_BYTES + 1], const char *name, const char *full);
/* Its SRV records; priority and weight are left out, and targets of "." (RFC 2782). NULL: as above.
 */
MUST_USE struct dns_question *dns_services(struct dns *dns, const char *name,
                                           dns_services_done done, void *context);
/* Nobody waits for it any more: `done` is not called. */
void dns_forget(struct dns_question *q);
/* Closes all sockets; no answer comes any more. */
void dns_stop(struct dns *dns);
/* The loop has ended, or never ran. NULL is fine. */
void dns_free(struct dns *dns);

#endif
