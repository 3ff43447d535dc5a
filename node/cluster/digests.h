/* Compares the digests published by each router, to find out if all have the same state
 * (node_replication_digests_json writes this format):
 *
 *   {"registry": "16 hex digits", "reports": "...", "poison": "...", "floor": 117, "now": 240,
 *    "index": [{"generation": 118, "digest": "..."}, ...]}
 *
 * `hears` (name -> milliseconds since the router heard this member, or null) and `whole_index` are
 * shown to operators and not compared. `"ready": false` says that the router has no snapshot yet,
 * so the state is incomplete. Other JSON members are ignored, such as `log`, which older routers
 * compare. Generations not listed are empty. Generations below the greatest floor of all routers
 * are not compared: to forget earlier than others is no difference (crdt/index.h). If a router's
 * floor is above another router's `now` + 1, the indexes are incomparable.
 */
#ifndef NODE_CLUSTER_DIGESTS_H
#define NODE_CLUSTER_DIGESTS_H

#include <stdbool.h>

#include "base/json_write.h"
#include "base/slice.h"
#include "gossip/limits.h"

enum node_digest_class {
    NODE_DIGEST_REGISTRY,
    NODE_DIGEST_REPORTS,
    NODE_DIGEST_POISON, /* a missing digest counts as empty */
    NODE_DIGEST_INDEX,
    NODE_DIGEST_CLASSES,
};
/* Further bits: a router is still joining; two indexes have no common generation. */
enum {
    NODE_DIGESTS_JOINING = 1 << NODE_DIGEST_CLASSES,
    NODE_DIGESTS_INCOMPARABLE = NODE_DIGESTS_JOINING << 1,
};

/* Compares the digests in `nodes`, a JSON object: member name -> digests, as given by
 * node_replication_ask(). Returns bits 1 << class for each class in which two members differ; 0:
 * all are equal. A member without an answer, or without a class in the answer, counts as different
 * (poison: as empty). */
unsigned node_digests_differ(struct slice nodes);
/* Writes an array with the names of the classes in `differ`, the result of
 * node_digests_differ(). */
void node_digests_differ_write(unsigned differ, struct json_writer *w);
/* Writes an object: member name -> the member's digests, `whole_index`, `ready` and, if `hears` is
 * set, `hears`; or, if the member has an `error`, only the error. `silent`: the number of members
 * with an error. False: `nodes` is malformed, and so is the output. */
bool node_digests_brief_write(struct slice nodes, bool hears, unsigned *silent,
                              struct json_writer *w);

/* How long ago each router heard each other router. With more than NODE_HEARS_MAX routers no router
 * reports these times. */
enum { NODE_HEARS_MAX = 64 };
struct node_hears {
    unsigned count; /* routers with an answer, or named in another's answer */
    char names[NODE_HEARS_MAX][GOSSIP_NAME_MAX + 1];
    bool answered[NODE_HEARS_MAX];
    /* ms[a][b]: how long ago router a heard router b, in milliseconds. NODE_HEARS_NEVER: a has not
     * heard b, or b is dead for a. NODE_HEARS_UNKNOWN: a gives no time. Both are greater than any
     * time. */
    uint32_t ms[NODE_HEARS_MAX][NODE_HEARS_MAX];
};
enum { NODE_HEARS_NEVER = INT32_MAX - 1, NODE_HEARS_UNKNOWN = INT32_MAX };
/* Reads the field `hears` of each member in `nodes`. */
void node_digests_hears(struct slice nodes, struct node_hears *out);

#endif
