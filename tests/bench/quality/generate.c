/* Workloads that no trace has. A few lines make a kind from pieces of text. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/prng.h"
#include "tests/bench/quality/workload.h"

enum { UNIT = 32 };

struct piece { /* a text: units that belong together */
    uint32_t first, count;
};

/* Memory that prompts borrow, to be freed together. */
struct pool {
    struct pool *next;
    uint32_t units[];
};

struct maker {
    struct workload *w;
    struct prng prng;
    struct pool *pool;
    uint32_t next_unit;
    unsigned room, asks, asks_max;
    double now_s; /* of the next arrival */
};

static void pool_free(void *units)
{
    for (struct pool *p = units, *next; p; p = next) {
        next = p->next;
        free(p);
    }
}

static struct maker begin(struct workload *out, uint64_t seed, unsigned asks_max)
{
    *out = (struct workload){.open = true, .units_free = pool_free};
    struct maker m = {.w = out, .asks_max = asks_max};
    prng_seed(&m.prng, seed * 77 + 5);
    return m;
}

static int by_start(const void *a, const void *b)
{
    const struct talk *x = a, *y = b;
    return x->start_s < y->start_s ? -1 : x->start_s > y->start_s;
}

static void end(struct maker *m)
{
    m->w->units = m->pool;
    qsort(m->w->talks, m->w->count, sizeof *m->w->talks, by_start);
}

static bool more(const struct maker *m)
{
    return m->asks < m->asks_max;
}

static double between(struct maker *m, double low, double high)
{
    return low + prng_unit(&m->prng) * (high - low);
}

/* Most are short, a few are long: exp(2.3) = 10 times the median. */
static double skewed(struct maker *m, double median)
{
    double normal = 0;
    for (unsigned i = 0; i < 12; i++)
        normal += prng_unit(&m->prng);
    return median * exp((normal - 6) * 0.8);
}

/* A number below `count`, the first most often (Zipf, exponent 1). */
static uint32_t popular_of(struct maker *m, uint32_t count)
{
    return (uint32_t)(exp(prng_unit(&m->prng) * log(count + 1.0)) - 1) % count;
}

static struct piece text(struct maker *m, double tokens)
{
    struct piece p = {m->next_unit, (uint32_t)fmax(tokens / UNIT, 1)};
    m->next_unit += p.count;
    CHECK(m->next_unit < PROMPT_IMAGE);
    return p;
}

static struct piece image(struct maker *m, double tokens)
{
    struct piece p = text(m, tokens);
    p.first |= PROMPT_IMAGE;
    return p;
}

static struct talk *talk(struct maker *m, double start_s, unsigned asks)
{
    struct workload *w = m->w;
    if (w->count == m->room) {
        m->room = m->room ? m->room * 2 : 256;
        w->talks = realloc(w->talks, m->room * sizeof *w->talks);
        CHECK(w->talks != NULL);
    }
    struct talk *t = &w->talks[w->count++];
    *t = (struct talk){.start_s = start_s, .count = asks, .asks = calloc(asks, sizeof *t->asks)};
    CHECK(t->asks != NULL);
    (void)snprintf(t->session, sizeof t->session, "talk-%u", w->count);
    m->asks += asks;
    return t;
}

static void compose(struct maker *m, struct ask *a, const struct piece *pieces, unsigned count,
                    double output)
{
    uint32_t units = 0;
    for (unsigned i = 0; i < count; i++)
        units += pieces[i].count;
    struct pool *p = malloc(sizeof *p + units * sizeof *p->units);
    CHECK(p != NULL);
    p->next = m->pool;
    m->pool = p;
    uint32_t at = 0;
    for (unsigned i = 0; i < count; i++) {
        for (uint32_t k = 0; k < pieces[i].count; k++)
            p->units[at++] = pieces[i].first + k;
    }
    a->prompt = (struct prompt){.unit_tokens = UNIT,
                                .count = units,
                                .units = p->units,
                                .tail_tokens = 1 + (uint32_t)prng_below(&m->prng, UNIT)};
    a->output_tokens = (uint32_t)fmax(output, 1);
}

/* The start of a talk with `asks` asks: one ask a second on average, from first to last. The bench
 * sets the pace. */
static double arrival(struct maker *m, unsigned asks)
{
    m->now_s += -log(1 - prng_unit(&m->prng)) * asks;
    return m->now_s;
}

static struct talk *single(struct maker *m, const struct piece *pieces, unsigned count,
                           double output)
{
    struct talk *t = talk(m, arrival(m, 1), 1);
    compose(m, &t->asks[0], pieces, count, output);
    return t;
}

