#include "tests/bench/quality/events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "tests/bench/quality/cases.h"

enum {
    SEEDS_MAX = 16,
    PAST_EACH = 4,
    COUNTS = 3,
    CHURN_BLOCKS = 10000,
    BELIEF_EACH = 32,
    TALKS = 80,
    ASKS = 6000
};

/* The engines' caches have half of the room that the running conversations need. */
static const double small_cache = 200000;

struct scenario {
    const char *name, *says;
    unsigned routers[COUNTS];   /* 0: no more */
    double points, ttft, right; /* promised: at most this distance from perfect knowledge, in points
                                 * and times the TTFT there; at least this share of right beliefs,
                                 * in %. 0: not promised */
    bool no_worse;              /* at most a point worse than without events */
    uint32_t block;             /* 0: as set */
    double cache;
    enum sim_evict evict;
    unsigned engines;            /* 0: as set */
    double speed;                /* 0: as set */
    workload_generate *generate; /* NULL: the coding sessions */
    double gossip; /* most bytes a second from each router to each other, for an engine that stores
                    * CHURN_BLOCKS a second; 0: not promised */
    bool past;     /* a quarter of the conversations bypass the routers */
    bool tier;
    unsigned groups;
    enum leading leading;
};

static const struct scenario scenarios[] = {
    {.name = "small",
     .says = "caches half too small",
     .routers = {1, 4, 8},
     .points = 0.3,
     .ttft = 1.05},
    {.name = "past",
     .says = "a quarter of the conversations past the routers",
     .routers = {1, 4},
     .points = 1,
     .past = true},
    {.name = "lfu",
     .says = "engines that evict what is used least",
     .routers = {1, 4},
     .points = 1,
     .evict = SIM_EVICT_LFU},
    {.name = "random",
     .says = "engines that evict anything",
     .routers = {1, 4},
     .points = 1,
     .evict = SIM_EVICT_RANDOM},
    {.name = "dropped",
     .says = "a changing line in front that engines drop",
     .routers = {1, 3},
     .points = 1,
     .leading = LEADING_DROPPED},
    {.name = "counted",
     .says = "a changing line in front that counts",
     .routers = {1, 3},
     .points = 1,
     .leading = LEADING_COUNTED},
    {.name = "hybrid",
     .says = "engines of three groups of layers",
     .routers = {1, 4},
     .no_worse = true,
     .groups = 3},
    {.name = "tier",
     .says = "engines with memory of the host",
     .routers = {1, 4},
     .no_worse = true,
     .tier = true},
    {.name = "block-16",
     .says = "blocks of 16 tokens",
     .routers = {1, 4},
     .right = 99,
     .block = 16},
    {.name = "block-32",
     .says = "blocks of 32 tokens",
     .routers = {1, 4},
     .right = 99,
     .block = 32},
    {.name = "block-64",
     .says = "blocks of 64 tokens",
     .routers = {1, 4},
     .right = 99,
     .block = 64},
    {.name = "churn",
     .says = "one engine 30 times faster",
     .routers = {4},
     .gossip = 100000,
     .engines = 1,
     .speed = 30},
    {.name = "churn-short",
     .says = "the same with short prompts, which share nothing",
     .routers = {4},
     .gossip = 100000,
     .engines = 1,
     .speed = 30,
     .generate = workload_distinct},
    {.name = "block-256",
     .says = "blocks of 256 tokens",
     .routers = {1, 4},
     .right = 99,
     .block = 256},
};

enum row { OFF, ON, PERFECT, ROWS };
static const char *const row_names[ROWS] = {"without events", "with events", "perfect"};

/* Sums over the seeds, or means of them. */
struct result {
    struct figures rows[ROWS];
    struct events_seen seen;
    double gossip_bytes_s[ROWS]; /* from each router to each other router */
    double error[ROWS];          /* error of predicted cached tokens, in % of the prompt's */
    double stored_s;             /* blocks of an engine a second */
};

static void figures_add(struct figures *sum, const struct figures *f, double share)
{
    sum->cached += share * f->cached;
    sum->ttft_s += share * f->ttft_s;
    sum->p50_s += share * f->p50_s;
    sum->p99_s += share * f->p99_s;
    sum->end_s += share * f->end_s;
    sum->deviation += share * f->deviation;
    sum->choose_us += share * f->choose_us;
    sum->count += f->count;
    sum->refused += f->refused;
}

static void seen_add(struct events_seen *sum, const struct events_seen *s)
{
    sum->feeds += s->feeds;
    sum->live += s->live;
    sum->speak += s->speak;
    sum->messages += s->messages;
    sum->told += s->told;
    sum->tied += s->tied;
    sum->unmatched += s->unmatched;
    sum->unclear += s->unclear;
    sum->gone += s->gone;
    sum->present += s->present;
    sum->shed += s->shed;
    sum->full += s->full;
    sum->right += s->right;
    sum->unsure += s->unsure;
    sum->wrong_gone += s->wrong_gone;
    sum->wrong_held += s->wrong_held;
    sum->certain_wrong += s->certain_wrong;
    sum->under_way += s->under_way;
}

