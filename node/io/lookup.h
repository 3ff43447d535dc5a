/* One look-up of one name: its IPv4 addresses, and then its IPv6 addresses under the full name
 * that IPv4 was found under (node/io/dns.h). They are reported as they come: a server that is
 * silent for IPv6 costs a name with IPv4 nothing.
 *
 * A kind that nobody answered for is as it was. If neither kind was found, both are.
 */
#ifndef NODE_IO_LOOKUP_H
#define NODE_IO_LOOKUP_H

#include <netinet/in.h>

#include "node/io/dns.h"

enum { LOOKUP_V4, LOOKUP_V6, LOOKUP_KINDS, LOOKUP_ADDRESSES_MAX = 64 /* of one kind */ };

union lookup_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

struct lookup;
/* There is something new, or (not `more`) it is over. `error`: why no address was found; NULL: some
 * were. Another look-up may be begun from within, if it is over. */
typedef void (*lookup_done)(struct lookup *l, const char *error, bool more);

struct lookup {
    struct lookup_kind {
        struct lookup *lookup;
        struct dns_question *question; /* NULL: not under way */
        enum dns_status status;        /* of this look-up, when it has ended */
        const char *why;
        union lookup_address *at; /* owned; what was found last */
        unsigned count;
    } kinds[LOOKUP_KINDS];
    struct dns *dns;
    const char *host; /* borrowed while it is under way */
    uint16_t port;
    lookup_done done;
};

void lookup_init(struct lookup *l, uint16_t port, lookup_done done);
/* Begins, if none is under way; `host` is borrowed until it is over. False: no memory. */
MUST_USE bool lookup_begin(struct lookup *l, struct dns *dns, const char *host);
/* For `done` that was given an `error`: ERR_NOT_FOUND (the name has no address), ERR_TIMEOUT (no
 * server answered), ERR_UNREACHABLE (another failure). */
MUST_USE int lookup_error(const struct lookup *l);
/* Address `i` of all kinds together; NULL: it has fewer. */
const union lookup_address *lookup_at(const struct lookup *l, unsigned i);
/* `done` is not called any more. Frees what was found. Before dns_stop(). */
void lookup_end(struct lookup *l);

#endif
