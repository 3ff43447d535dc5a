/* What an operator says of a replica beside its address: labels, each behind its own '#', in any
 * order, each at most once:
 *
 *   http://10.0.0.1:8000#engine=vllm#weight=2#model=Qwen/Qwen3-8B
 *
 *   engine   vllm, sglang or other: what else is found out by probing
 *   weight   0.1 to 100: its share of the work; 1 where nothing is said
 *   model    a model that it serves, where its /v1/models does not say so
 *   health   the path of its health check, where it is not that of the settings
 *   cache-tokens  size of its cache, of each rank, with all its tiers (memory of the host, disks);
 *            else what the engine says of its own memory counts
 *   context  the longest prompt with its answer that it takes, in tokens, whatever its lists say
 *   ranks    how many data-parallel ranks it has (node/replica/rank.h), where its metrics do not
 *            say so; 1: it is one cache, whatever they show
 *   adapters on-demand: it loads adapters that its /v1/models does not list when it is asked for
 *            them
 *   host-header  replica or client: whose name is in the Host of requests, where the settings do
 *            not say it for this one
 *   kv-events  where it publishes its KV events, if it does not say so itself, or on another host:
 *            tcp://HOST:PORT?replay=PORT&topic=TEXT (node/kv/source.h); of ranks that of the first
 *   role     any; prefill and decode are refused: nothing treats them differently yet
 */
#ifndef NODE_REPLICA_LABELS_H
#define NODE_REPLICA_LABELS_H

#include "base/slice.h"
#include "node/kv/source.h"
#include "node/replica/terms.h"

#define NODE_WEIGHT_MIN       0.1
#define NODE_WEIGHT_MAX       100.0
#define NODE_CACHE_TOKENS_MAX 1000000000000u /* as the setting of that name */

struct node_labels {
    enum node_engine engine; /* AUTO: not said */
    bool adapters_on_demand;
    enum node_host_header host_header;
    double weight;           /* 0 counts as 1, so that a zeroed struct says nothing */
    uint64_t cache_tokens;   /* of each rank; 0: not said */
    uint32_t context_tokens; /* 0: not said */
    unsigned ranks;          /* 0: not said */
    struct slice model;      /* borrowed; empty: not said. At most NODE_MODEL_ID_MAX bytes */
    struct slice health;     /* borrowed; empty: not said. At most NODE_HEALTH_PATH_MAX bytes */
    struct slice kv_events;  /* borrowed; empty: not said. At most KV_NAMED_MAX bytes */
};

/* `text` is what stands behind the first '#'; empty: no labels. its slices borrow from it.
 * NULL, or what is wrong with it and would be right (a literal); `out` is then unchanged. */
const char *node_labels_parse(struct slice text, struct node_labels *out);

/* NULL, or what is wrong with the path of a health check and would be right (a literal). */
const char *node_health_path_wrong(struct slice path);

/* One label by its name and value, added to `out`: for sources that have them apart. NULL, or what
 * would be right. */
const char *node_labels_set(struct node_labels *out, struct slice name, struct slice value);

/* The weight to count with: 1 where none was said. */
static inline double node_labels_weight(const struct node_labels *labels)
{
    return labels->weight > 0 ? labels->weight : 1;
}

struct node_replica;

/* What is said of it from now on; slices are copied. Whether its model is another. */
bool node_replica_say(struct node_replica *k, const struct node_labels *said);

#endif
