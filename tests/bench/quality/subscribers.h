/* KV events in a run: engines' messages on the way, and the readers of Grapevine's routers
 * (node/kv/readers.h), wired as node/node.c and node/proxy/engine/feeds.c do in a daemon. */
#ifndef TESTS_BENCH_QUALITY_SUBSCRIBERS_H
#define TESTS_BENCH_QUALITY_SUBSCRIBERS_H

#include "tests/bench/quality/belief.h"

enum { MESSAGES_KEPT = 4096 }; /* messages of an engine available for replay */

struct subscribers;

/* All routers of the world read; `world` is borrowed. */
struct subscribers *subscribers_open(struct play *p, struct world *world);
/* Call the first before the world is closed, the second after. */
void subscribers_close(struct subscribers *f);
void subscribers_free(struct subscribers *f);
/* Something happened at the engine, or may have, at the world's present time. */
void subscribers_moved(struct subscribers *f, unsigned engine);
/* Adds the counts of speaking readers. */
void subscribers_sum(const struct subscribers *f, struct events_seen *out);
struct beliefs *subscribers_beliefs(const struct subscribers *f);

#endif
