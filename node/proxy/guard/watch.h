/* The watchdog: detects hanging replicas and moves their requests.
 *
 * Ten times a second the watchdog counts the requests at each replica, and finds the last sign of
 * life (node/replica/health.h judges). After a silence the prober asks for such a sign. Then the
 * watchdog walks the connections. Two decisions are largely independent:
 *
 *   without a token   the request *moves* to another replica, up and not avoided, if its own is
 *                     stalled or asleep, or down and silent for WATCH_DEAD_MS. If there is no
 *                     other, the request waits on
 *   begun             the answer is *cut* if nothing shows any work of the engine: no byte of the
 *                     answer for `stall-cut`, and no sign of work on any request
 *                     (node_signs_lost()). Most pauses of engines end by themselves
 *
 * If the process is gone (its port refuses), neither is in doubt. A request without a token moves,
 * or fails, after WATCH_DEAD_MS of silence. An answer with tokens ends after WATCH_SILENT_MS. An
 * unhealthy replica (a 503) finishes its requests, and so does a removed replica.
 *
 * A walk takes time in proportion to the replica's connections. */
#ifndef NODE_PROXY_GUARD_WATCH_H
#define NODE_PROXY_GUARD_WATCH_H

#include "node/proxy/proxy_internal.h"

enum {
    WATCH_EVERY_MS = 100,
    WATCH_DEAD_MS = 1000,   /* silence without a token, if the replica is gone, or down and
                               silent */
    WATCH_SILENT_MS = 5000, /* silence after a token, if the replica is gone */
};

/* Called by each tick. */
void watch_tick(struct proxy *proxy);

#endif
