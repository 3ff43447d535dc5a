#include "tests/bench/quality/shadow.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "tests/bench/quality/calibrate.h"
#include "tests/bench/quality/cases.h"
#include "tests/bench/quality/draw.h"
#include "tests/bench/quality/record.h"
#include "tests/bench/quality/report.h"

enum { COMPARED_MAX = 256, SPREAD_ENGINES = 8 };
static const double points_max = 3, control_share = 0.1;

/* A case: in shadow mode, as predicted there, after the switch, and with a control group of
 * conversations. */
struct compared {
    double plain, predicted, switched, control;
    double plain_s, predicted_s, switched_s; /* mean TTFT; 0: no stream was compared */
    double moved;                            /* share of requests */
    bool told;                               /* the engines report cached tokens */
};

struct shadows {
    const struct settings *set;
    unsigned count;
    double points[COMPARED_MAX]; /* predicted minus actual points, if engines report them */
    unsigned untold;
};

static double share_of(const struct node_shadow_counts *c)
{
    return c->prompt_tokens > 0 ? (double)c->cached_tokens / (double)c->prompt_tokens : 0;
}

static double mean_of(double sum_s, const struct node_shadow_counts *c)
{
    return c->first_tokens > 0 ? sum_s / (double)c->first_tokens : 0;
}

static int by_time(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The time from which on the second half of the requests was sent. */
static double second_half_s(const struct outcome *o)
{
    double *sent = calloc(o->count + 1, sizeof *sent);
    CHECK(sent != NULL);
    for (unsigned i = 0; i < o->count; i++)
        sent[i] = o->samples[i].sent_s;
    qsort(sent, o->count, sizeof *sent, by_time);
    double half = sent[o->count / 2];
    free(sent);
    return half;
}

static struct compared compare(const struct quality_case *setup, const char *plain)
{
    struct quality_case c = *setup;
    struct compared out;
    struct outcome o;
    c.shadow = plain;
    play(&c, &chooser_cache_aware, &o);
    const struct node_shadow_counts *sides = o.shadow.sides;
    out.plain = share_of(&sides[NODE_SHADOW_PLAIN]);
    out.predicted = share_of(&sides[NODE_SHADOW_POLICY]);
    const struct node_shadow_counts *plain_side = &sides[NODE_SHADOW_PLAIN];
    out.plain_s = mean_of(plain_side->ttft_s, plain_side) * c.speed;
    out.predicted_s =
        mean_of(node_shadow_predicted_s(&o.shadow), &sides[NODE_SHADOW_POLICY]) * c.speed;
    out.told = sides[NODE_SHADOW_PLAIN].prompt_tokens > 0;
    out.moved = (double)o.shadow.moved / (double)(sides[0].requests > 0 ? sides[0].requests : 1);
    outcome_free(&o);
    c.shadow = NULL;
    play(&c, &chooser_cache_aware, &o);
    struct figures f = figures_between(&o, &c, second_half_s(&o), INFINITY);
    out.switched = f.cached;
    out.switched_s = f.ttft_s;
    outcome_free(&o);
    c.control_share = control_share;
    play(&c, &chooser_cache_aware, &o);
    out.control = share_of(&o.shadow.sides[NODE_SHADOW_PLAIN]);
    outcome_free(&o);
    return out;
}

static void line(struct shadows *s, const char *name, const struct quality_case *c)
{
    const char *plain = s->set->policy ? s->set->policy : "least_request";
    struct compared k = compare(c, plain);
    double points = 100 * (k.predicted - k.switched);
    CHECK(s->count < COMPARED_MAX);
    if (k.told)
        s->points[s->count++] = points;
    s->untold += !k.told;
    printf("| %-28s | %u | %5.1f %% | %5.1f %% | %5.1f %% | %+5.1f | %5.1f %% | %6.3f | %6.3f | "
           "%6.3f | %3.0f %% |\n",
           name, c->routers, 100 * k.plain, 100 * k.predicted, 100 * k.switched, points,
           100 * k.control, k.plain_s, k.predicted_s, k.switched_s, 100 * k.moved);
    fflush(stdout);
}

static int by_size(const void *a, const void *b)
{
    double x = fabs(*(const double *)a), y = fabs(*(const double *)b);
    return x < y ? -1 : x > y;
}

static void promise(struct shadows *s, const char *name)
{
    if (s->count == 0)
        return;
    qsort(s->points, s->count, sizeof s->points[0], by_size);
    unsigned within = 0;
    for (unsigned i = 0; i < s->count; i++)
        within += fabs(s->points[i]) <= points_max;
    double median = s->points[s->count / 2], worst = s->points[s->count - 1];
    (void)record_promise(fabs(median) <= points_max,
                         "shadow: %s: predicted share from cache less the share after the switch: "
                         "median %+.1f points, worst %+.1f (3); within 3 points: %u of %u; engines "
                         "of %u more do not report it",
                         name, median, worst, within, s->count, s->untold);
    s->count = s->untold = 0;
}

static void head(const char *name)
{
    printf(
        "\n%s\n\n| %-28s | R | as it is | shadow | switched | points | control | TTFT | shadow | "
        "switched | moved |\n|---|---|---|---|---|---|---|---|---|---|---|\n",
        name, "case");
}

/* Runs each case with a single router and with four. */
static void closed(struct shadows *s, const char *name, const struct workload *w, unsigned engines,
                   unsigned clients, double cache)
{
    static const unsigned routers[] = {1, 4};
    for (unsigned i = 0; i < ARRAY_LEN(routers); i++) {
        struct quality_case c =
            case_plain(w, engines, routers[i], engine_plain(1, cache, (uint32_t)s->set->block));
        c.clients = clients;
        c.seed = (uint64_t)s->set->seed;
        c.answers_return = true;
        line(s, name, &c);
    }
}

static void coding(struct shadows *s)
{
    static const double caches[] = {400000, 200000};
    struct workload w;
    if (!workload_coding(&w, s->set->traces, 2, (unsigned)s->set->talks)) {
        printf("shadow: no coding sessions in %s, skipped\n", s->set->traces);
        return;
    }
    workload_shuffle(&w, (uint64_t)s->set->seed);
    for (unsigned i = 0; i < ARRAY_LEN(caches); i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "coding, cache %.0f", caches[i]);
        closed(s, name, &w, SPREAD_ENGINES, (unsigned)s->set->clients, caches[i]);
    }
    workload_free(&w);
}

