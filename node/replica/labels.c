#include "node/replica/labels.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "node/replica/replica.h"

static const char *engine_set(struct node_labels *out, struct slice value)
{
    for (enum node_engine e = NODE_ENGINE_VLLM; e <= NODE_ENGINE_OTHER; e++) {
        if (slice_equal(value, slice_of_cstr(node_engine_text(e)))) {
            out->engine = e;
            return NULL;
        }
    }
    return "after # want engine=vllm, engine=sglang or engine=other";
}

/* Sets the weight, written as digits with at most one dot. */
static const char *weight_set(struct node_labels *out, struct slice value)
{
    const char *wrong = "after # want weight= and a number from 0.1 to 100, such as weight=2";
    char text[16];
    unsigned dots = 0;
    for (size_t i = 0; i < value.len; i++) {
        dots += value.at[i] == '.';
        if (value.at[i] != '.' && (value.at[i] < '0' || value.at[i] > '9'))
            return wrong;
    }
    if (value.len == dots || dots > 1 || !slice_to_cstr(value, text, sizeof text))
        return wrong;
    double weight = strtod(text, NULL);
    if (weight < NODE_WEIGHT_MIN || weight > NODE_WEIGHT_MAX)
        return wrong;
    out->weight = weight;
    return NULL;
}

static const char *model_set(struct node_labels *out, struct slice value)
{
    const char *wrong = "after # want model= and the name of a model, at most 255 bytes without "
                        "spaces";
    if (value.len == 0 || value.len > NODE_MODEL_ID_MAX)
        return wrong;
    for (size_t i = 0; i < value.len; i++) {
        if ((unsigned char)value.at[i] <= ' ' || value.at[i] == 0x7f)
            return wrong;
    }
    out->model = value;
    return NULL;
}

const char *node_health_path_wrong(struct slice path)
{
    const char *wrong = "want a path of at most 127 bytes without spaces, such as /health";
    _Static_assert((int)NODE_HEALTH_PATH_MAX == 127, "the text names it");
    if (path.len == 0 || path.len > NODE_HEALTH_PATH_MAX || path.at[0] != '/')
        return wrong;
    for (size_t i = 0; i < path.len; i++) {
        if (path.at[i] <= ' ' || path.at[i] > '~' || path.at[i] == '#')
            return wrong;
    }
    return NULL;
}

static const char *health_set(struct node_labels *out, struct slice value)
{
    if (node_health_path_wrong(value) != NULL)
        return "after # want health= and a path of at most 127 bytes without spaces, such as "
               "health=/health";
    out->health = value;
    return NULL;
}

/* True for a whole number from 1 to `most`; sets *out. */
static bool number_is(struct slice value, uint64_t most, uint64_t *out)
{
    return slice_to_u64(value, out) == ERR_OK && *out > 0 && *out <= most;
}

static const char *cache_tokens_set(struct node_labels *out, struct slice value)
{
    uint64_t tokens = 0;
    if (!number_is(value, NODE_CACHE_TOKENS_MAX, &tokens))
        return "after # want cache-tokens= and a number of tokens, such as cache-tokens=2000000";
    out->cache_tokens = tokens;
    return NULL;
}

static const char *context_set(struct node_labels *out, struct slice value)
{
    uint64_t tokens = 0;
    if (!number_is(value, NODE_CONTEXT_TOKENS_MAX, &tokens))
        return "after # want context= and a number of tokens, such as context=131072";
    out->context_tokens = (uint32_t)tokens;
    return NULL;
}

static const char *ranks_set(struct node_labels *out, struct slice value)
{
    uint64_t ranks = 0;
    _Static_assert((int)NODE_RANKS_MAX == 64, "the text names it");
    if (!number_is(value, NODE_RANKS_MAX, &ranks))
        return "after # want ranks= and a number of data-parallel ranks from 1 to 64, such as "
               "ranks=8";
    out->ranks = (unsigned)ranks;
    return NULL;
}