/* A conversation that bypasses the routers stays at the first engine. */
static void pass_by(struct workload *w, bool any, unsigned engines)
{
    for (unsigned i = 0; i < w->count; i++) {
        bool passes = any && i % PAST_EACH == 0;
        for (unsigned j = 0; j < w->talks[i].count; j++)
            w->talks[i].asks[j].bypasses = (uint8_t)(passes ? 1 + i / PAST_EACH % engines : 0);
    }
}

static struct quality_case case_of(const struct scenario *s, const struct settings *set,
                                   const struct workload *w, unsigned routers, uint64_t seed)
{
    enum { TIER_TIMES = 4, TIER_TOKENS_PER_S = 100000, LEADING_ENGINES = 6, LEADING_CLIENTS = 18 };
    bool leads = s->leading != LEADING_NONE;
    unsigned engines = leads            ? LEADING_ENGINES
                       : s->engines > 0 ? s->engines
                                        : (unsigned)set->engines;
    double speed = s->speed > 0 ? s->speed : set->speed > 0 ? set->speed : 1;
    uint32_t block = s->block > 0 ? s->block : (uint32_t)set->block;
    struct engine_spec spec = engine_plain(speed, small_cache, block);
    spec.model.evict = s->evict;
    spec.model.tier_blocks = s->tier ? TIER_TIMES * spec.model.cache_blocks : 0;
    spec.model.tier_tokens_per_s = TIER_TOKENS_PER_S;
    spec.publishes = "vllm-0.24";
    spec.groups = s->groups;
    struct quality_case c = case_plain(w, engines, routers, spec);
    c.clients = leads ? LEADING_CLIENTS : (unsigned)set->clients;
    c.speed = speed;
    c.seed = seed;
    c.displaced_weight = set->displaced_weight;
    c.decode_weight = set->decode_weight;
    c.delay_ms = set->delay_ms;
    c.belief_each = BELIEF_EACH;
    c.events_delay_ms = set->events_delay_ms;
    c.answers_return = set->answers > 0;
    c.leading = s->leading;
    (void)snprintf(c.name, sizeof c.name, "%s, %u router%s", s->says, routers,
                   routers == 1 ? "" : "s");
    return c;
}

/* True if the scenario has a promise or was asked for. */
static bool is_wanted(const struct scenario *s, const struct settings *set, enum row row)
{
    if (set->policy)
        return strcmp(set->policy, row_names[row]) == 0;
    return row == ON || s->points > 0 || (row == OFF && (s->no_worse || s->gossip > 0));
}

static void play_seed(const struct scenario *s, const struct settings *set, struct workload *w,
                      unsigned routers, uint64_t seed, struct result *sum)
{
    workload_shuffle(w, seed);
    pass_by(w, s->past, (unsigned)set->engines);
    for (enum row row = OFF; row < ROWS; row++) {
        struct quality_case c = case_of(s, set, w, routers, seed);
        struct outcome o;
        if (!is_wanted(s, set, row))
            continue;
        c.events = row == ON;
        play(&c, row == PERFECT ? &chooser_perfect : &chooser_cache_aware, &o);
        struct figures f = figures_of(&o, &c);
        figures_add(&sum->rows[row], &f, 1 / set->seeds);
        double tokens = 0;
        for (unsigned i = 0; i < o.count; i++)
            tokens += o.samples[i].prompt_tokens;
        sum->error[row] += 100 * o.mispredicted_tokens / tokens / set->seeds;
        if (row == ON) {
            seen_add(&sum->seen, &o.events);
            sum->stored_s += (double)o.events.stored / o.duration_s / c.engines / set->seeds;
        }
        double pairs = routers * (routers - 1.0);
        if (routers > 1)
            sum->gossip_bytes_s[row] += o.gossip_bytes / o.duration_s / pairs / set->seeds;
        outcome_free(&o);
    }
}

static double percent(uint64_t part, uint64_t all)
{
    return all > 0 ? 100.0 * (double)part / (double)all : 0;
}

static double right_of(const struct events_seen *s)
{
    return percent(s->right, s->right + s->unsure + s->wrong_gone + s->wrong_held);
}

