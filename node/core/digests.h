/* Whether routers that told their digests (node_replication_digests_json) hold the same. */
#ifndef NODE_CORE_DIGESTS_H
#define NODE_CORE_DIGESTS_H

#include <stdbool.h>

#include "base/slice.h"

/* `nodes`: a JSON object, member name -> digests, as node_replication_ask() gives it. A member that
 * did not answer counts as different. */
bool node_digests_equal(struct slice nodes);

#endif