static const char *adapters_set(struct node_labels *out, struct slice value)
{
    if (!slice_equal(value, SLICE("on-demand")))
        return "after # want adapters=on-demand";
    out->adapters_on_demand = true;
    return NULL;
}

static const char *host_header_set(struct node_labels *out, struct slice value)
{
    bool client = slice_equal(value, SLICE("client"));
    if (!client && !slice_equal(value, SLICE("replica")))
        return "after # want host-header=replica or host-header=client";
    out->host_header = client ? NODE_HOST_CLIENT : NODE_HOST_REPLICA;
    return NULL;
}

static const char *kv_events_set(struct node_labels *out, struct slice value)
{
    struct kv_named named;
    const char *wrong = kv_named_parse(value, &named);
    if (wrong == NULL)
        out->kv_events = value;
    return wrong;
}

static const char *role_set(struct node_labels *out, struct slice value)
{
    (void)out;
    if (slice_equal(value, SLICE("any")))
        return NULL;
    if (slice_equal(value, SLICE("prefill")) || slice_equal(value, SLICE("decode")))
        return "after # want role=any: prefill and decode are not told apart yet";
    return "after # want role=any";
}

static const struct {
    struct slice name;
    const char *(*set)(struct node_labels *out, struct slice value);
} labels[] = {
    {SLICE("engine"), engine_set},
    {SLICE("weight"), weight_set},
    {SLICE("model"), model_set},
    {SLICE("health"), health_set},
    {SLICE("cache-tokens"), cache_tokens_set},
    {SLICE("context"), context_set},
    {SLICE("ranks"), ranks_set},
    {SLICE("adapters"), adapters_set},
    {SLICE("host-header"), host_header_set},
    {SLICE("kv-events"), kv_events_set},
    {SLICE("role"), role_set},
};

enum { LABELS = sizeof labels / sizeof labels[0], LABEL_NONE = LABELS };

static unsigned label_find(struct slice name)
{
    unsigned i = 0;
    while (i < LABELS && !slice_equal(name, labels[i].name))
        i++;
    return i;
}

static const char unknown[] =
    "after # want engine=, weight=, model=, health=, cache-tokens=, "
    "context=, ranks=, adapters=, host-header=, kv-events= or role=, each behind its own #";

bool node_labels_known(struct slice name)
{
    return label_find(name) != LABEL_NONE;
}

const char *node_labels_set(struct node_labels *out, struct slice name, struct slice value)
{
    unsigned label = label_find(name);
    return label == LABEL_NONE ? unknown : labels[label].set(out, value);
}

const char *node_labels_parse(struct slice text, struct node_labels *out)
{
    struct node_labels parsed = {0};
    bool seen[LABELS] = {0};
    bool more = text.len > 0;
    while (more) {
        more = slice_find(text, '#') < text.len;
        struct slice value = slice_cut(&text, '#');
        struct slice name = slice_cut(&value, '=');
        unsigned label = label_find(name);
        if (label == LABEL_NONE)
            return unknown;
        if (seen[label])
            return "after # want each label once";
        seen[label] = true;
        const char *wrong = labels[label].set(&parsed, value);
        if (wrong != NULL)
            return wrong;
    }
    *out = parsed;
    return NULL;
}

/* Copies a label's value to `room`. */
static struct slice kept(struct slice label, char *room, size_t size)
{
    CHECK(label.len <= size);
    if (label.len > 0)
        memcpy(room, label.at, label.len);
    return slice_of(room, label.len);
}

bool node_replica_say(struct node_replica *k, const struct node_labels *said)
{
    bool other = !slice_equal(said->model, k->said.model);
    k->belief.stale |= k->said.cache_tokens != said->cache_tokens;
    k->said = *said;
    k->said.model = kept(said->model, k->model_said, sizeof k->model_said);
    k->said.health = kept(said->health, k->health_said, sizeof k->health_said);
    k->said.kv_events = kept(said->kv_events, k->kv_events_said, sizeof k->kv_events_said);
    k->weight = node_labels_weight(said);
    return other;
}
