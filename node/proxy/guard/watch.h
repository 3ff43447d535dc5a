/* The watchdog: what hangs is noticed, and what is stuck there moves.
 *
 * A few times a second it counts, for each replica, what is under way there and when it showed a
 * sign of life last (node/replica/health.h judges), asks the prober for a sign where none came for
 * a while, and goes through the connections to those that are
 *
 *   stalled, asleep   what has no token moves to another replica that is up and not avoided; where
 *                     there is none it waits on. What has tokens ends after one and a half times
 *                     `watchdog` of silence, unless requests only starve there
 *   down              what has no token moves after WATCH_DEAD_MS of silence, and fails where it
 *                     cannot; what has tokens ends after WATCH_SILENT_MS. But only if the replica
 *                     is dead: its port refuses, or nothing is heard of it. One that says that it
 *                     is not well (a 503) finishes what it has
 *   mute              stalled, and not a byte of anything for WATCH_MUTE_MS: as if it were dead
 *
 * A walk takes time in proportion to the connections of the replica.
 */
#ifndef NODE_PROXY_GUARD_WATCH_H
#define NODE_PROXY_GUARD_WATCH_H

#include "node/proxy/proxy_internal.h"

enum {
    WATCH_EVERY_MS = 250,
    WATCH_DEAD_MS = 1000,   /* of silence without a token, of a dead replica */
    WATCH_SILENT_MS = 5000, /* of silence after a token, of the same */
    WATCH_MUTE_MS = 8000,   /* of silence of everything: no client of a stream waits for longer */
};

/* Called by each tick. */
void watch_tick(struct proxy *proxy);

#endif
