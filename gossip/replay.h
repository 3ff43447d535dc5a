/* Records which packet counters of a peer have been seen, as in RFC 6479: a ring of bits that
 * slides by whole words.
 *
 * Invariant: a marked counter is never fresh again. Nor is a counter GOSSIP_REPLAY_WINDOW or more
 * below the greatest marked counter.
 */
#ifndef GOSSIP_REPLAY_H
#define GOSSIP_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

enum { GOSSIP_REPLAY_WINDOW = 2048, GOSSIP_REPLAY_WORDS = GOSSIP_REPLAY_WINDOW / 64 + 1 };

/* A zeroed struct has seen no counter. */
struct gossip_replay {
    uint64_t next; /* greatest counter seen, plus 1 */
    uint64_t seen[GOSSIP_REPLAY_WORDS];
};

/* True if the counter was not seen and is not too old. Checked before a packet is opened, which
 * costs more. */
bool gossip_replay_fresh(const struct gossip_replay *r, uint64_t counter);
/* Marks a counter as seen. Only call it for a fresh counter of an authentic packet. */
void gossip_replay_mark(struct gossip_replay *r, uint64_t counter);

#endif
