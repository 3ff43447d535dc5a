/* Whether routers hold the same, by the digests that each of them publishes
 * (node_replication_digests_json, which writes this format):
 *
 *   {"registry": "16 hex digits", "reports": "...", "poison": "...", "floor": 117, "now": 240,
 *    "index": [{"generation": 118, "digest": "..."}, ...]}
 *
 * `hears` (name -> milliseconds since that one was heard, or null) says whom the router hears; it
 * is for people, as `whole_index` is. `"ready": false` says that the router has not taken over the
 * state yet, so it does not hold all of it. Members of other names are passed over, as `log` is,
 * which older routers compare. A generation that is not listed is empty.
 * Generations below the greatest floor of all are not compared: some router has forgotten already
 * what others still hold, which is no disagreement (crdt/index.h). Where one's floor is above all
 * that another keeps (its `now` + 1), nothing is compared, which is no agreement either.
 */
#ifndef NODE_CLUSTER_DIGESTS_H
#define NODE_CLUSTER_DIGESTS_H

#include <stdbool.h>

#include "base/json_write.h"
#include "base/slice.h"

enum node_digest_class {
    NODE_DIGEST_REGISTRY,
    NODE_DIGEST_REPORTS,
    NODE_DIGEST_POISON, /* where it is left out, there is none */
    NODE_DIGEST_INDEX,
    NODE_DIGEST_CLASSES,
};
/* Beside the classes in what differs: a router joins; there is nothing in the index to compare. */
enum {
    NODE_DIGESTS_JOINING = 1 << NODE_DIGEST_CLASSES,
    NODE_DIGESTS_INCOMPARABLE = NODE_DIGESTS_JOINING << 1,
};

/* `nodes`: a JSON object, member name -> digests, as node_replication_ask() gives it. Bits
 * 1 << class of what is not the same everywhere; 0: all is equal. A member that did not answer, or
 * left a class out, differs in it. */
unsigned node_digests_differ(struct slice nodes);
/* Writes an array of the names of the classes in such bits. */
void node_digests_differ_write(unsigned differ, struct json_writer *w);
/* Writes an object of the same members, each with its digests, `whole_index`, `ready` and, if they
 * are wanted, `hears` alone, or with the `error` that stands in their place. `silent`: how many
 * have one. False: it is no such object, and what was written is none either. */
bool node_digests_brief_write(struct slice nodes, bool hears, unsigned *silent,
                              struct json_writer *w);

#endif
