#include "tests/bench/quality/cases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "tests/bench/quality/calibrate.h"
#include "tests/bench/quality/documents.h"
#include "tests/bench/quality/noise.h"
#include "tests/bench/quality/record.h"

struct engine_spec engine_plain(double speed, double cache_tokens, uint32_t block_tokens)
{
    return (struct engine_spec){.model = {
                                    .prefill_tokens_per_s = 10000 * speed,
                                    .decode_base_ns = 15e6 / speed,
                                    .decode_context_token_ns = 30 / speed,
                                    .prefill_chunk = 2048,
                                    .running_max = 256,
                                    .block_tokens = block_tokens,
                                    .cache_blocks = (uint32_t)(cache_tokens / block_tokens),
                                }};
}

struct quality_case case_plain(const struct workload *w, unsigned engines, unsigned routers,
                               struct engine_spec each)
{
    struct quality_case c = {.work = w,
                             .engines = engines,
                             .routers = routers,
                             .speed = 1,
                             .pace = 1,
                             .bytes_per_token = 3.6,
                             .delay_ms = 0.5,
                             .seed = 1};
    for (unsigned k = 0; k < engines; k++)
        c.specs[k] = each;
    return c;
}

static struct quality_case fleet(const struct workload *w, unsigned engines, unsigned routers,
                                 double speed)
{
    return case_plain(w, engines, routers, engine_plain(speed, 400000, 16));
}

static struct figures played(const struct quality_case *c, const struct chooser *chooser,
                             struct outcome *o)
{
    play(c, chooser, o);
    return figures_of(o, c);
}

static struct figures figures_played(const struct quality_case *c, const struct chooser *chooser)
{
    struct outcome o;
    struct figures f = played(c, chooser, &o);
    outcome_free(&o);
    return f;
}

/* One of two equal engines answers slowly once (2 s); then come prompts that share nothing. */
static unsigned slow_answer(const char *traces)
{
    (void)traces;
    unsigned broken = 0;
    for (unsigned clients = 1; clients <= 4; clients *= 2) {
        struct workload w;
        workload_distinct(&w, 3, 200);
        w.open = false;
        w.talks[0].asks[0].fetch_s = 2;
        struct quality_case c = fleet(&w, 2, 1, 1);
        c.clients = clients;
        struct outcome o;
        (void)played(&c, &chooser_cache_aware, &o);
        unsigned later = 0, first = 0;
        for (unsigned i = 10; i < o.count; i++) {
            later++;
            first += o.samples[i].engine == 0;
        }
        double share = (double)first / later;
        broken += !record_promise(
            share >= 0.35 && share <= 0.65,
            "slow-answer: %u clients: %.0f %% and %.0f %% after ten requests (35 %%)", clients,
            100 * share, 100 - 100 * share);
        outcome_free(&o);
        workload_free(&w);
    }
    return broken;
}

static unsigned no_reuse(const char *traces)
{
    (void)traces;
    static const double loads[] = {0.3, 0.7, 0.85, 0.95};
    unsigned broken = 0;
    for (unsigned i = 0; i < ARRAY_LEN(loads); i++) {
        struct workload w;
        workload_little(&w, 5, 8000);
        struct quality_case c = fleet(&w, 8, 1, 1);
        calibrate(&c, loads[i]);
        struct figures own = figures_played(&c, &chooser_cache_aware);
        struct figures least = figures_played(&c, &chooser_least_request);
        broken += !record_promise(
            own.p99_s <= 1.05 * least.p99_s,
            "no-reuse: load %.2f: p99 %.2f s against %.2f s of least request: x %.2f "
            "(1.05); mean %.2f and %.2f s",
            loads[i], own.p99_s, least.p99_s, own.p99_s / least.p99_s, own.ttft_s, least.ttft_s);
        workload_free(&w);
    }
    return broken;
}

struct split { /* prompt tokens of all engines, and of the first */
    double all, first;
};

