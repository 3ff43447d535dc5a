#include "node/replica/learned.h"

#include <math.h>
#include <stddef.h>

#include "base/check.h"
#include "crdt/reports.h"
#include "node/replica/constants.h"

/* --- figures -------------------------------------------------------------------------------- */

static uint32_t to_u32(double x)
{
    return x <= 0 ? 0 : x >= UINT32_MAX ? UINT32_MAX : (uint32_t)llround(x);
}

static uint32_t to_count(uint64_t n)
{
    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

static void rate_report(const struct node_replica *k, struct crdt_learned *out)
{
    out->rate = to_u32(k->shown.rate.value);
}

static void rate_hear(struct node_replica *k, const struct crdt_learned *in, uint64_t now_ms)
{
    node_speed_hear(&k->shown.rate, in->rate, in->rate_samples, now_ms);
}

static void pace_report(const struct node_replica *k, struct crdt_learned *out)
{
    double step_base_s = 1 / k->shown.pace.value;
    out->step_base_ns = to_u32(step_base_s * 1e9);
    out->step_context_fs = to_u32(RULE(STEP_GROWTH) * step_base_s * 1e15);
}

static void pace_hear(struct node_replica *k, const struct crdt_learned *in, uint64_t now_ms)
{
    node_speed_hear(&k->shown.pace, 1 / (in->step_base_ns * 1e-9), in->pace_samples, now_ms);
}

static void bytes_report(const struct node_replica *k, struct crdt_learned *out)
{
    out->bytes_per_token_milli = to_u32(node_ratio_value(&k->cache.bytes_per_token) * 1000);
}

static void bytes_hear(struct node_replica *k, const struct crdt_learned *in, uint64_t now_ms)
{
    (void)now_ms;
    node_replica_bytes_believe(k, in->bytes_per_token_milli / 1000.0, in->bytes_samples);
}

/* The shared figures that come with a number of samples, a row each. */
static const struct figure {
    size_t own;     /* offset of the number of samples in struct node_replica, uint64_t */
    size_t samples; /* offset of the number of samples in struct crdt_learned, uint32_t */
    size_t field;   /* offset of the figure in struct crdt_learned, uint32_t; a figure of 0: the
                     * router has none */
    void (*report)(const struct node_replica *k, struct crdt_learned *out);
    void (*hear)(struct node_replica *k, const struct crdt_learned *in, uint64_t now_ms);
} figures[] = {
#define OWN(member) offsetof(struct node_replica, member)
#define WIRE(field) offsetof(struct crdt_learned, field)
    {OWN(shown.rate.samples), WIRE(rate_samples), WIRE(rate), rate_report, rate_hear},
    {OWN(shown.pace.samples), WIRE(pace_samples), WIRE(step_base_ns), pace_report, pace_hear},
    {OWN(cache.bytes_samples), WIRE(bytes_samples), WIRE(bytes_per_token_milli), bytes_report,
     bytes_hear},
};
_Static_assert(ARRAY_LEN(figures) <= NODE_HEARD_FIGURES_MAX, "a place for each figure");

static uint64_t own_samples(const struct node_replica *k, const struct figure *f)
{
    return *(const uint64_t *)((const char *)k + f->own);
}

static uint32_t wire_field(const struct crdt_learned *l, size_t field)
{
    return *(const uint32_t *)((const char *)l + field);
}

/* --- sums ----------------------------------------------------------------------------------- */

/* A row for each sum: its field in struct crdt_learned, and its field in struct node_sums. */
#define SUMS(X)                                                                                    \
    X(prompt_tokens, prompt_tokens)                                                                \
    X(predicted_tokens, cached_tokens)                                                             \
    X(told, told)                                                                                  \
    X(void_blocks, void_blocks)                                                                    \
    X(engine_work, work)

void node_others_add(struct node_others *sum, const struct crdt_learned *reported, uint32_t rkey)
{
#define SUM_ADD(field, member) sum->sums.member += reported->field;
    SUMS(SUM_ADD)
    sum->count++;
    if (reported->size_ppm == 0 || reported->believed_rkey != rkey)
        return; /* evidence about another cache */
    double weight = reported->size_weight_milli / 1e3;
    sum->size_log += weight * log(reported->size_ppm / 1e6);
    sum->size_weight += weight;
}

/* --- all figures ---------------------------------------------------------------------------- */

struct crdt_learned node_replica_report(const struct node_replica *k)
{
    struct crdt_learned l = {.cache_tokens = k->told.cache_tokens,
                             .adapter_slots = k->told.adapter_slots};
    if (k->cache.size_learned) {
        l.believed_ppm = to_u32(k->belief.factor * 1e6);
        l.believed_rkey = k->rkey;
        double size, weight;
        node_replica_size_known(k, &size, &weight);
        l.size_ppm = to_u32(size * 1e6);
        l.size_weight_milli = to_u32(weight * 1e3);
    }
    for (unsigned i = 0; i < ARRAY_LEN(figures); i++) {
        uint64_t samples = own_samples(k, &figures[i]);
        *(uint32_t *)((char *)&l + figures[i].samples) = to_count(samples);
        if (samples > 0)
            figures[i].report(k, &l);
    }
#define SUM_REPORT(field, member) l.field = k->cache.sums.member;
    SUMS(SUM_REPORT)
    return l;
}

void node_heard_add(struct node_heard *h, const struct crdt_learned *reported)
{
    if (reported->cache_tokens > h->cache_tokens)
        h->cache_tokens = reported->cache_tokens;
    if (reported->adapter_slots > h->adapter_slots)
        h->adapter_slots = reported->adapter_slots;
    if (reported->believed_ppm > 0 && reported->believed_rkey == h->rkey &&
        (h->belief == NULL || reported->prompt_tokens >= h->belief->prompt_tokens))
        h->belief = reported;
    for (unsigned i = 0; i < ARRAY_LEN(figures); i++) {
        const struct crdt_learned **best = &h->figure[i];
        size_t samples = figures[i].samples;
        if (wire_field(reported, figures[i].field) > 0 &&
            wire_field(reported, samples) > (*best ? wire_field(*best, samples) : 0))
            *best = reported;
    }
}

void node_replica_hear(struct node_replica *k, const struct node_heard *h, uint64_t now_ms)
{
    if (h->cache_tokens != k->told.cache_tokens_heard && k->told.cache_tokens == 0)
        k->belief.stale = true;
    k->told.cache_tokens_heard = h->cache_tokens;
    k->told.adapter_slots_heard = h->adapter_slots;
    for (unsigned i = 0; i < ARRAY_LEN(figures); i++) {
        const struct crdt_learned *best = h->figure[i];
        if (best && wire_field(best, figures[i].samples) > own_samples(k, &figures[i]))
            figures[i].hear(k, best, now_ms);
    }
    /* Only as a start: the routers with this figure may be gone before this router has evidence. */
    if (h->belief)
        node_replica_size_heard(k, h->belief->believed_ppm / 1e6);
}

/* --- shown ---------------------------------------------------------------------------------- */

/* A row for each figure: a name for the code, and the fields of struct node_learned_row. */
#define ROWS(X)                                                                                    \
    X(believed_rate, "prefill_tokens_per_s", 1, "replica_prefill_tokens_per_second",               \
      "Prefill rate in use.", k->believed.tokens_per_s)                                            \
    X(own_rate, "prefill_tokens_per_s_measured", 1, NULL, NULL, k->shown.rate.value)               \
    X(rate_samples, "prefill_samples", 1, NULL, NULL, (double)k->shown.rate.samples)               \
    X(reuse_share, "reuse_share", 1, "replica_reuse_share",                                        \
      "Learned share of predicted cached tokens that is reused.", k->cache.evidence.share)         \
    X(bytes_per_token, "bytes_per_token", 1, "replica_bytes_per_token",                            \
      "Learned bytes per prompt token.", node_ratio_value(&k->cache.bytes_per_token))              \
    X(step_base, "decode_step_ms", 1e3, "replica_decode_step_seconds",                             \
      "Learned time of a decode step without context.", k->believed.step_base_s)                   \
    X(running_max, "running_max", 1, "replica_running_max",                                        \
      "Learned limit of concurrent requests; 0: none seen.", k->foreign.running_max)               \
    X(foreign_requests, "foreign_requests", 1, "replica_foreign_requests",                         \
      "Requests at the replica that no router booked.", k->foreign.strange)

#define ROW_VALUE(name, key, unit, metric, help, value)                                            \
    static double name##_value(const struct node_replica *k)                                       \
    {                                                                                              \
        return (value);                                                                            \
    }
ROWS(ROW_VALUE)

const struct node_learned_row node_learned_rows[] = {
#define ROW(name, key, unit, metric, help, value) {key, unit, metric, help, name##_value},
    ROWS(ROW)};
const unsigned node_learned_rows_count = ARRAY_LEN(node_learned_rows);
