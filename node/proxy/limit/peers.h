/* Counts each client's open connections, by IP address. All IPv6 addresses of a /64 count as one
 * client, because every site has at least a /64 (RFC 6177). */
#ifndef NODE_PROXY_LIMIT_PEERS_H
#define NODE_PROXY_LIMIT_PEERS_H

#include "base/err.h"
#include "base/hash.h"

/* An address with an open connection. */
struct peers_client {
    struct peers_client *next; /* in the bucket */
    uint64_t address[2];
    unsigned open;
};

struct peers_bucket {
    struct peers_client *first;
};

struct peers {
    struct peers_bucket *buckets; /* owned; NULL: connections are not counted */
    size_t mask;                  /* number of buckets - 1 */
    size_t count;                 /* addresses with connections */
    struct hash_secret secret;
};

/* Makes an empty table. `most`: the expected number of addresses. With more, look-ups become
 * slower. ERR_NOMEM. */
MUST_USE int peers_init(struct peers *peers, uint64_t most, const struct hash_secret *secret);
/* Called when all connections are closed. */
void peers_free(struct peers *peers);

/* Counts another connection from the address, which is text. Returns NULL if the text is no
 * address, or if there is no memory. */
struct peers_client *peers_enter(struct peers *peers, const char *address);
void peers_leave(struct peers *peers, struct peers_client *peer);

#endif
