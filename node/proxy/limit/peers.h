/* How many connections each client has open, by address. Of IPv6 a client has a whole /64 (RFC
 * 6177: what one site is given, at least), so those count as one.
 */
#ifndef NODE_PROXY_LIMIT_PEERS_H
#define NODE_PROXY_LIMIT_PEERS_H

#include "base/err.h"
#include "base/hash.h"

/* One address; it lives as long as a connection of it is open. */
struct peers_client {
    struct peers_client *next; /* in its bucket */
    uint64_t address[2];
    unsigned open;
};

struct peers_bucket {
    struct peers_client *first;
};

struct peers {
    struct peers_bucket *buckets; /* owned; NULL: nobody is counted */
    size_t mask;                  /* number of buckets - 1 */
    size_t count;                 /* addresses */
    struct hash_secret secret;
};

/* For about `most` addresses at a time; it holds more, more slowly. ERR_NOMEM. */
MUST_USE int peers_init(struct peers *peers, uint64_t most, const struct hash_secret *secret);
/* There are no connections any more. */
void peers_free(struct peers *peers);

/* Counts one more connection of the address (text). NULL: it is no address, or there is no memory.
 */
struct peers_client *peers_enter(struct peers *peers, const char *address);
void peers_leave(struct peers *peers, struct peers_client *peer);

#endif
