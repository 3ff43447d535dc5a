/* A look-up of a name: first IPv4 addresses, then IPv6 addresses under the full name of the IPv4
 * answer (node/io/dns.h). Answers are reported separately: if a server is silent for IPv6, a name
 * with IPv4 addresses is not delayed.
 *
 * If there is no answer for a kind (IPv4 or IPv6), the old addresses of the kind stay. If no
 * address of either kind was found, all old addresses stay. */
#ifndef NODE_IO_LOOKUP_H
#define NODE_IO_LOOKUP_H

#include <netinet/in.h>

#include "node/io/dns.h"

enum { LOOKUP_V4, LOOKUP_V6, LOOKUP_KINDS, LOOKUP_ADDRESSES_MAX = 64 /* of each kind */ };

union lookup_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

struct lookup;
/* Called when new addresses came (`more`), and at the end. `error`: the reason why no address was
 * found; NULL: addresses were found. In the last call (not `more`), the function may begin another
 * look-up. */
typedef void (*lookup_done)(struct lookup *l, const char *error, bool more);

struct lookup {
    struct lookup_kind {
        struct lookup *lookup;
        struct dns_question *question; /* NULL: no question is under way */
        enum dns_status status;        /* the question's result, once ended */
        const char *why;
        union lookup_address *at; /* owned: the addresses of the last answer */
        unsigned count;
    } kinds[LOOKUP_KINDS];
    struct dns *dns;
    const char *host; /* borrowed during a look-up */
    uint16_t port;
    lookup_done done;
};

void lookup_init(struct lookup *l, uint16_t port, lookup_done done);
/* Begins a look-up, unless a look-up is under way. `host` is borrowed until the end. Returns false
 * if there is no memory. */
MUST_USE bool lookup_begin(struct lookup *l, struct dns *dns, const char *host);
/* Returns the error of a look-up without addresses: ERR_NOT_FOUND (the name has no address),
 * ERR_TIMEOUT (no server answered), ERR_UNREACHABLE (another failure). */
MUST_USE int lookup_error(const struct lookup *l);
/* Returns address `i` of all kinds together; NULL: there are fewer. */
const union lookup_address *lookup_at(const struct lookup *l, unsigned i);
/* Ends a look-up without calling `done`, and frees all addresses. Must be called before
 * dns_stop(). */
void lookup_end(struct lookup *l);

#endif