/* A chat: each turn has all text before. Pauses are of the order of ten arrivals. */
static struct talk *chat(struct maker *m, struct piece system, unsigned turns, double said,
                         double answered, double image_share)
{
    enum { PIECES_MAX = 64 };
    struct piece pieces[PIECES_MAX] = {system};
    struct talk *t = talk(m, arrival(m, turns), turns);
    unsigned count = 1;
    for (unsigned i = 0; i < turns && count + 3 < PIECES_MAX; i++) {
        struct ask *a = &t->asks[i];
        double output = skewed(m, answered);
        if (prng_unit(&m->prng) < image_share) {
            pieces[count++] = image(m, between(m, 300, 1600));
            a->fetch_s = (float)between(m, 0.05, 0.5);
        }
        pieces[count++] = text(m, skewed(m, said));
        compose(m, a, pieces, count, output);
        a->think_s = i == 0 ? 0 : between(m, 5, 20);
        pieces[count++] = text(m, output);
    }
    return t;
}

void workload_rag(struct workload *out, uint64_t seed, unsigned asks)
{
    enum { DOCUMENTS = 200 };
    struct maker m = begin(out, seed, asks);
    struct piece system = text(&m, 600), documents[DOCUMENTS];
    for (unsigned i = 0; i < DOCUMENTS; i++)
        documents[i] = text(&m, between(&m, 800, 3000));
    while (more(&m)) {
        struct piece pieces[8] = {system};
        unsigned count = 1, chosen = 2 + (unsigned)prng_below(&m.prng, 4);
        for (unsigned i = 0; i < chosen; i++)
            pieces[count++] = documents[popular_of(&m, DOCUMENTS)];
        pieces[count++] = text(&m, between(&m, 20, 200));
        single(&m, pieces, count, skewed(&m, 150));
    }
    end(&m);
}

void workload_adapters(struct workload *out, uint64_t seed, unsigned asks)
{
    enum { ADAPTERS = 200 };
    struct maker m = begin(out, seed, asks);
    struct piece systems[ADAPTERS];
    for (unsigned i = 0; i < ADAPTERS; i++)
        systems[i] = text(&m, between(&m, 200, 1500));
    while (more(&m)) {
        uint32_t adapter = popular_of(&m, ADAPTERS);
        struct piece pieces[] = {systems[adapter], text(&m, skewed(&m, 500))};
        struct ask *a = &single(&m, pieces, 2, skewed(&m, 150))->asks[0];
        a->adapter = adapter + 1;
        a->prompt.space = adapter + 1;
    }
    end(&m);
}

void workload_bursts(struct workload *out, uint64_t seed, unsigned asks)
{
    enum { BURST = 48 };
    struct maker m = begin(out, seed, asks);
    struct piece system = text(&m, 500);
    while (more(&m)) {
        struct piece prefix = text(&m, between(&m, 2000, 12000));
        for (unsigned i = 0; i < BURST / 2; i++)
            chat(&m, system, 1, 800, 200, 0);
        double at_s = arrival(&m, 1);
        for (unsigned i = 0; i < BURST; i++) {
            struct piece pieces[] = {prefix, text(&m, skewed(&m, 150))};
            compose(&m, &talk(&m, at_s, 1)->asks[0], pieces, 2, skewed(&m, 80));
        }
        m.now_s += BURST;
    }
    end(&m);
}

void workload_images(struct workload *out, uint64_t seed, unsigned asks)
{
    struct maker m = begin(out, seed, asks);
    struct piece system = text(&m, 400);
    while (more(&m))
        chat(&m, system, 1 + (unsigned)prng_below(&m.prng, 6), 100, 200, 0.5);
    end(&m);
}

void workload_batch(struct workload *out, uint64_t seed, unsigned asks)
{
    enum { BATCH = 200 };
    struct maker m = begin(out, seed, asks);
    struct piece system = text(&m, 1500);
    while (more(&m)) {
        for (unsigned i = 0; i < BATCH / 4; i++)
            chat(&m, system, 1 + (unsigned)prng_below(&m.prng, 5), 300, 200, 0);
        double at_s = m.now_s;
        for (unsigned i = 0; i < BATCH; i++) {
            struct piece own = text(&m, skewed(&m, 1500));
            struct talk *t = talk(&m, at_s, 1);
            compose(&m, &t->asks[0], &own, 1, skewed(&m, 200));
            t->asks[0].whole = true;
        }
    }
    end(&m);
}

void workload_reasoning(struct workload *out, uint64_t seed, unsigned asks)
{
    struct maker m = begin(out, seed, asks / 3);
    struct piece system = text(&m, 800);
    while (more(&m)) {
        struct piece pieces[] = {system, text(&m, skewed(&m, 400))};
        single(&m, pieces, 2, skewed(&m, 2500));
    }
    end(&m);
}