static void split_add(struct split *s, const struct outcome *o, double from_s, double to_s)
{
    for (unsigned k = 0; k < o->count; k++) {
        if (o->samples[k].sent_s < from_s || o->samples[k].sent_s >= to_s)
            continue;
        s->all += o->samples[k].prompt_tokens;
        s->first += o->samples[k].engine == 0 ? o->samples[k].prompt_tokens : 0;
    }
}

static double split_share(const struct split *s)
{
    return s->all > 0 ? s->first / s->all : 0;
}

/* The first engine's share of the prompts sent after the first minute. */
static double share_of_first(const struct quality_case *c, const struct chooser *chooser,
                             struct figures *out)
{
    struct outcome o;
    struct split split = {0};
    *out = played(c, chooser, &o);
    split_add(&split, &o, 60, INFINITY);
    outcome_free(&o);
    return split_share(&split);
}

static const double slow_loads[] = {0.3, 0.7, 0.9}, slow_deserves = 0.2 / 7.2, slow_within = 0.2;

static struct quality_case one_slow_of_eight(const struct workload *w, unsigned routers)
{
    struct quality_case c = fleet(w, 8, routers, 1);
    c.specs[0] = engine_plain(0.2, 400000, 16);
    return c;
}

/* The second minute, which the queue of the start reaches into. In a run at full load the slow
 * engine deserves some sixty prompts. So several seeds count together, and more of them at lower
 * loads. */
static unsigned one_slow_soon(double load)
{
    enum { SEEDS_FULL = 5, ASKS_FULL = 5600 }; /* requests in two minutes */
    unsigned seeds = (unsigned)lround(SEEDS_FULL / load);
    static const unsigned routers[] = {1, 4, 8};
    struct split minute[ARRAY_LEN(routers)] = {{0, 0}};
    double pace = 0;
    unsigned broken = 0;
    for (unsigned seed = 0; seed < seeds; seed++) {
        struct workload w;
        workload_distinct(&w, 40 + seed, (unsigned)(load * ASKS_FULL));
        for (unsigned i = 0; i < ARRAY_LEN(routers); i++) {
            struct quality_case c = one_slow_of_eight(&w, routers[i]);
            if (pace <= 0) {
                calibrate(&c, load);
                pace = c.pace;
            }
            c.pace = pace;
            c.seed = seed + 1;
            struct outcome o;
            (void)played(&c, &chooser_cache_aware, &o);
            split_add(&minute[i], &o, 60, 120);
            outcome_free(&o);
        }
        workload_free(&w);
    }
    for (unsigned i = 0; i < ARRAY_LEN(routers); i++) {
        double share = split_share(&minute[i]);
        broken += !record_promise(
            fabs(share / slow_deserves - 1) <= slow_within,
            "one-slow: load %.2f, %u router%s, 60 to 120 s: %.2f %% of the work, it deserves %.2f "
            "%% (within 20 %%)",
            load, routers[i], routers[i] == 1 ? "" : "s", 100 * share, 100 * slow_deserves);
    }
    return broken;
}

static unsigned one_slow(const char *traces)
{
    (void)traces;
    unsigned broken = 0;
    for (unsigned i = 0; i < ARRAY_LEN(slow_loads); i++)
        broken += one_slow_soon(slow_loads[i]);
    for (unsigned i = 0; i < ARRAY_LEN(slow_loads); i++) {
        struct workload w;
        workload_distinct(&w, 7, 24000); /* ten minutes: the queue of the start is long gone */
        struct quality_case c = one_slow_of_eight(&w, 1);
        calibrate(&c, slow_loads[i]);
        struct figures f, bound, split;
        double own = share_of_first(&c, &chooser_cache_aware, &f);
        double perfect = share_of_first(&c, &chooser_perfect, &bound);
        split = figures_played(&c, &chooser_by_speed);
        broken += !record_promise(
            fabs(own / slow_deserves - 1) <= slow_within,
            "one-slow: load %.2f: %.2f %% of the work, it deserves %.2f %% (within 20 "
            "%%; perfect knowledge %.2f %%); TTFT %.2f s and %.2f s to the end (perfect "
            "knowledge %.2f and %.2f s; each as its speed deserves %.2f and %.2f s)",
            slow_loads[i], 100 * own, 100 * slow_deserves, 100 * perfect, f.ttft_s, f.end_s,
            bound.ttft_s, bound.end_s, split.ttft_s, split.end_s);
        workload_free(&w);
    }
    return broken;
}

