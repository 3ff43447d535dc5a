/* Versions of the protocol: all that routers send each other above the base.
 *
 * The *base* is understood for ever: the handshake, and the frames ALIVE, MEMBERS, PING, ACK and
 * FULL (gossip/frame.h). It only grows at its end. So routers that share no version still know of
 * each other. Deltas, messages and calls are of a version. Each side says the least and the
 * greatest that it speaks, and both use the greatest that is common (0: there is none, they do not
 * understand each other).
 *
 * Most changes need no version: a field at the end of a record, section or frame, and a new kind of
 * them, are skipped by who does not know them. GREATEST is raised where that is not enough:
 *
 *   - a field in the middle, another meaning or another unit of what is there;
 *   - another rule by which states join, or another hash behind a digest or an id;
 *   - something that is only right if all who receive it act on it.
 *
 * LEAST follows a release later: a build speaks its own version and the one before, so that a
 * rolling upgrade works from each release to the next. docs/replication.md has the table.
 */
#ifndef GOSSIP_VERSION_H
#define GOSSIP_VERSION_H

#include <stdint.h>

#include "base/bug.h"

enum {
    GOSSIP_VERSION_LEAST = 1,
    GOSSIP_VERSION_GREATEST = 1,
};

/* least 0, greatest 0: a build from before there were versions. */
struct gossip_versions {
    uint16_t least, greatest;
};

/* The greatest version that both speak; 0: none. */
static inline uint16_t gossip_versions_common(struct gossip_versions a, struct gossip_versions b)
{
    uint16_t least = a.least > b.least ? a.least : b.least;
    uint16_t greatest = a.greatest < b.greatest ? a.greatest : b.greatest;
    return greatest >= least || BUG(VERSION_SKIPPED) ? greatest : 0;
}

#endif
