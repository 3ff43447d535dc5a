/* An operator's labels of a replica. They follow the address, each behind a '#', in any order, each
 * at most once:
 *
 *   http://10.0.0.1:8000#engine=vllm#weight=2#model=Qwen/Qwen3-8B
 *
 *   engine   vllm, sglang or other; default: by probing
 *   weight   0.1 to 100: the share of the work; default 1
 *   model    a served model, if /v1/models does not list it
 *   health   path of the health check, if it differs from the setting
 *   cache-tokens  cache size of each rank, with all tiers (host memory, disks); default: the size
 *            reported by the engine (GPU only)
 *   context  the longest prompt with the answer, in tokens; overrides the model lists
 *   ranks    number of data-parallel ranks (node/replica/rank.h), if the metrics do not show them;
 *            1: a single cache, whatever the metrics show
 *   adapters on-demand: the replica loads requested adapters without an entry in /v1/models
 *   host-header  replica or client: the name in the Host header, if it differs from the
 *            setting
 *   kv-events  address of the KV events, if not discovered, or on another host:
 *            tcp://HOST:PORT?replay=PORT&topic=TEXT (node/kv/source.h); with ranks the first rank's
 *   role     any; prefill and decode are rejected: nothing treats them differently yet */
#ifndef NODE_REPLICA_LABELS_H
#define NODE_REPLICA_LABELS_H

#include "base/slice.h"
#include "node/kv/source.h"
#include "node/replica/terms.h"

#define NODE_WEIGHT_MIN       0.1
#define NODE_WEIGHT_MAX       100.0
#define NODE_CACHE_TOKENS_MAX 1000000000000u /* like the setting of the same name */

struct node_labels {
    enum node_engine engine; /* AUTO: not said */
    bool adapters_on_demand;
    enum node_host_header host_header;
    double weight;           /* 0 counts as 1, so a zeroed struct says nothing */
    uint64_t cache_tokens;   /* cache size of each rank; 0: not set */
    uint32_t context_tokens; /* 0: not said */
    unsigned ranks;          /* 0: not said */
    struct slice model;      /* borrowed; empty: not said. At most NODE_MODEL_ID_MAX bytes */
    struct slice health;     /* borrowed; empty: not said. At most NODE_HEALTH_PATH_MAX bytes */
    struct slice kv_events;  /* borrowed; empty: not said. At most KV_NAMED_MAX bytes */
};

/* Parses `text`, the part after the first '#'; empty: no labels. The slices of `out` borrow from
 * `text`. Returns NULL, or the error and the right form (a literal); `out` is then unchanged. */
const char *node_labels_parse(struct slice text, struct node_labels *out);

/* Returns NULL if a health check can have this path, else the error and the right form (a
 * literal). */
const char *node_health_path_wrong(struct slice path);

/* Adds a label, by name and value, to `out`: for sources with separate names and values. Returns
 * NULL, or the right form if the label is wrong (a literal). */
const char *node_labels_set(struct node_labels *out, struct slice name, struct slice value);

/* True for the name of a label. */
bool node_labels_known(struct slice name);

/* The weight in use: 1 if none was set. */
static inline double node_labels_weight(const struct node_labels *labels)
{
    return labels->weight > 0 ? labels->weight : 1;
}

struct node_replica;

/* Sets the replica's labels; slices are copied. Returns true if the label of the model changed. */
bool node_replica_say(struct node_replica *k, const struct node_labels *said);

#endif