static unsigned many(const char *traces)
{
    (void)traces;
    struct workload w;
    workload_little(&w, 9, 20000);
    struct quality_case c = fleet(&w, 64, 8, 1);
    calibrate(&c, 0.7);
    struct figures own = figures_played(&c, &chooser_cache_aware);
    struct figures least = figures_played(&c, &chooser_least_request);
    struct figures bound = figures_played(&c, &chooser_perfect);
    workload_free(&w);
    return !record_promise(
        own.deviation <= 0.06,
        "many: 8 routers, 64 engines: load deviation %.3f (0.06; least request %.3f, "
        "perfect knowledge %.3f); TTFT %.3f s (%.3f s, %.3f s)",
        own.deviation, least.deviation, bound.deviation, own.ttft_s, least.ttft_s, bound.ttft_s);
}

/* People read an answer and write the next question in 10 to 40 s. */
static void people(struct workload *w, double pace)
{
    for (unsigned i = 0; i < w->count; i++) {
        for (unsigned k = 0; k < w->talks[i].count; k++)
            w->talks[i].asks[k].think_s *= 2 * pace;
    }
}

/* Six minutes of chats, 280 requests a second. Engines are as slow as any in service: fast engines
 * would recompute lost caches within a second. */
static unsigned replaced(const char *traces)
{
    (void)traces;
    const double rate = 280, at_s = 200;
    struct workload w;
    workload_tenants(&w, 11, 100000);
    people(&w, rate);
    struct quality_case c = fleet(&w, 64, 4, 0.3);
    c.pace = rate;
    struct outcome o;
    (void)played(&c, &chooser_cache_aware, &o);
    struct figures still = figures_between(&o, &c, at_s + 60, at_s + 120);
    double load = load_of(&o, &c);
    outcome_free(&o);
    c.replaced = 16;
    c.replaced_s = at_s;
    (void)played(&c, &chooser_cache_aware, &o);
    struct figures before = figures_between(&o, &c, at_s - 60, at_s);
    struct figures during = figures_between(&o, &c, at_s, at_s + 30);
    struct figures after = figures_between(&o, &c, at_s + 60, at_s + 120);
    outcome_free(&o);
    (void)played(&c, &chooser_perfect, &o);
    struct figures best = figures_between(&o, &c, at_s + 60, at_s + 120);
    outcome_free(&o);
    workload_free(&w);
    return !record_promise(
        after.count > 0 && after.cached >= fmax(before.cached, still.cached) - 0.02,
        "replaced: 16 of 64, load %.2f: cached %.1f %% before, %.1f %% in the 30 s after, %.1f %% "
        "after "
        "a minute (2 points of before and of what it is if none is replaced, %.1f %%; perfect "
        "knowledge %.1f %%); TTFT %.2f s before, %.2f s after a minute (perfect knowledge %.2f s); "
        "%u "
        "requests",
        load, 100 * before.cached, 100 * during.cached, 100 * after.cached, 100 * still.cached,
        100 * best.cached, before.ttft_s, after.ttft_s, best.ttft_s, after.count);
}

