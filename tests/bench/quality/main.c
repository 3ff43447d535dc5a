/* The quality of routing, against rivals and perfect knowledge, in virtual time.
 * tests/bench/quality/README.md describes the sections and settings. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "tests/bench/quality/ablation.h"
#include "tests/bench/quality/calibrate.h"
#include "tests/bench/quality/cases.h"
#include "tests/bench/quality/draw.h"
#include "tests/bench/quality/events.h"
#include "tests/bench/quality/record.h"
#include "tests/bench/quality/regret.h"
#include "tests/bench/quality/report.h"
#include "tests/bench/quality/settings.h"
#include "tests/bench/quality/shadow.h"
#include "tests/bench/quality/trouble.h"

static struct settings set;

struct compared { /* of all rows of a table; rows left out count nothing */
    struct figures own, perfect, rival;
    const char *rival_name; /* the rival with the least mean TTFT; NULL: none */
};

/* Runs all rows of the case's table. */
static void run_case(const struct quality_case *c, struct compared *out)
{
    struct outcome o;
    struct figures bound;
    *out = (struct compared){0};
    report_head(c);
    play(c, &chooser_perfect, &o);
    out->perfect = bound = figures_of(&o, c);
    outcome_free(&o);
    for (unsigned i = 0; choosers[i]; i++) {
        if (set.policy && strcmp(set.policy, choosers[i]->name) != 0)
            continue;
        if (choosers[i] == &chooser_perfect) {
            report_row(choosers[i]->name, &bound, &bound);
            record_row(c, "", choosers[i], &bound);
            continue;
        }
        play(c, choosers[i], &o);
        struct figures f = figures_of(&o, c);
        report_row(choosers[i]->name, &f, &bound);
        record_row(c, "", choosers[i], &f);
        if (choosers[i] == &chooser_cache_aware) {
            out->own = f;
        } else if (!choosers[i]->is_bound && (!out->rival_name || f.ttft_s < out->rival.ttft_s)) {
            out->rival = f;
            out->rival_name = choosers[i]->name;
        }
        outcome_free(&o);
    }
}

/* Conversations in closed loop: engines that the defaults fit, and others; one router, and
 * several. */
static void closed_loop(const char *name, const struct workload *work, unsigned engines,
                        unsigned clients)
{
    const double some_speeds[] = {1, 30, 0.1}, some_routers[] = {1, 4, 8};
    const double *speeds = set.speed > 0 ? &set.speed : some_speeds;
    const double *routers = set.routers > 0 ? &set.routers : some_routers;
    unsigned speed_count = set.speed > 0 ? 1 : ARRAY_LEN(some_speeds);
    unsigned router_count = set.routers > 0 ? 1 : ARRAY_LEN(some_routers);
    for (unsigned i = 0; i < speed_count * router_count; i++) {
        double speed = speeds[i / router_count], count = routers[i % router_count];
        struct quality_case c = case_plain(work, engines, (unsigned)count,
                                           engine_plain(speed, set.cache, (uint32_t)set.block));
        c.clients = clients;
        c.speed = speed;
        c.seed = (uint64_t)set.seed;
        c.delay_ms = set.delay_ms;
        c.answers_return = set.answers > 0;
        c.displaced_weight = set.displaced_weight;
        c.decode_weight = set.decode_weight;
        c.generation_s = set.generation_s;
        struct compared got;
        (void)snprintf(c.name, sizeof c.name, "%s, engines x %g, %g router%s", name, speed, count,
                       count == 1 ? "" : "s");
        run_case(&c, &got);
        double most = count == 1 ? 1.15 : 1.25;
        double points = 100 * (got.own.cached - got.perfect.cached);
        if (got.own.count > 0)
            (void)record_promise(points >= -1 && got.own.ttft_s <= most * got.perfect.ttft_s,
                                 "%s: engines x %g, %g routers: %+.1f points (1), TTFT x %.2f "
                                 "(%.2f) of perfect knowledge",
                                 name, speed, count, points, got.own.ttft_s / got.perfect.ttft_s,
                                 most);
    }
}

static void coding(void)
{
    struct workload work;
    if (!workload_coding(&work, set.traces, (unsigned)set.half, (unsigned)set.talks)) {
        printf("coding: no traces in %s, skipped\n", set.traces);
        return;
    }
    workload_shuffle(&work, (uint64_t)set.seed);
    closed_loop("coding", &work, (unsigned)set.engines, (unsigned)set.clients);
    workload_free(&work);
}

