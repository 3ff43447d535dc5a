#include "tests/bench/quality/draw.h"

#include <math.h>
#include <stdio.h>

#include "base/check.h"
#include "tests/bench/quality/calibrate.h"

#define PICK(prng, list) (list)[prng_below(prng, ARRAY_LEN(list))]

enum { DRAWS_WITHOUT_TIERS = 33, DRAWS_ALIKE = 44 };

static const double rate_min = 3000, rate_range = 100;

static const char *const cached_words[] = {"cached told", "cached told above 0", "cached untold"};
static const char *const metrics_words[] = {"all metrics", "some metrics", "no metrics"};

static struct sim_model_config model_drawn(struct prng *prng)
{
    static const uint32_t blocks[] = {16, 16, 32, 64, 128, 256, 512, 1024};
    static const uint32_t running[] = {8, 16, 32, 64, 128, 256, 256};
    double rate = rate_min * pow(rate_range, prng_unit(prng)), speed = rate / 10000;
    return (struct sim_model_config){
        .prefill_tokens_per_s = rate,
        .decode_base_ns = 15e6 / speed,
        .decode_context_token_ns = 30 / speed,
        .prefill_chunk = 2048,
        .block_tokens = PICK(prng, blocks),
        .running_max = PICK(prng, running),
    };
}

/* Tokens of the longest prompt with the answer. */
static double longest(const struct workload *w)
{
    double tokens = 0;
    for (unsigned i = 0; i < w->count; i++) {
        for (unsigned j = 0; j < w->talks[i].count; j++) {
            const struct ask *a = &w->talks[i].asks[j];
            tokens = fmax(tokens, (double)prompt_tokens(&a->prompt) + a->output_tokens);
        }
    }
    return tokens;
}

/* Few workloads use adapters; with adapters, an engine has 16 slots. */
static void adapters_drawn(struct sim_model_config *m)
{
    enum { SLOTS = 16 };
    m->adapters_max = SLOTS;
    m->adapter_load_ns = (uint64_t)(3e8 * 10000 / m->prefill_tokens_per_s);
}

/* In the later draws engines have a tier behind their memory. A separate generator draws the tier,
 * so the first draws stay as before. */
static void tier_drawn(struct quality_case *c, unsigned number)
{
    if (number < DRAWS_WITHOUT_TIERS)
        return;
    struct prng prng;
    prng_seed(&prng, 5000 + number);
    double times = 1 + 4 * prng_unit(&prng), faster = 3 + 27 * prng_unit(&prng);
    for (unsigned k = 0; k < c->engines; k++) {
        struct sim_model_config *m = &c->specs[k].model;
        m->tier_blocks = (uint32_t)(times * m->cache_blocks);
        m->tier_tokens_per_s = faster * m->prefill_tokens_per_s;
    }
}

/* In still later draws, some engines are ranks behind fewer addresses. */
static void ranks_drawn(struct quality_case *c, unsigned number)
{
    struct prng prng;
    prng_seed(&prng, 9000 + number);
    if (number >= DRAWS_ALIKE && prng_below(&prng, 2) == 0)
        c->ranks = c->engines % 4 == 0 && prng_below(&prng, 2) == 0 ? 4 : 2;
}

static void fleet_drawn(struct quality_case *c, struct prng *prng, double cache_tokens)
{
    struct sim_model_config m = model_drawn(prng);
    adapters_drawn(&m);
    double least = 4 * longest(c->work) + 4.0 * m.block_tokens;
    m.cache_blocks = (uint32_t)(fmax(cache_tokens / c->engines, least) / m.block_tokens);
    struct engine_spec spec = {
        .model = m,
        .cached = (enum engine_cached)prng_below(prng, 3),
        .metrics = (enum engine_metrics)prng_below(prng, 3),
        .dropped_tokens = prng_below(prng, 3) == 0 ? (uint32_t)prng_below(prng, 1500) : 0,
        .swallows = prng_below(prng, 4) == 0 ? 0.1 : 0,
    };
    for (unsigned k = 0; k < c->engines; k++)
        c->specs[k] = spec;
}

static void slow_down(struct sim_model_config *m, double times)
{
    m->prefill_tokens_per_s /= times;
    m->decode_base_ns *= times;
    m->decode_context_token_ns *= times;
    m->adapter_load_ns = (uint64_t)((double)m->adapter_load_ns * times);
    m->tier_tokens_per_s /= times;
}

