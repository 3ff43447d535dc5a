#include "node/route/share.h"

#include <math.h>

#include "base/check.h"
#include "base/err.h"
#include "node/route/request.h"
#include "node/route/router_internal.h"

/* What was learned is told again when it has changed by more than this share. */
static const double learned_grain = 0.02;

void node_router_names(struct node_router *r, const struct node_replication *names)
{
    r->names = names;
}

/* --- telling -------------------------------------------------------------------------------- */

void node_router_load_advance(struct node_router *r, struct node_replica *k, uint64_t now_ms)
{
    uint64_t before = k->load.prefill_tokens;
    node_load_advance(r->bookings, &k->load, k->tokens_per_s, now_ms);
    if (k->load.prefill_tokens != before)
        node_router_touch(r, (unsigned)(k - r->replicas));
}

static void tell_replica(struct node_router *r, unsigned slot)
{
    const struct node_replica *k = &r->replicas[slot];
    if (k->load.head != NODE_BOOKING_NONE)
        node_replica_set_add(&r->lined, slot);
    struct crdt_load load = {
        .requests = k->load.requests,
        .prefill_tokens = k->load.prefill_tokens,
        .context_tokens = k->load.context_tokens,
        .decoding_tokens = k->load.decoding_tokens,
    };
    struct crdt_sight sight = {
        .configured = k->configured,
        /* To the others it is one that must not be used; they find out themselves what it is. */
        .health = (uint8_t)(k->health == NODE_HEALTH_ROUTER ? NODE_HEALTH_DOWN : k->health),
        .engine = (uint8_t)k->engine,
        .asleep = k->asleep,
    };
    crdt_state_load(r->crdt, slot, &load);
    crdt_state_sight(r->crdt, slot, &sight);
}

static uint32_t to_u32(double x)
{
    return x <= 0 ? 0 : x >= UINT32_MAX ? UINT32_MAX : (uint32_t)llround(x);
}