/* The coding sessions of few clients, which put a line of their own in front of each prompt. */
static void leading(void)
{
    enum { ENGINES = 6, CLIENTS = 18 };
    static const struct {
        enum leading leading;
        const char *says;
    } kinds[] = {{LEADING_CONSTANT, "a constant leading line"},
                 {LEADING_DROPPED, "a changing one that engines drop"},
                 {LEADING_COUNTED, "a changing one that counts"}};
    const unsigned some_routers[] = {1, 3};
    struct workload work;
    if (!workload_coding(&work, set.traces, (unsigned)set.half,
                         set.talks > 0 ? (unsigned)set.talks : CLIENTS)) {
        printf("leading: no traces in %s, skipped\n", set.traces);
        return;
    }
    workload_shuffle(&work, (uint64_t)set.seed);
    for (unsigned i = 0; i < ARRAY_LEN(some_routers); i++) {
        unsigned routers = set.routers > 0 ? (unsigned)set.routers : some_routers[i];
        struct figures got[ARRAY_LEN(kinds)];
        for (unsigned n = 0; n < ARRAY_LEN(kinds); n++) {
            struct outcome o;
            struct quality_case c = case_plain(
                &work, ENGINES, routers,
                engine_plain(set.speed > 0 ? set.speed : 1, set.cache, (uint32_t)set.block));
            c.clients = CLIENTS;
            c.seed = (uint64_t)set.seed;
            c.delay_ms = set.delay_ms;
            c.leading = kinds[n].leading;
            (void)snprintf(c.name, sizeof c.name, "%s, %u router%s", kinds[n].says, routers,
                           routers == 1 ? "" : "s");
            report_head(&c);
            play(&c, &chooser_cache_aware, &o);
            got[n] = figures_of(&o, &c);
            report_row(chooser_cache_aware.name, &got[n], NULL);
            record_row(&c, "", &chooser_cache_aware, &got[n]);
            outcome_free(&o);
        }
        double points = 100 * (got[1].cached - got[0].cached);
        (void)record_promise(points >= -2,
                             "leading: %u routers: cached %.1f %% with a changing line that "
                             "engines drop, %.1f %% with a constant one (2 points)",
                             routers, 100 * got[1].cached, 100 * got[0].cached);
        if (set.routers > 0)
            break;
    }
    workload_free(&work);
}

/* Few runs, so few engines. */
static void miniswe(void)
{
    enum { ENGINES = 4, CLIENTS = 12 };
    struct workload work;
    if (!workload_miniswe(&work, set.traces)) {
        printf("miniswe: no traces in %s, skipped\n", set.traces);
        return;
    }
    closed_loop("miniswe", &work, ENGINES, CLIENTS);
    workload_free(&work);
}

/* Arrivals of services, at 70, 85 and 95 % of the engines' capacity. */
static void arrivals(void)
{
    static const double loads[] = {0.7, 0.85, 0.95};
    static const struct {
        const char *name;
        bool (*read)(struct workload *out, const char *folder);
    } traces[] = {{"conversation", workload_conversation}, {"azure", workload_azure}};
    for (unsigned i = 0; i < ARRAY_LEN(traces) * ARRAY_LEN(loads); i++) {
        const char *name = traces[i / ARRAY_LEN(loads)].name;
        double load = loads[i % ARRAY_LEN(loads)];
        struct workload work;
        if (set.workload && strcmp(set.workload, name) != 0)
            continue;
        if (!traces[i / ARRAY_LEN(loads)].read(&work, set.traces)) {
            printf("%s: no traces in %s, skipped\n", name, set.traces);
            continue;
        }
        workload_clip(&work, (uint64_t)set.cache / 2);
        struct engine_spec engine =
            engine_plain(set.speed > 0 ? set.speed : 1, set.cache, (uint32_t)set.block);
        struct quality_case c = case_plain(&work, (unsigned)set.engines,
                                           set.routers > 0 ? (unsigned)set.routers : 1, engine);
        c.seed = (uint64_t)set.seed;
        (void)snprintf(c.name, sizeof c.name, "%s at %.0f %% load", name, 100 * load);
        calibrate(&c, load);
        struct compared got;
        run_case(&c, &got);
        if (got.own.count > 0 && got.rival_name)
            (void)record_promise(got.own.ttft_s <= set.regret * got.rival.ttft_s,
                                 "%s: %.0f %% load: TTFT %.2f s, x %.2f of the best policy (%.1f; "
                                 "%s, %.2f s); perfect knowledge %.2f s",
                                 name, 100 * load, got.own.ttft_s,
                                 got.own.ttft_s / got.rival.ttft_s, set.regret, got.rival_name,
                                 got.rival.ttft_s, got.perfect.ttft_s);
        workload_free(&work);
    }
}

static void draws(void)
{
    struct regrets v;
    regrets_open(&v);
    if (set.draw > 0)
        regrets_draw(&v, (unsigned)set.draw - 1, (unsigned)set.asks, REGRETS_TABLE);
    for (unsigned i = 0; i < set.draws && set.draw == 0; i++)
        regrets_draw(&v, i, (unsigned)set.asks, REGRETS_LINE);
    for (unsigned i = 0; i < set.mixed && set.draw == 0; i++)
        regrets_draw(&v, DRAWS_MIXED + i, (unsigned)set.asks, REGRETS_LINE);
    regrets_report(&v);
    if (v.count > 1) {
        double median = regrets_at(&v, MEASURE_TTFT, 0.5), worst = regrets_at(&v, MEASURE_TTFT, 1);
        (void)record_promise(
            median <= 1.1 && worst <= set.regret,
            "regret: %u draws: mean TTFT, median x %.2f (1.1), worst x %.2f (%.1f) "
            "of the best policy of each",
            v.count, median, worst, set.regret);
    }
    regrets_close(&v);
}

static bool wanted(const char *section)
{
    return !set.section || strcmp(set.section, section) == 0;
}

int main(int argc, char **argv)
{
    settings_read(&set, argc, argv);
    ablation_leave_out(set.without);
    record_open(set.json);
    if (wanted("cases"))
        (void)(cases_run(set.workload, set.traces) + troubles_run(set.workload));
    if (wanted("coding"))
        coding();
    if (wanted("leading"))
        leading();
    if (wanted("miniswe"))
        miniswe();
    if (wanted("arrivals"))
        arrivals();
    if (wanted("draws"))
        draws();
    if (set.section && strcmp(set.section, "ablation") == 0)
        ablation_run(&set);
    if (set.section && strcmp(set.section, "events") == 0)
        events_run(&set);
    if (set.section && strcmp(set.section, "shadow") == 0)
        shadow_run(&set);
    record_close();
    return (int)record_verdict(set.known);
}
