/* The sources that replicas come from, each an adapter of its own (node/io/replica_file.h,
 * node/io/replica_dns.h) that hands its list to node/discover. Those of --replica are one source
 * too, whose list never changes. */
#ifndef NODE_IO_SOURCES_H
#define NODE_IO_SOURCES_H

#include <stdint.h>

#include "base/err.h"

struct shell;

/* Registers all sources of the options, and reads those that can be read at once. On an error one
 * line is logged. */
MUST_USE int sources_start(struct shell *shell);
/* The list of --replica is another one. An error is logged, and the old one holds. */
void sources_renew(struct shell *shell);
/* Begins what is due. Called by each tick. */
void sources_tick(struct shell *shell);
/* When the tick is needed for names; files are read in that of each second. */
uint64_t sources_due_ms(const struct shell *shell);
/* No more asking; what is under way ends with the loop. */
void sources_stop(struct shell *shell);
/* The loop has ended. */
void sources_free(struct shell *shell);

#endif
