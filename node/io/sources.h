/* The sources of replicas, each an adapter of its own (node/io/replica_file.h,
 * node/io/replica_dns.h) that passes its list to node/discover. The replicas of --replica are a
 * source too; their list changes only with the settings. */
#ifndef NODE_IO_SOURCES_H
#define NODE_IO_SOURCES_H

#include <stdint.h>

#include "base/err.h"

struct shell;

/* Registers all sources in the options, and reads those that need no waiting. After an error, logs
 * a line. */
MUST_USE int sources_start(struct shell *shell);
/* Applies a new list of --replica. An error is logged, and the old list stays. */
void sources_renew(struct shell *shell);
/* Begins what is due; called by each tick. */
void sources_tick(struct shell *shell);
/* Returns when the tick is needed for names; files are read in the tick of each second. */
uint64_t sources_due_ms(const struct shell *shell);
/* Begins no more look-ups and readings; present ones end with the loop. */
void sources_stop(struct shell *shell);
/* Called after the loop has ended. */
void sources_free(struct shell *shell);

#endif
