/* Versions of the protocol. They cover everything sent by routers except the base.
 *
 * All versions share the *base*: the handshake, and the frames ALIVE, MEMBERS, PING, ACK and FULL
 * (gossip/frame.h). Base frames only grow at the end. So routers without a common version still
 * know of each other. Deltas, messages and calls belong to a version. Each side announces the least
 * and the greatest version that it speaks, and both use the greatest common version (0: none, so
 * they do not understand each other).
 *
 * Most changes need no new version: older routers skip unknown kinds, and new fields at the end of
 * a record, section or frame. Other changes raise GREATEST:
 *
 *   - a field in the middle, or another meaning or unit of an existing field;
 *   - another rule by which states join, or another hash for a digest or an id;
 *   - anything only correct if all receivers act on it.
 *
 * LEAST rises one release later: a build speaks the newest version and the version before, so that
 * a rolling upgrade works from each release to the next. gossip/README.md has the table.
 */
#ifndef GOSSIP_VERSION_H
#define GOSSIP_VERSION_H

#include <stdint.h>

#include "base/bug.h"

enum {
    GOSSIP_VERSION_LEAST = 1,
    GOSSIP_VERSION_GREATEST = 1,
};

/* Both 0: a build from before versions. */
struct gossip_versions {
    uint16_t least, greatest;
};

/* The greatest version spoken by both; 0: none. */
static inline uint16_t gossip_versions_common(struct gossip_versions a, struct gossip_versions b)
{
    uint16_t least = a.least > b.least ? a.least : b.least;
    uint16_t greatest = a.greatest < b.greatest ? a.greatest : b.greatest;
    return greatest >= least || BUG(VERSION_SKIPPED) ? greatest : 0;
}

#endif
