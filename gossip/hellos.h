/* Limits opened hellos, so that a stream of forged ones does not occupy the loop. Opening one costs
 * some 8 us, refusing one here less than 0.1 us.
 *
 * Two classes with a rate each: hellos from addresses of members and seeds, and all others. Within
 * a class no source takes more than its share. A forger with false sources can keep newcomers out
 * while it sends, but no member and no seed. With a member's or seed's address the forger takes
 * only one share.
 */
#ifndef GOSSIP_HELLOS_H
#define GOSSIP_HELLOS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "gossip/gossip.h"

enum {
    GOSSIP_HELLOS_KNOWN_S = 4000,  /* opened a second at most, from members and seeds */
    GOSSIP_HELLOS_OTHERS_S = 2000, /* from all others */
    GOSSIP_HELLOS_SOURCE_S = 500,  /* from one source of either */
    GOSSIP_HELLOS_SOURCES = 1024,  /* by hash */
    GOSSIP_HELLOS_ADDRESSES = 8192,
};

/* When the next hello of a bucket is due, at its rate. */
struct gossip_hellos_class {
    uint64_t all_us;
    uint64_t source_us[GOSSIP_HELLOS_SOURCES];
};

struct gossip_hellos {
    struct hash_secret secret;
    struct gossip_hellos_class known, others;
    uint64_t addresses[GOSSIP_HELLOS_ADDRESSES]; /* hashes of addresses that are known; 0: free */
    unsigned count;
};

void gossip_hellos_init(struct gossip_hellos *h, uint64_t seed);
/* The addresses of members and seeds anew: cleared, then each. Ports do not count. */
void gossip_hellos_forget(struct gossip_hellos *h);
void gossip_hellos_know(struct gossip_hellos *h, const struct gossip_address *at);
/* True if a hello from there may be opened now. */
bool gossip_hellos_take(struct gossip_hellos *h, const struct gossip_address *from,
                        uint64_t now_us);

#endif