void workload_tenants(struct workload *out, uint64_t seed, unsigned asks)
{
    enum { TENANTS = 20 };
    struct maker m = begin(out, seed, asks);
    struct piece system = text(&m, 3000);
    while (more(&m)) {
        struct talk *t = chat(&m, system, 1 + (unsigned)prng_below(&m.prng, 8), 150, 200, 0);
        uint32_t tenant = popular_of(&m, TENANTS);
        for (unsigned i = 0; i < t->count; i++)
            t->asks[i].prompt.space = tenant + 1;
    }
    end(&m);
}

void workload_distinct(struct workload *out, uint64_t seed, unsigned asks)
{
    struct maker m = begin(out, seed, asks);
    while (more(&m)) {
        struct piece own = text(&m, skewed(&m, 1500));
        single(&m, &own, 1, skewed(&m, 150));
    }
    end(&m);
}

void workload_little(struct workload *out, uint64_t seed, unsigned asks)
{
    enum { SHARED = 50 };
    struct maker m = begin(out, seed, asks);
    struct piece shared[SHARED];
    for (unsigned i = 0; i < SHARED; i++)
        shared[i] = text(&m, between(&m, 300, 1500));
    while (more(&m)) {
        struct piece pieces[] = {shared[prng_below(&m.prng, SHARED)], text(&m, skewed(&m, 1500))};
        bool shares = prng_below(&m.prng, 10) == 0;
        single(&m, shares ? pieces : pieces + 1, shares ? 2 : 1, skewed(&m, 150));
    }
    end(&m);
}

void workload_popular(struct workload *out, uint64_t seed, unsigned asks)
{
    enum { TIMES = 6 };
    struct maker m = begin(out, seed, asks);
    struct piece prefix = {0, 0};
    for (unsigned time = 0; more(&m);) {
        if (m.asks >= time * asks / TIMES) {
            prefix = text(&m, 12000);
            time++;
        }
        bool popular = prng_below(&m.prng, 10) < 6;
        struct piece pieces[] = {prefix, text(&m, skewed(&m, popular ? 150 : 1200))};
        single(&m, popular ? pieces : pieces + 1, popular ? 2 : 1, skewed(&m, 120));
    }
    end(&m);
}

void workload_crest(struct workload *out, uint64_t seed, unsigned asks)
{
    enum { TIMES_FASTER = 6 };
    struct maker m = begin(out, seed, asks);
    struct piece prefix = text(&m, CREST_UNITS * UNIT);
    while (more(&m)) {
        bool crest = m.asks >= asks / 5 && m.asks < asks * 4 / 5;
        bool popular = prng_below(&m.prng, 20) < (crest ? 19 : 2);
        struct piece pieces[] = {prefix, text(&m, skewed(&m, popular ? 150 : 1500))};
        double before_s = m.now_s;
        single(&m, popular ? pieces : pieces + 1, popular ? 2 : 1, skewed(&m, 120));
        if (crest)
            m.now_s = before_s + (m.now_s - before_s) / TIMES_FASTER;
    }
    end(&m);
}

void workload_short(struct workload *out, uint64_t seed, unsigned asks)
{
    struct maker m = begin(out, seed, asks);
    struct piece system = text(&m, 150);
    while (more(&m))
        chat(&m, system, 1 + (unsigned)prng_below(&m.prng, 10), 60, 150, 0);
    end(&m);
}

void workload_turns(struct workload *out, uint64_t seed, unsigned asks)
{
    enum { TURNS = 24 };
    struct maker m = begin(out, seed, asks);
    struct piece system = text(&m, 6000);
    while (more(&m)) {
        struct piece pieces[2 + 2 * TURNS] = {system, text(&m, 2000)};
        struct talk *t = talk(&m, 0, TURNS);
        for (unsigned i = 0, count = 2; i < TURNS; i++) {
            pieces[count++] = text(&m, UNIT);
            compose(&m, &t->asks[i], pieces, count, 200);
            t->asks[i].think_s = between(&m, 0.2, 1);
            pieces[count++] = text(&m, UNIT);
        }
    }
    end(&m);
    out->open = false;
}

const struct workload_kind workload_kinds[] = {
    {"rag", workload_rag},         {"adapters", workload_adapters},
    {"bursts", workload_bursts},   {"images", workload_images},
    {"batch", workload_batch},     {"reasoning", workload_reasoning},
    {"tenants", workload_tenants}, {"distinct", workload_distinct},
    {"little", workload_little},   {"popular", workload_popular},
    {"short", workload_short},     {NULL, NULL}};
