/* Which counters of a peer have been seen: RFC 6479, a ring of bits that slides in whole words.
 *
 * Invariant: a counter is fresh once. One that is GOSSIP_REPLAY_WINDOW or more below the greatest
 * marked is never fresh.
 */
#ifndef GOSSIP_REPLAY_H
#define GOSSIP_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

enum { GOSSIP_REPLAY_WINDOW = 2048, GOSSIP_REPLAY_WORDS = GOSSIP_REPLAY_WINDOW / 64 + 1 };

/* Zeroed: nothing seen. */
struct gossip_replay {
    uint64_t next; /* one more than the greatest seen */
    uint64_t seen[GOSSIP_REPLAY_WORDS];
};

/* Asked before a packet is opened, which is the dearer check. */
bool gossip_replay_fresh(const struct gossip_replay *r, uint64_t counter);
/* Only a counter that is fresh, and only once its packet was authentic. */
void gossip_replay_mark(struct gossip_replay *r, uint64_t counter);

#endif
