/* The sources of replicas. Each is an adapter (node/io/replica_file.h, node/io/replica_dns.h) and
 * passes a list to node/discover. The replicas of --replica are a source too; their list changes
 * only with the settings. */
#ifndef NODE_IO_SOURCES_H
#define NODE_IO_SOURCES_H

#include <stdint.h>

#include "base/err.h"

struct shell;

/* Registers all sources in the options, and reads those available without waiting. Logs errors. */
MUST_USE int sources_start(struct shell *shell);
/* Applies a new list of --replica. An error is logged, and the old list stays. */
void sources_renew(struct shell *shell);
/* Begins due look-ups and readings. Called by each tick. */
void sources_tick(struct shell *shell);
/* Returns the time of the next tick needed for look-ups. (Files are read each second anyway.) */
uint64_t sources_due_ms(const struct shell *shell);
/* Begins no more look-ups and readings. Present ones end with the loop. */
void sources_stop(struct shell *shell);
/* Called after the loop has ended. */
void sources_free(struct shell *shell);

#endif
