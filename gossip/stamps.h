/* The greatest stamp seen from each initiator of a handshake, so that a replayed hello gets no
 * answer.
 *
 * The stamps of a node only rise. The first stamp after a start is the node's epoch in
 * microseconds, which is the wall clock at the start. Each further stamp is greater by 1. So stamps
 * stay behind the clock, and the stamps after the next start are greater. Only stamps of the same
 * node are compared, so clocks of different nodes may differ by any amount.
 *
 * Invariant: the stamps taken from a node with which there was a session only rise. If there was no
 * session yet, or the node was forgotten since, a lower stamp may be taken 30 s after the last
 * stamp. The reason: the higher stamp may be from a replayed hello or from a wrong clock, and then
 * the node would never get an answer. The range of stamps taken before is kept, so no stamp is
 * taken twice, unless the stamps fall back a second time.
 *
 * The table holds GOSSIP_STAMPS_MAX nodes, twice what a cluster may have; only a holder of the key
 * gets into the table. When the table is full, the node with the oldest last hello is dropped. A
 * replayed hello of a node not in the table does get an answer, but only once, because the table
 * then has the stamp. This answer is useless to an attacker: it is not longer than the hello, and
 * cannot be read without the initiator's ephemeral secret. So the session is never confirmed, never
 * seals, and displaces no confirmed session in use.
 *
 * A node restarted with a clock set back gets no answer from members with a stamp from before the
 * restart. A session must then begin from the other side (see session.h). When a member sends the
 * node's earlier epoch, the node's epoch rises a minute above the earlier epoch (gossip_self_rise).
 * A minute is more than the stamps of sixty million hellos, so then all members answer. */
#ifndef GOSSIP_STAMPS_H
#define GOSSIP_STAMPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "gossip/limits.h"

enum {
    GOSSIP_STAMPS_EARLIER_US = 30000000
}; /* time since the last stamp after which a lower stamp may be taken */

/* A zeroed struct has seen no stamps. */
struct gossip_stamps {
    struct gossip_stamps_entry {
        uint64_t node;
        uint64_t first, stamp;         /* least and greatest stamp since a fall back */
        uint64_t old_first, old_stamp; /* least and greatest stamp before that fall back; 0: none */
        uint64_t taken; /* rank of the last stamp among all stamps taken; the node with the lowest
                         * is dropped first */
        uint64_t taken_us;
        bool met; /* there was a session with the node */
    } at[GOSSIP_STAMPS_MAX];
    unsigned count;
    uint64_t taken;
};

/* Takes a stamp. ERR_STALE: the stamp was taken before, or is lower and too early after the last.
 * `met`: there is a session with the node. */
MUST_USE int gossip_stamps_take(struct gossip_stamps *s, uint64_t node, uint64_t stamp, bool met,
                                uint64_t now_us);
/* Notes that there is a session with the node. */
void gossip_stamps_met(struct gossip_stamps *s, uint64_t node);

/* This node forgot the member and will not dial it: sets `met` to false, as if there had been no
 * session. */
void gossip_stamps_forgotten(struct gossip_stamps *s, uint64_t node);

/* The stamp of this node's next hello. `last`: the previous stamp, 0 at first. `epoch_ms`: this
 * node's present epoch. */
uint64_t gossip_stamp_next(uint64_t last, uint64_t epoch_ms);

#endif