static unsigned adapters(const char *traces)
{
    (void)traces;
    unsigned broken = 0;
    static const unsigned routers[] = {1, 4, 8};
    for (unsigned i = 0; i < ARRAY_LEN(routers); i++) {
        struct workload w;
        workload_adapters(&w, 13, 8000);
        struct quality_case c = fleet(&w, 8, routers[i], 1);
        for (unsigned k = 0; k < c.engines; k++) {
            c.specs[k].model.adapters_max = 16;
            c.specs[k].model.adapter_load_ns = 300000000;
        }
        calibrate(&c, 0.3); /* in addition to loading adapters */
        struct outcome o;
        struct figures own = played(&c, &chooser_cache_aware, &o);
        uint64_t loads = o.adapter_loads;
        outcome_free(&o);
        struct figures least = played(&c, &chooser_least_request, &o);
        uint64_t best = workload_loads_at_best(&w, 8 * 16);
        broken += !record_promise(
            (double)loads <= 1.2 * (double)best,
            "adapters: 200 on 8 x 16 slots, %u routers: %llu loads, %llu at best: x %.2f "
            "(1.2; least request %llu); TTFT %.3f s (least request %.3f s)",
            routers[i], (unsigned long long)loads, (unsigned long long)best,
            (double)loads / (double)best, (unsigned long long)o.adapter_loads, own.ttft_s,
            least.ttft_s);
        outcome_free(&o);
        workload_free(&w);
    }
    return broken;
}

/* --- a prefix that becomes popular, and is forgotten -------------------------------------------
 */

struct crest {        /* a part of the run: requests with the popular prefix */
    unsigned engines; /* engines that served over a fiftieth of them */
    double ttft_s;
};

static bool has_prefix(const struct sample *s)
{
    return s->ask->prompt.count > 0 && s->ask->prompt.units[0] < CREST_UNITS;
}

static struct crest crest_between(const struct outcome *o, const struct quality_case *c,
                                  double from_s, double to_s)
{
    unsigned by_engine[ENGINES_MAX] = {0}, count = 0;
    struct crest r = {0};
    for (unsigned i = 0; i < o->count; i++) {
        const struct sample *s = &o->samples[i];
        if (!has_prefix(s) || s->sent_s < from_s || s->sent_s >= to_s)
            continue;
        by_engine[s->engine]++;
        count++;
        r.ttft_s += s->ttft_s;
    }
    r.ttft_s /= count ? count : 1;
    for (unsigned k = 0; k < c->engines; k++)
        r.engines += by_engine[k] * 50 > count;
    return r;
}

/* A change of seed moves more than any change of the rule: medians count. */
enum { SEEDS = 5 };

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(const double *values)
{
    double sorted[SEEDS];
    memcpy(sorted, values, sizeof sorted);
    qsort(sorted, SEEDS, sizeof *sorted, by_value);
    return sorted[SEEDS / 2];
}

struct crests {
    struct crest before, then, after; /* of cache_aware */
    struct crest least, perfect;      /* then */
};

static struct crests crests_played(unsigned routers, unsigned seed)
{
    struct workload w;
    workload_crest(&w, 17 + seed, 3000);
    struct quality_case c = fleet(&w, 8, routers, 1);
    c.seed = 1 + seed;
    for (unsigned k = 0; k < c.engines; k++) {
        c.specs[k].model.running_max = 32;
        c.specs[k].model.cache_blocks = 60000 / 16;
    }
    calibrate(&c, 0.7);
    double first_s = w.talks[w.count / 5].start_s, last_s = w.talks[w.count * 4 / 5].start_s;
    double all_s = w.talks[w.count - 1].start_s;
    struct outcome o;
    (void)played(&c, &chooser_cache_aware, &o);
    double by = 1 / c.pace; /* calibration changes the pace */
    struct crests r = {
        .before = crest_between(&o, &c, 0, by * first_s),
        .then = crest_between(&o, &c, by * first_s, by * last_s),
        .after = crest_between(&o, &c, by * (last_s + all_s) / 2, 2 * by * all_s),
    };
    outcome_free(&o);
    (void)played(&c, &chooser_least_request, &o);
    r.least = crest_between(&o, &c, by * first_s, by * last_s);
    outcome_free(&o);
    (void)played(&c, &chooser_perfect, &o);
    r.perfect = crest_between(&o, &c, by * first_s, by * last_s);
    outcome_free(&o);
    workload_free(&w);
    return r;
}