static void print_seen(const struct result *r, unsigned routers)
{
    const struct events_seen *s = &r->seen;
    if (r->error[OFF] > 0)
        printf(
            "\nerror of predicted cached tokens: %.1f %% of prompts without events, %.1f %% with",
            r->error[OFF], r->error[ON]);
    uint64_t all = s->right + s->unsure + s->wrong_gone + s->wrong_held;
    if (all > 0)
        printf(
            "\nbelieved of %llu checkpoints: %.2f %% right, %.2f %% gone that are there, %.2f %% "
            "there that are gone, %.2f %% unsure; events sure and wrong: %llu",
            (unsigned long long)all, right_of(s), percent(s->wrong_gone, all),
            percent(s->wrong_held, all), percent(s->unsure, all),
            (unsigned long long)s->certain_wrong);
    printf(
        "\nreaders: %u feeds, %u live, %u speak; %llu messages; of %llu answers %.1f %% tied, %.1f "
        "%% unmatched, %.1f %% unclear; %llu gone, %llu present, %llu times shed, %llu blocks "
        "without room\n",
        s->feeds, s->live, s->speak, (unsigned long long)s->messages, (unsigned long long)s->told,
        percent(s->tied, s->told), percent(s->unmatched, s->told), percent(s->unclear, s->told),
        (unsigned long long)s->gone, (unsigned long long)s->present, (unsigned long long)s->shed,
        (unsigned long long)s->full);
    if (routers > 1 && r->gossip_bytes_s[OFF] > 0)
        printf(
            "gossip from each router to each other: %.0f B/s without events, %.0f with, of engines "
            "that store %.0f blocks a second\n",
            r->gossip_bytes_s[OFF], r->gossip_bytes_s[ON], r->stored_s);
    fflush(stdout);
}

static void promise(const struct scenario *s, const struct result *r, unsigned routers)
{
    const struct figures *off = &r->rows[OFF], *on = &r->rows[ON], *perfect = &r->rows[PERFECT];
    const char *plural = routers == 1 ? "" : "s";
    double points = 100 * (on->cached - perfect->cached);
    if (s->points > 0)
        (void)record_promise(
            points >= -s->points && (s->ttft == 0 || on->ttft_s <= s->ttft * perfect->ttft_s),
            "events: %s, %u router%s: %+.1f points (%.1f), TTFT x %.2f of perfect "
            "knowledge; without events %+.1f points, x %.2f",
            s->name, routers, plural, points, s->points, on->ttft_s / perfect->ttft_s,
            100 * (off->cached - perfect->cached), off->ttft_s / perfect->ttft_s);
    if (s->no_worse)
        (void)record_promise(100 * (on->cached - off->cached) >= -1,
                             "events: %s, %u router%s: cached %.1f %% with events, %.1f %% without",
                             s->name, routers, plural, 100 * on->cached, 100 * off->cached);
    double more = (r->gossip_bytes_s[ON] - r->gossip_bytes_s[OFF]) / r->stored_s * CHURN_BLOCKS;
    if (s->gossip > 0)
        (void)record_promise(
            more <= s->gossip,
            "events: %s, %u router%s: %.1f KB/s from each router to each other for "
            "%d blocks a second (%.0f KB/s)",
            s->name, routers, plural, more / 1000, CHURN_BLOCKS, s->gossip / 1000);
    if (s->right > 0)
        (void)record_promise(right_of(&r->seen) >= s->right,
                             "events: %s, %u router%s: %.2f %% of checkpoints are believed right "
                             "(%.0f %%)",
                             s->name, routers, plural, right_of(&r->seen), s->right);
}

static void scenario_run(const struct scenario *s, const struct settings *set, struct workload *w,
                         unsigned routers)
{
    struct result r = {.gossip_bytes_s = {0}};
    struct talk *order = calloc(w->count, sizeof *order); /* the same for each seed */
    CHECK(order != NULL);
    memcpy(order, w->talks, w->count * sizeof *order);
    for (unsigned i = 0; i < (unsigned)set->seeds; i++) {
        play_seed(s, set, w, routers, (uint64_t)set->seed + i, &r);
        memcpy(w->talks, order, w->count * sizeof *order);
    }
    free(order);
    struct quality_case c = case_of(s, set, w, routers, (uint64_t)set->seed);
    report_head(&c);
    for (enum row row = OFF; row < ROWS; row++) {
        if (!is_wanted(s, set, row))
            continue;
        report_row(row_names[row], &r.rows[row], s->points > 0 ? &r.rows[PERFECT] : NULL);
        record_row(&c, row_names[row], row == PERFECT ? &chooser_perfect : &chooser_cache_aware,
                   &r.rows[row]);
    }
    print_seen(&r, routers);
    if (set->policy == NULL)
        promise(s, &r, routers);
}

void events_run(const struct settings *set)
{
    for (const struct scenario *s = scenarios; s < scenarios + ARRAY_LEN(scenarios); s++) {
        struct workload w;
        if (set->workload && strcmp(set->workload, s->name) != 0)
            continue;
        if (s->generate) {
            s->generate(&w, (uint64_t)set->seed, ASKS);
            w.open = false;
        } else if (!workload_coding(&w, set->traces, (unsigned)set->half,
                                    set->talks > 0 ? (unsigned)set->talks : TALKS)) {
            printf("events: %s: no traces in %s, skipped\n", s->name, set->traces);
            continue;
        }
        for (unsigned i = 0; i < COUNTS && s->routers[i] > 0; i++) {
            if (set->routers == 0 || (unsigned)set->routers == s->routers[i])
                scenario_run(s, set, &w, s->routers[i]);
        }
        workload_free(&w);
    }
}