static void miniswe(struct shadows *s)
{
    enum { ENGINES = 4, CLIENTS = 12 };
    struct workload w;
    if (!workload_miniswe(&w, s->set->traces)) {
        printf("shadow: no agent runs in %s, skipped\n", s->set->traces);
        return;
    }
    closed(s, "miniswe", &w, ENGINES, CLIENTS, 400000);
    workload_free(&w);
}

static void conversation(struct shadows *s)
{
    static const double loads[] = {0.5, 0.7, 0.85};
    struct workload w;
    if (!workload_conversation(&w, s->set->traces)) {
        printf("shadow: no conversations in %s, skipped\n", s->set->traces);
        return;
    }
    workload_clip(&w, (uint64_t)s->set->cache / 2);
    for (unsigned i = 0; i < ARRAY_LEN(loads); i++) {
        char name[40];
        struct quality_case c = case_plain(&w, SPREAD_ENGINES, 4,
                                           engine_plain(1, s->set->cache, (uint32_t)s->set->block));
        c.seed = (uint64_t)s->set->seed;
        calibrate(&c, loads[i]);
        (void)snprintf(name, sizeof name, "conversation, load %.0f %%", 100 * loads[i]);
        line(s, name, &c);
    }
    workload_free(&w);
}

static void draws(struct shadows *s)
{
    for (unsigned i = 0; i < s->set->draws && i < COMPARED_MAX; i++) {
        char name[32];
        struct drawn d;
        if (s->set->draw > 0 && i + 1 != (unsigned)s->set->draw)
            continue;
        draw(&d, i, (unsigned)s->set->asks);
        (void)snprintf(name, sizeof name, "draw %u", i + 1);
        line(s, name, &d.setup);
        if (s->set->draw > 0)
            printf("\n%s\n", d.says);
        workload_free(&d.work);
    }
}

void shadow_run(const struct settings *set)
{
    static const struct {
        const char *name, *says;
        void (*run)(struct shadows *s);
    } parts[] = {{"coding", "coding sessions never tuned on", coding},
                 {"miniswe", "agent runs", miniswe},
                 {"conversation", "an hour of a chat service", conversation},
                 {"draws", "drawn workloads and fleets", draws}};
    struct shadows s = {.set = set};
    for (unsigned i = 0; i < ARRAY_LEN(parts); i++) {
        if (set->workload && strcmp(set->workload, parts[i].name) != 0)
            continue;
        head(parts[i].says);
        parts[i].run(&s);
        promise(&s, parts[i].says);
    }
}