static uint32_t to_count(uint64_t n)
{
    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

/* What is held, whoever learned it; no defaults. */
static struct crdt_learned learned_of(const struct node_replica *k)
{
    struct crdt_learned l = {
        .cache_tokens = k->cache_tokens,
        .prompt_tokens = k->predicted.prompt_tokens,
        .predicted_tokens = k->predicted.cached_tokens,
        .told = k->predicted.told,
        .grown_ppm = k->grown_ppm,
        .shrunk_ppm = k->shrunk_ppm,
        .rate_samples = to_count(k->rate.samples),
        .pace_samples = to_count(k->pace.samples),
        .bytes_samples = to_count(k->bytes_samples),
    };
    if (k->belief_held) {
        l.believed_ppm = to_u32(k->belief.factor * 1e6);
        l.believed_rkey = k->rkey;
    }
    if (k->rate.samples > 0)
        l.rate = to_u32(k->rate.value);
    if (k->pace.samples > 0) {
        double step_base_s = 1 / k->pace.value;
        l.step_base_ns = to_u32(step_base_s * 1e9);
        l.step_context_fs = to_u32(k->step_growth * step_base_s * 1e15);
    }
    if (k->bytes_samples > 0)
        l.bytes_per_token_milli = to_u32(node_ratio_value(&k->bytes_per_token) * 1000);
    return l;
}

static bool moved(uint64_t before, uint64_t now)
{
    return fabs((double)now - (double)before) > learned_grain * (double)before;
}

static bool learned_moved(const struct crdt_learned *a, const struct crdt_learned *b)
{
    if (a->prompt_tokens != b->prompt_tokens || a->told != b->told)
        return true;
    /* Samples that only grow in number matter while there are few. */
    return moved(a->cache_tokens, b->cache_tokens) || moved(a->believed_ppm, b->believed_ppm) ||
           a->believed_rkey != b->believed_rkey || moved(a->rate, b->rate) ||
           b->rate_samples > 2ull * a->rate_samples || moved(a->step_base_ns, b->step_base_ns) ||
           moved(a->step_context_fs, b->step_context_fs) ||
           b->pace_samples > 2ull * a->pace_samples || b->bytes_samples > 2ull * a->bytes_samples ||
           moved(a->bytes_per_token_milli, b->bytes_per_token_milli);
}

static void tell_learned(struct node_router *r, uint64_t now_ms)
{
    if (now_ms < r->learned_ms + NODE_LEARNED_INTERVAL_MS)
        return;
    r->learned_ms = now_ms;
    for (unsigned slot = 0; slot < r->replica_count; slot++) {
        struct node_replica *k = &r->replicas[slot];
        struct crdt_learned learned = learned_of(k);
        if (!learned_moved(&k->reported, &learned))
            continue;
        k->reported = learned;
        crdt_state_learned(r->crdt, slot, &learned);
    }
}

/* Answers that are not streamed leave the line by themselves: their gauges fall without an event.
 */
static void lines_advance(struct node_router *r, uint64_t now_ms)
{
    for (unsigned word = 0; word < NODE_REPLICA_WORDS; word++) {
        for (uint64_t bits = r->lined.words[word]; bits != 0; bits &= bits - 1) {
            unsigned slot = word * 64 + (unsigned)__builtin_ctzll(bits);
            struct node_replica *k = &r->replicas[slot];
            node_router_load_advance(r, k, now_ms);
            if (k->load.head == NODE_BOOKING_NONE)
                node_replica_set_remove(&r->lined, slot);
        }
    }
}

static void on_collect(void *context, uint64_t now_ms)
{
    struct node_router *r = context;
    lines_advance(r, now_ms);
    for (unsigned word = 0; word < NODE_REPLICA_WORDS; word++) {
        uint64_t bits = r->touched.words[word];
        r->touched.words[word] = 0;
        for (; bits != 0; bits &= bits - 1)
            tell_replica(r, word * 64 + (unsigned)__builtin_ctzll(bits));
    }
    tell_learned(r, now_ms);
}

/* --- taking in ------------------------------------------------------------------------------ */

static void on_joined(void *context)
{
    struct node_router *r = context;
    unsigned count = r->replica_count;
    uint64_t version = r->registry_taken;
    node_router_registry_take(r);
    if (r->replica_count != count || r->registry_taken != version)
        node_router_presence_update(r);
}

void node_router_load_take(struct node_router *r, unsigned replica, uint64_t now_ms)
{
    if (!r->common->replicated)
        return;
    const struct crdt_reports *reports = crdt_state_reports(r->crdt);
    struct crdt_load sum;
    crdt_reports_load_sum(reports, replica, &sum);
    struct node_remote_load remote = {
        .requests = sum.requests,
        .prefill_tokens = sum.prefill_tokens,
        .context_tokens = sum.context_tokens,
        .decoding_tokens = sum.decoding_tokens,
        .prefilled_tokens = crdt_reports_prefilled(reports, replica),
    };
    node_load_remote(&r->replicas[replica].load, &remote, now_ms);
}

void node_router_loads_take(struct node_router *r, uint64_t now_ms)
{
    if (!r->common->replicated)
        return;
    const struct crdt_reports *reports = crdt_state_reports(r->crdt);
    uint64_t version = crdt_reports_load_version(reports);
    if (version == r->loads_taken)
        return;
    r->loads_taken = version;
    for (unsigned slot = 0; slot < r->replica_count; slot++)
        node_router_load_take(r, slot, now_ms);
}

/* What the others say of one replica. */
struct heard {
    const struct node_router *r;
    bool named;
    unsigned up, down;
    enum node_engine engine;
    uint64_t cache_tokens;
    uint32_t rkey;
    struct crdt_learned rate, pace, bytes, belief; /* of the one with most samples */
};

static bool hear(void *context, uint64_t router, const struct crdt_load *load,
                 const struct crdt_sight *sight, const struct crdt_learned *learned)
{
    (void)load;
    struct heard *h = context;
    if (router == h->r->common->self)
        return true;
    if (sight) {
        h->named = h->named || sight->configured;
        h->up += sight->health == NODE_HEALTH_UP && !sight->asleep;
        h->down += sight->health == NODE_HEALTH_DOWN || sight->asleep;
        if (sight->engine <= NODE_ENGINE_OTHER && h->engine == NODE_ENGINE_AUTO)
            h->engine = (enum node_engine)sight->engine;
    }
    if (!learned)
        return true;
    if (learned->cache_tokens > h->cache_tokens)
        h->cache_tokens = learned->cache_tokens;
    if (learned->rate > 0 && learned->rate_samples > h->rate.rate_samples)
        h->rate = *learned;
    if (learned->step_base_ns > 0 && learned->pace_samples > h->pace.pace_samples)
        h->pace = *learned;
    if (learned->bytes_per_token_milli > 0 && learned->bytes_samples > h->bytes.bytes_samples)
        h->bytes = *learned;
    if (learned->believed_ppm > 0 && learned->believed_rkey == h->rkey &&
        learned->prompt_tokens >= h->belief.prompt_tokens)
        h->belief = *learned;
    return true;
}

/* Strictly more samples, or it may be an echo of what is held here. */
static void believe(struct node_replica *k, const struct heard *h, uint64_t now_ms)
{
    if (h->cache_tokens != k->cache_tokens_heard && k->cache_tokens == 0)
        k->belief.stale = true;
    k->cache_tokens_heard = h->cache_tokens;
    if (h->rate.rate_samples > k->rate.samples)
        node_replica_rate_hear(k, h->rate.rate, h->rate.rate_samples, now_ms);
    if (h->pace.pace_samples > k->pace.samples)
        node_replica_pace_hear(k, h->pace.step_base_ns * 1e-9, h->pace.step_context_fs * 1e-15,
                               h->pace.pace_samples, now_ms);
    if (h->bytes.bytes_samples > k->bytes_samples)
        node_replica_bytes_believe(k, h->bytes.bytes_per_token_milli / 1000.0,
                                   h->bytes.bytes_samples);
    /* To begin with: from then on what moves others' factors moves this one too. */
    if (!k->belief_held && h->belief.believed_ppm > 0) {
        node_belief_factor_set(&k->belief, h->belief.believed_ppm / 1e6);
        k->belief_held = true;
        k->belief.stale = true;
    }
}

void node_router_others_take(struct node_router *r, unsigned replica)
{
    const struct crdt_reports *reports = crdt_state_reports(r->crdt);
    struct node_others others = {0};
    for (unsigned i = 0; i < crdt_reports_routers(reports); i++) {
        struct crdt_report row;
        if (!crdt_reports_row(reports, i, CRDT_REPORT_LEARNED, replica, &row) ||
            crdt_reports_is_self(reports, row.router))
            continue;
        const struct crdt_learned *learned = &row.value.learned;
        others.who += hash_mix(row.router ^ hash_mix(row.epoch));
        others.predicted.prompt_tokens += learned->prompt_tokens;
        others.predicted.cached_tokens += learned->predicted_tokens;
        others.predicted.told += learned->told;
        others.grown_ppm += learned->grown_ppm;
        others.shrunk_ppm += learned->shrunk_ppm;
    }
    node_replica_others(&r->replicas[replica], &others);
}

static void on_reports(void *context, uint64_t now_ms)
{
    struct node_router *r = context;
    const struct crdt_reports *reports = crdt_state_reports(r->crdt);
    uint64_t version = crdt_reports_version(reports);
    if (version == r->reports_taken)
        return;
    r->reports_taken = version;
    for (unsigned slot = 0; slot < r->replica_count; slot++) {
        struct node_replica *k = &r->replicas[slot];
        struct heard h = {.r = r, .rkey = k->rkey};
        crdt_reports_each(reports, slot, hear, &h);
        k->named = h.named;
        k->hint = h.up > h.down   ? NODE_HEALTH_UP
                  : h.down > h.up ? NODE_HEALTH_DOWN
                                  : NODE_HEALTH_UNKNOWN;
        if (k->engine == NODE_ENGINE_AUTO && h.engine != NODE_ENGINE_AUTO) {
            k->engine = h.engine;
            node_router_touch(r, slot);
        }
        node_router_others_take(r, slot); /* before a factor is taken that has it in it */
        believe(k, &h, now_ms);
    }
    r->fleet_stale = true;
    node_router_presence_update(r);
}

/* --- stored responses ----------------------------------------------------------------------- */

static uint64_t bind_key(const struct node_router *r, struct slice id)
{
    return hash64(&r->common->secret, id.at, id.len);
}

void node_router_bind(struct node_router *r, struct slice id, unsigned replica)
{
    CHECK(replica < r->replica_count);
    /* Without room for it the other routers ask the replicas in turn. */
    (void)crdt_state_bind(r->crdt, bind_key(r, id), replica);
}

int node_router_bound(const struct node_router *r, struct slice id)
{
    int slot = crdt_state_bound(r->crdt, bind_key(r, id));
    return slot >= 0 && (unsigned)slot < r->replica_count && !r->replicas[slot].absent ? slot : -1;
}

/* --- going back ----------------------------------------------------------------------------- */

void node_router_state_take(struct node_router *r)
{
    r->crdt = node_state_crdt(r->state);
    r->index = node_state_index(r->state);
    r->generation = crdt_index_now(r->index);
}

/* All of the state is taken in, and all of this router reported, as if for the first time. */
static void on_rewound(void *context)
{
    struct node_router *r = context;
    node_router_state_take(r);
    r->registry_taken = r->reports_taken = r->loads_taken = UINT64_MAX;
    r->learned_ms = 0;
    node_router_registry_take(r);
    for (unsigned slot = 0; slot < r->replica_count; slot++) {
        r->replicas[slot].belief.stale = true;
        r->replicas[slot].reported = (struct crdt_learned){0};
        node_router_touch(r, slot);
    }
}

/* --- explaining to another router ----------------------------------------------------------- */

static int on_explain(void *context, struct slice request, uint64_t now_ms, struct buf *out)
{
    struct node_request_copy copy;
    int err = node_request_unpack(&copy, request);
    return err == ERR_OK ? node_router_explain(context, &copy.request, now_ms, out) : err;
}

struct node_replication_user node_router_replication_user(struct node_router *r)
{
    return (struct node_replication_user){
        .context = r,
        .collect = on_collect,
        .joined = on_joined,
        .reports = on_reports,
        .rewound = on_rewound,
        .explain = on_explain,
    };
}