static unsigned popular(const char *traces)
{
    (void)traces;
    unsigned broken = 0;
    for (unsigned routers = 1; routers <= 8; routers *= 8) {
        double ratio[SEEDS], own[SEEDS], least[SEEDS], perfect[SEEDS], before[SEEDS], then[SEEDS],
            after[SEEDS];
        for (unsigned i = 0; i < SEEDS; i++) {
            struct crests r = crests_played(routers, i);
            own[i] = r.then.ttft_s;
            least[i] = r.least.ttft_s;
            perfect[i] = r.perfect.ttft_s;
            ratio[i] = own[i] / fmin(least[i], perfect[i]);
            before[i] = r.before.engines;
            then[i] = r.then.engines;
            after[i] = r.after.engines;
        }
        broken += !record_promise(
            median(ratio) <= 1.25 && median(after) <= fmax(median(before), median(then) / 2),
            "popular: %u router%s: a prefix that nearly all want for a while, medians of five "
            "seeds: at %.0f of 8 engines before, %.0f then, %.0f after; its TTFT %.3f s (least "
            "request %.3f s, perfect %.3f s), x %.2f of the better (1.25; seeds x %.2f, %.2f, "
            "%.2f, %.2f, %.2f)",
            routers, routers == 1 ? "" : "s", median(before), median(then), median(after),
            median(own), median(least), median(perfect), median(ratio), ratio[0], ratio[1],
            ratio[2], ratio[3], ratio[4]);
    }
    return broken;
}

/* 48 requests of the same prefix at once, over eight routers that learn of each other later. */
static unsigned bursts(const char *traces)
{
    (void)traces;
    unsigned broken = 0;
    for (unsigned routers = 1; routers <= 8; routers *= 8) {
        double ratio[SEEDS], ratio_p99[SEEDS], own[SEEDS], own_p99[SEEDS];
        for (unsigned i = 0; i < SEEDS; i++) {
            struct workload w;
            workload_bursts(&w, 19 + i, 3000);
            struct quality_case c = fleet(&w, 8, routers, 1);
            c.seed = 1 + i;
            calibrate(&c, 0.6);
            struct figures f = figures_played(&c, &chooser_cache_aware);
            struct figures bound = figures_played(&c, &chooser_perfect);
            struct figures least = figures_played(&c, &chooser_least_request);
            own[i] = f.ttft_s;
            own_p99[i] = f.p99_s;
            ratio[i] = f.ttft_s / fmin(bound.ttft_s, least.ttft_s);
            ratio_p99[i] = f.p99_s / fmin(bound.p99_s, least.p99_s);
            workload_free(&w);
        }
        broken += !record_promise(
            median(ratio) <= 1.25 && median(ratio_p99) <= 1.25,
            "bursts: %u router%s: 48 at once, medians of five seeds: TTFT %.2f s, x %.2f, p99 %.2f "
            "s, x %.2f of the better of least request and perfect knowledge (1.25; seeds x %.2f, "
            "%.2f, %.2f, %.2f, %.2f)",
            routers, routers == 1 ? "" : "s", median(own), median(ratio), median(own_p99),
            median(ratio_p99), ratio[0], ratio[1], ratio[2], ratio[3], ratio[4]);
    }
    return broken;
}

