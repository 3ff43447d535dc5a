/* Whether routers hold the same, by the digests that each of them tells
 * (node_replication_digests_json, which writes this format):
 *
 *   {"registry": "16 hex digits", "log": "...", "reports": "...", "floor": 117, "now": 240,
 *    "index": [{"generation": 118, "digest": "..."}, ...]}
 *
 * Members of other names are passed over. A generation that is not listed is empty. Generations
 * below the greatest floor of all are not compared: there somebody has forgotten already what
 * others still hold, which is no disagreement (crdt/index.h).
 */
#ifndef NODE_CORE_DIGESTS_H
#define NODE_CORE_DIGESTS_H

#include <stdbool.h>

#include "base/slice.h"

/* `nodes`: a JSON object, member name -> digests, as node_replication_ask() gives it. A member that
 * did not answer, or did not tell all classes, counts as different. */
bool node_digests_equal(struct slice nodes);

#endif
