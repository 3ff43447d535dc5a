/* The watchdog: what hangs is noticed, and what is stuck there moves.
 *
 * Ten times a second it counts, for each replica, what is under way there and when it showed a
 * sign of life last (node/replica/health.h judges), asks the prober for a sign where none came for
 * a while, and goes through the connections. Two decisions have little to do with each other:
 *
 *   what has no token   *moves* to another replica that is up and not avoided, when its own is
 *                       stalled or asleep, or down and silent for WATCH_DEAD_MS; where there is no
 *                       other it waits on
 *   what has begun      is *cut* when nothing shows that the engine works on: `stall-cut` without a
 *                       byte of it, and without a sign of work of whomever (node_signs_lost()). A
 *                       pause of an engine ends by itself more often than not
 *
 * Where the process is gone (its port refuses) neither is in doubt: what has no token moves, or
 * fails, after WATCH_DEAD_MS of silence, and what has begun ends after WATCH_SILENT_MS. A replica
 * that says that it is not well (a 503) finishes what it has, and so does one that was removed.
 *
 * A walk takes time in proportion to the connections of the replica.
 */
#ifndef NODE_PROXY_GUARD_WATCH_H
#define NODE_PROXY_GUARD_WATCH_H

#include "node/proxy/proxy_internal.h"

enum {
    WATCH_EVERY_MS = 100,
    WATCH_DEAD_MS = 1000, /* of silence without a token, of one that is gone, or down and silent */
    WATCH_SILENT_MS = 5000, /* of silence after a token, of one that is gone */
};

/* Called by each tick. */
void watch_tick(struct proxy *proxy);

#endif