/* Eight engines, and the same as two addresses with four ranks each. */
static unsigned ranks(const char *traces)
{
    (void)traces;
    unsigned broken = 0;
    for (unsigned routers = 1; routers <= 4; routers *= 4) {
        struct workload w;
        workload_tenants(&w, 23, 6000);
        struct quality_case c = fleet(&w, 8, routers, 1);
        calibrate(&c, 0.7);
        struct figures apart = figures_played(&c, &chooser_cache_aware);
        c.ranks = 4;
        struct figures own = figures_played(&c, &chooser_cache_aware);
        c.unpinned = true;
        struct figures left = figures_played(&c, &chooser_cache_aware);
        broken += !record_promise(
            own.cached >= apart.cached - 0.01 && own.ttft_s <= 1.1 * apart.ttft_s,
            "ranks: %u router%s: 4 ranks behind each of 2 addresses: cached %.1f %%, TTFT %.3f s; "
            "8 addresses %.1f %%, %.3f s (1 point, 1.1 times); the engine chooses %.1f %%, %.3f s",
            routers, routers == 1 ? "" : "s", 100 * own.cached, own.ttft_s, 100 * apart.cached,
            apart.ttft_s, 100 * left.cached, left.ttft_s);
        workload_free(&w);
    }
    return broken;
}

static unsigned late(const char *traces)
{
    struct workload w;
    if (!workload_coding(&w, traces, 2, 0)) {
        printf("late: no traces in %s, skipped\n", traces);
        return 0;
    }
    workload_shuffle(&w, 1);
    struct quality_case c = fleet(&w, 8, 4, 1);
    c.clients = 32;
    struct figures soon = figures_played(&c, &chooser_cache_aware);
    c.delay_ms = 500;
    c.loss = 0.05;
    struct figures own = figures_played(&c, &chooser_cache_aware);
    workload_free(&w);
    return !record_promise(
        own.cached >= soon.cached - 0.005,
        "late: coding sessions, 4 routers: cached %.1f %% with gossip 0.5 s late and 5 %% "
        "lost, %.1f %% without (0.5 points); TTFT %.3f and %.3f s",
        100 * own.cached, 100 * soon.cached, own.ttft_s, soon.ttft_s);
}

static unsigned short_texts(const char *traces)
{
    (void)traces;
    static const double speeds[] = {1, 30, 0.1};
    unsigned broken = 0;
    for (unsigned i = 0; i < ARRAY_LEN(speeds) * 2; i++) {
        double speed = speeds[i / 2];
        struct workload w;
        workload_short(&w, 15, 4000);
        struct quality_case c = fleet(&w, 4, i % 2 ? 4 : 1, speed);
        calibrate(&c, 0.1);
        struct figures own = figures_played(&c, &chooser_cache_aware);
        struct figures bound = figures_played(&c, &chooser_perfect);
        broken += !record_promise(
            own.cached >= bound.cached - 0.03 && own.ttft_s <= 1.15 * bound.ttft_s &&
                own.end_s <= 1.02 * bound.end_s,
            "short: engines x %g, %u routers, light load: cached %.1f %% against %.1f %%, "
            "TTFT x %.2f (1.15), end x %.2f",
            speed, c.routers, 100 * own.cached, 100 * bound.cached, own.ttft_s / bound.ttft_s,
            own.end_s / bound.end_s);
        workload_free(&w);
    }
    return broken;
}

static const struct {
    const char *name;
    unsigned (*run)(const char *traces);
} cases[] = {
    {"slow-answer", slow_answer},
    {"no-reuse", no_reuse},
    {"one-slow", one_slow},
    {"many", many},
    {"replaced", replaced},
    {"adapters", adapters},
    {"popular", popular},
    {"bursts", bursts},
    {"ranks", ranks},
    {"late", late},
    {"short", short_texts},
    {"noise", case_noise},
    {"documents", case_documents},
};

unsigned cases_run(const char *name, const char *traces)
{
    unsigned broken = 0;
    for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
        if (!name || strcmp(name, cases[i].name) == 0)
            broken += cases[i].run(traces);
    }
    return broken;
}
