/* The greatest stamp seen of each initiator, so that a replayed hello gets no answer.
 *
 * A stamp only rises per node. The first of a life is its epoch in microseconds, which is the wall
 * clock at its start, each further one is one more: so stamps stay behind the clock, and the next
 * life's are above them. Stamps of one node are compared with one another only, so clocks of
 * different nodes may differ by any amount.
 *
 * Invariant: of the nodes in the table that were met, none is taken below one that was taken. Of
 * one with which there was no session yet, or that was forgotten since, an earlier life may begin
 * after a while, below all that was taken: a replayed hello may have brought the high stamp, or a
 * life with a clock ahead of time, and then the node itself would never be answered. What was taken
 * of the later life is kept, so no stamp is taken twice (but where a third life comes).
 *
 * The table holds GOSSIP_STAMPS_MAX nodes, twice what a cluster may have; only a holder of the key
 * gets into it. When the table is full, the node with the oldest last hello goes. A replayed hello
 * of a forgotten node (or of one that this one has not met since it started) does get an answer,
 * once; then the table has the stamp again. That opens nothing. The answer is not longer than the
 * hello, and cannot be read without the initiator's ephemeral secret. So the session is never
 * confirmed, never seals, and displaces no confirmed one that is in use.
 *
 * A node that restarts with its clock set back gets no answers either, from those that know a stamp
 * of its earlier life. A session then begins from the other side (see session.h). As soon as any
 * member tells the node of that life, the node's epoch rises by a minute more (gossip_self_rise).
 * That is above the stamps of a life that sent sixty million hellos; then all members answer. */
#ifndef GOSSIP_STAMPS_H
#define GOSSIP_STAMPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "gossip/limits.h"

enum {
    GOSSIP_STAMPS_EARLIER_US = 30000000
}; /* since the last stamp, and an earlier life may begin */

/* Zeroed: nothing seen. */
struct gossip_stamps {
    struct gossip_stamps_entry {
        uint64_t node;
        uint64_t first, stamp;         /* of the present life: the least and the greatest */
        uint64_t old_first, old_stamp; /* of a later one that was taken before it; 0: none */
        uint64_t taken; /* its number among all stamps taken: the smallest goes first */
        uint64_t taken_us;
        bool met; /* there was a session with it */
    } at[GOSSIP_STAMPS_MAX];
    unsigned count;
    uint64_t taken;
};

/* Remembers it. ERR_STALE: it was taken, or is not above what was, nor begins an earlier life;
 * nothing changes. `met`: there is a session with the node. */
MUST_USE int gossip_stamps_take(struct gossip_stamps *s, uint64_t node, uint64_t stamp, bool met,
                                uint64_t now_us);
/* There is a session with it from now on. */
void gossip_stamps_met(struct gossip_stamps *s, uint64_t node);

/* Nothing is known of it any more, so no session begins from this side: as if it was not met. */
void gossip_stamps_forgotten(struct gossip_stamps *s, uint64_t node);

/* The stamp of this node's next hello; `last` is the previous one, 0 at first. `epoch_ms` is the
 * epoch of its life as it is now. */
uint64_t gossip_stamp_next(uint64_t last, uint64_t epoch_ms);

#endif
