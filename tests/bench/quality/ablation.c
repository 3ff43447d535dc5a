#include "tests/bench/quality/ablation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/slice.h"
#include "node/replica/ablation.h"
#include "node/replica/constants.h"
#include "tests/bench/quality/calibrate.h"
#include "tests/bench/quality/cases.h"
#include "tests/bench/quality/draw.h"
#include "tests/bench/quality/report.h"

/* Other seeds of the routers, because any small difference changes all later choices. */
enum { SEEDS = 3 };

static const struct part {
    const char *name, *says;
} parts[] = {
#define PART(name, says) {#name, says},
    NODE_ABLATION_MAP(PART)
#undef PART
};

static const struct number {
    const char *name, *unit, *says;
    double value;
} numbers[] = {
#define NUMBER(name, value, unit, says, by) {#name, unit, says, value},
    NODE_RULE_MAP(NUMBER)
#undef NUMBER
};

static void part_set(unsigned part)
{
#ifdef GRAPEVINE_ABLATION
    node_left_out[part] = true;
#else
    (void)part;
#endif
}

static void number_set(unsigned number, double times)
{
#ifdef GRAPEVINE_ABLATION
    node_rules[number] *= times;
#else
    (void)(number + times);
#endif
}

/* Leaves out "PART", or sets "NUMBER=TIMES". */
static bool leave_out(struct slice name)
{
    char text[64];
    struct slice times = name, number = slice_cut(&times, '=');
    for (unsigned i = 0; i < ARRAY_LEN(parts); i++) {
        if (slice_equal(name, slice_of_cstr(parts[i].name))) {
            part_set(i);
            return true;
        }
    }
    for (unsigned i = 0; i < ARRAY_LEN(numbers); i++) {
        if (slice_equal(number, slice_of_cstr(numbers[i].name)) &&
            slice_to_cstr(times, text, sizeof text) && strtod(text, NULL) > 0) {
            number_set(i, strtod(text, NULL));
            return true;
        }
    }
    return false;
}

static void list_parts(void)
{
    for (unsigned i = 0; i < ARRAY_LEN(parts); i++)
        printf("%s\t%s\n", parts[i].name, parts[i].says);
    for (unsigned i = 0; i < ARRAY_LEN(numbers); i++)
        printf("%s=\t%g %s: %s\n", numbers[i].name, numbers[i].value, numbers[i].unit,
               numbers[i].says);
}

void ablation_leave_out(const char *names)
{
    struct slice rest = slice_of_cstr(names ? names : "");
    if (slice_equal(rest, SLICE("list"))) {
        list_parts();
        exit(0);
    }
#ifndef GRAPEVINE_ABLATION
    if (rest.len > 0) {
        fprintf(stderr, "quality-bench: --without needs the build of VARIANT=ablation\n");
        exit(2);
    }
#endif
    while (rest.len > 0) {
        struct slice name = slice_cut(&rest, ',');
        if (leave_out(name))
            continue;
        fprintf(stderr,
                "quality-bench: no part %.*s; --without list has them, "
                "NAME=0.5 halves a number\n",
                (int)name.len, name.at);
        exit(2);
    }
}

/* The same clients and engines for each seed of the routers. */
static void runs(const char *group, const char *name, const struct quality_case *setup)
{
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        struct quality_case c = *setup;
        struct outcome o;
        c.router_seed = 1000 * seed;
        play(&c, &chooser_cache_aware, &o);
        struct figures f = figures_of(&o, &c);
        outcome_free(&o);
        printf("%s\t%s\t%u\t%.6g\t%.6g\t%.6g\t%.6g\n", group, name, seed, f.ttft_s, f.p99_s,
               f.end_s, 100 * f.cached);
        fflush(stdout);
    }
}

static void draw_runs(unsigned number, unsigned asks)
{
    struct drawn d;
    char name[16];
    draw(&d, number, asks);
    (void)snprintf(name, sizeof name, "%u", number + 1);
    runs("draws", name, &d.setup);
    workload_free(&d.work);
}

static void coding_runs(const struct settings *set)
{
    static const double speeds[] = {1, 30, 0.1};
    static const unsigned routers[] = {1, 4};
    struct workload work;
    if (!workload_coding(&work, set->traces, (unsigned)set->half, (unsigned)set->talks)) {
        fprintf(stderr, "coding: no traces in %s, skipped\n", set->traces);
        return;
    }
    workload_shuffle(&work, (uint64_t)set->seed);
    for (unsigned i = 0; i < ARRAY_LEN(speeds) * ARRAY_LEN(routers); i++) {
        double speed = speeds[i / ARRAY_LEN(routers)];
        unsigned count = routers[i % ARRAY_LEN(routers)];
        struct quality_case c = case_plain(&work, (unsigned)set->engines, count,
                                           engine_plain(speed, set->cache, (uint32_t)set->block));
        char name[32];
        c.clients = (unsigned)set->clients;
        c.speed = speed;
        c.seed = (uint64_t)set->seed;
        c.delay_ms = set->delay_ms;
        (void)snprintf(name, sizeof name, "x%g, %u", speed, count);
        runs("coding", name, &c);
    }
    workload_free(&work);
}

static void arrival_runs(const struct settings *set)
{
    static const double loads[] = {0.7, 0.95};
    static const struct {
        const char *name;
        bool (*read)(struct workload *out, const char *folder);
    } traces[] = {{"conversation", workload_conversation}, {"azure", workload_azure}};
    for (unsigned i = 0; i < ARRAY_LEN(traces) * ARRAY_LEN(loads); i++) {
        struct workload work;
        if (!traces[i / ARRAY_LEN(loads)].read(&work, set->traces)) {
            fprintf(stderr, "%s: no traces in %s, skipped\n", traces[i / ARRAY_LEN(loads)].name,
                    set->traces);
            continue;
        }
        double load = loads[i % ARRAY_LEN(loads)];
        char name[32];
        workload_clip(&work, (uint64_t)set->cache / 2);
        struct quality_case c = case_plain(&work, (unsigned)set->engines, 1,
                                           engine_plain(1, set->cache, (uint32_t)set->block));
        c.seed = (uint64_t)set->seed;
        calibrate(&c, load);
        (void)snprintf(name, sizeof name, "%s %.0f %%", traces[i / ARRAY_LEN(loads)].name,
                       100 * load);
        runs("arrivals", name, &c);
        workload_free(&work);
    }
}

void ablation_run(const struct settings *set)
{
    for (unsigned i = 0; i < set->draws; i++)
        draw_runs(i, (unsigned)set->asks);
    for (unsigned i = 0; i < set->mixed; i++)
        draw_runs(DRAWS_MIXED + i, (unsigned)set->asks);
    if (!set->workload || strcmp(set->workload, "draws") != 0) {
        coding_runs(set);
        arrival_runs(set);
    }
}
