/* Limits the rate of opened hellos, so that a stream of forged hellos does not occupy the event
 * loop. Opening a hello takes about 8 us, a refusal here less than 0.1 us.
 *
 * There are two classes, each with a rate: hellos from addresses of members and seeds, and all
 * others. Within a class no source address gets more than a fixed share. A forger with false
 * sources can keep newcomers out while it sends, but no member and no seed. A forger with a
 * member's or seed's address gets only the share of this address.
 */
#ifndef GOSSIP_HELLOS_H
#define GOSSIP_HELLOS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "gossip/gossip.h"

enum {
    GOSSIP_HELLOS_KNOWN_S = 4000,  /* hellos a second from members and seeds */
    GOSSIP_HELLOS_OTHERS_S = 2000, /* hellos a second from all other addresses */
    GOSSIP_HELLOS_SOURCE_S = 500,  /* hellos a second per source address */
    GOSSIP_HELLOS_SOURCES = 1024,  /* buckets for source addresses, by hash */
    GOSSIP_HELLOS_ADDRESSES = 8192,
};

/* Times at which the next hello is due at the full rate: of the class, and of each bucket of
 * sources. A hello may come up to half a second before this time (a burst). */
struct gossip_hellos_class {
    uint64_t all_us;
    uint64_t source_us[GOSSIP_HELLOS_SOURCES];
};

struct gossip_hellos {
    struct hash_secret secret;
    struct gossip_hellos_class known, others;
    uint64_t addresses[GOSSIP_HELLOS_ADDRESSES]; /* hash table of known addresses' hashes; 0:
                                                  * free */
    unsigned count;
};

void gossip_hellos_init(struct gossip_hellos *h, uint64_t seed);
/* To update the addresses of members and seeds, call forget(), then know() for each. Ports are
 * ignored. */
void gossip_hellos_forget(struct gossip_hellos *h);
void gossip_hellos_know(struct gossip_hellos *h, const struct gossip_address *at);
/* True if a hello from `from` may be opened now. */
bool gossip_hellos_take(struct gossip_hellos *h, const struct gossip_address *from,
                        uint64_t now_us);

#endif
