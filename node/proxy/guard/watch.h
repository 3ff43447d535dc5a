/* The watchdog: detects hanging replicas and moves their requests.
 *
 * Ten times a second the watchdog counts each replica's requests and finds the replica's last sign
 * of life, by which node/replica/health.h judges the replica. After some silence the prober asks
 * for a sign of life. Then the watchdog walks over the replica's connections:
 *
 *   request without a token   *moves* to a healthy replica if the replica is stalled, asleep, or
 *                             down and silent for WATCH_DEAD_MS. If no replica is healthy, the
 *                             request waits on
 *   answer with tokens        is *cut* if the engine shows no work: no byte of the answer for
 *                             `stall-cut`, and no sign of work on any request
 *                             (node_signs_lost()). Most pauses of engines end by themselves
 *
 * If the port refuses connections, the process is gone. Then a request without a token moves, or
 * fails, after WATCH_DEAD_MS of silence, and an answer with tokens ends after WATCH_SILENT_MS. A
 * replica with an unhealthy check (a 503) finishes the requests under way, and so does a removed
 * replica.
 *
 * A walk takes time in proportion to the replica's connections. */
#ifndef NODE_PROXY_GUARD_WATCH_H
#define NODE_PROXY_GUARD_WATCH_H

#include "node/proxy/proxy_internal.h"

enum {
    WATCH_EVERY_MS = 100,
    WATCH_DEAD_MS = 1000, /* silence after which a request without a token leaves a dead replica */
    WATCH_SILENT_MS = 5000, /* silence after which an answer with tokens of a gone process ends */
};

/* Called by each tick. */
void watch_tick(struct proxy *proxy);

#endif