/* Engines at each address get random speeds. */
static void mix(struct quality_case *c, unsigned number)
{
    struct prng prng;
    prng_seed(&prng, 13000 + number);
    unsigned ranks = c->ranks > 0 ? c->ranks : 1;
    for (unsigned first = 0; first < c->engines; first += ranks) {
        double rate = rate_min * pow(rate_range, prng_unit(&prng));
        for (unsigned k = first; k < first + ranks; k++)
            slow_down(&c->specs[k].model, c->specs[k].model.prefill_tokens_per_s / rate);
    }
}

/* Slows down the engine at the first address, with all ranks. */
static void slow_down_one(struct quality_case *c)
{
    for (unsigned k = 0; k < (c->ranks > 0 ? c->ranks : 1); k++)
        slow_down(&c->specs[k].model, 5);
}

static void rates_say(const struct quality_case *c, char *text, size_t size)
{
    double least = INFINITY, most = 0;
    for (unsigned k = 0; k < c->engines; k++) {
        least = fmin(least, c->specs[k].model.prefill_tokens_per_s);
        most = fmax(most, c->specs[k].model.prefill_tokens_per_s);
    }
    if (least == most)
        (void)snprintf(text, size, "%.0f", most);
    else
        (void)snprintf(text, size, "%.0f to %.0f", least, most);
}

/* Makes all conversations unstreamed, or only those of the first half: then clients begin to
 * stream. Returns a description. */
static const char *make_whole(struct workload *w, unsigned number)
{
    struct prng prng;
    prng_seed(&prng, 11000 + number);
    bool half = number >= DRAWS_ALIKE && prng_below(&prng, 2) == 0;
    for (unsigned i = 0; i < (half ? w->count / 2 : w->count); i++) {
        for (unsigned j = 0; j < w->talks[i].count; j++)
            w->talks[i].asks[j].whole = true;
    }
    return half ? ", whole answers, then streams" : ", whole answers";
}

void draw(struct drawn *out, unsigned number, unsigned asks)
{
    static const unsigned engines[] = {2, 4, 8, 8, 12}, routers[] = {1, 1, 2, 4};
    static const double fits[] = {1.2, 0.5, 0.1}, loads[] = {0.4, 0.7, 0.85, 0.95};
    *out = (struct drawn){.setup = {.work = &out->work, .speed = 1, .pace = 1, .delay_ms = 0.5}};
    struct quality_case *c = &out->setup;
    struct prng prng;
    prng_seed(&prng, 1000 + number);
    unsigned kinds = 0;
    while (workload_kinds[kinds].name)
        kinds++;
    CHECK(kinds > 0);
    const struct workload_kind *kind = &workload_kinds[number % kinds];
    kind->generate(&out->work, number, asks);
    c->seed = number + 1;
    c->engines = PICK(&prng, engines);
    c->routers = PICK(&prng, routers);
    c->bytes_per_token = 2.5 + 2.5 * prng_unit(&prng);
    double fit = PICK(&prng, fits), load = PICK(&prng, loads);
    bool mixed = number >= DRAWS_MIXED;
    bool slow = c->engines > 2 && prng_below(&prng, 4) == 0 && !mixed;
    bool whole = prng_below(&prng, 3) == 0;
    fleet_drawn(c, &prng, fit * workload_distinct_tokens(&out->work));
    const char *says_whole = whole ? make_whole(&out->work, number) : "";
    tier_drawn(c, number);
    ranks_drawn(c, number);
    if (mixed)
        mix(c, number);
    if (slow)
        slow_down_one(c);
    calibrate(c, load);
    const struct engine_spec *s = &c->specs[c->engines - 1];
    char tier[64] = "";
    if (s->model.tier_blocks > 0)
        (void)snprintf(tier, sizeof tier, " and %.0f in a tier of %.0f tokens/s",
                       (double)s->model.tier_blocks * s->model.block_tokens,
                       s->model.tier_tokens_per_s);
    char rates[64];
    rates_say(c, rates, sizeof rates);
    (void)snprintf(c->name, sizeof c->name, "draw %u: %s", number + 1, kind->name);
    (void)snprintf(out->says, sizeof out->says,
                   "%s, %u engines%s%s of %s tokens/s, blocks of %u, at most %u running, caches of "
                   "%.0f (%.1f of all)%s, load %.2f, %u routers, %s, %s%s%s%s",
                   kind->name, c->engines, slow ? " (one five times slower)" : "",
                   c->ranks == 0   ? ""
                   : c->ranks == 2 ? " (two ranks an address)"
                                   : " (four ranks an address)",
                   rates, s->model.block_tokens, s->model.running_max,
                   (double)s->model.cache_blocks * s->model.block_tokens, fit, tier, load,
                   c->routers, cached_words[s->cached], metrics_words[s->metrics], says_whole,
                   s->dropped_tokens ? ", a template that drops" : "",
                   s->swallows > 0 ? ", swallowed counters" : "");
}
