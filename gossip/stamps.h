/* The greatest stamp seen of each initiator, so that a replayed hello gets no answer.
 *
 * A stamp only rises per node: gossip_stamp_next() is the wall clock in microseconds, or one more
 * than the last stamp where the clock did not move. Stamps of one node are compared with one
 * another only, so clocks of different nodes may differ by any amount.
 *
 * Invariant: of the nodes in the table, no stamp is taken twice and none below one that was taken.
 *
 * The table holds GOSSIP_STAMPS_MAX nodes, twice what a cluster may have; only a holder of the key
 * gets into it. When it is full the node whose last hello is the oldest goes. A replayed hello of a
 * forgotten node (or after a restart of this one) does get an answer, once; then the table has the
 * stamp again. That opens nothing. The answer is not longer than the hello, and cannot be read
 * without the initiator's ephemeral secret. So the session is never confirmed, never seals, and
 * displaces no confirmed one that is in use.
 *
 * A node that restarts with its clock set back, below its last stamp, gets no answers either until
 * its clock has passed that stamp. A session then begins from the other side (see session.h).
 */
#ifndef GOSSIP_STAMPS_H
#define GOSSIP_STAMPS_H

#include <stdint.h>

#include "base/err.h"
#include "gossip/limits.h"

/* Zeroed: nothing seen. */
struct gossip_stamps {
    struct gossip_stamps_entry {
        uint64_t node;
        uint64_t stamp;
        uint64_t taken; /* its number among all stamps taken: the smallest goes first */
    } at[GOSSIP_STAMPS_MAX];
    unsigned count;
    uint64_t taken;
};

/* Remembers it. ERR_STALE: not above what was seen of this node; nothing changes. */
MUST_USE int gossip_stamps_take(struct gossip_stamps *s, uint64_t node, uint64_t stamp);

/* The stamp of this node's next hello; `last` is the previous one, 0 at first. */
uint64_t gossip_stamp_next(uint64_t last, uint64_t wall_us);

#endif
