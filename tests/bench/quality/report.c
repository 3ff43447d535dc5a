#include "tests/bench/quality/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double deviation(const double *values, unsigned count)
{
    double sum = 0, squares = 0;
    for (unsigned i = 0; i < count; i++) {
        sum += values[i];
        squares += values[i] * values[i];
    }
    double mean = sum / count;
    return mean > 0 ? sqrt(fmax(squares / count - mean * mean, 0)) / mean : 0;
}

struct figures figures_between(const struct outcome *o, const struct quality_case *c, double from_s,
                               double to_s)
{
    struct figures f = {.refused = o->refused, .deviation = deviation(o->computed_s, c->engines)};
    double *ttft = calloc(o->count + 1, sizeof *ttft);
    CHECK(ttft != NULL);
    double prompt = 0, cached = 0, first = 0, end = 0;
    for (unsigned i = 0; i < o->count; i++) {
        const struct sample *s = &o->samples[i];
        if (s->sent_s < from_s || s->sent_s >= to_s)
            continue;
        ttft[f.count++] = s->ttft_s;
        prompt += s->prompt_tokens;
        cached += s->cached_tokens;
        first += s->ttft_s;
        end += s->end_s;
    }
    if (f.count > 0) {
        qsort(ttft, f.count, sizeof *ttft, by_value);
        double by = c->speed;
        f.cached = cached / prompt;
        f.ttft_s = by * first / f.count;
        f.p50_s = by * ttft[f.count / 2];
        f.p99_s = by * ttft[(size_t)f.count * 99 / 100];
        f.end_s = by * end / f.count;
        f.choose_us = 1e6 * o->choose_cpu_s / f.count;
    }
    free(ttft);
    return f;
}

struct figures figures_of(const struct outcome *o, const struct quality_case *c)
{
    return figures_between(o, c, 0, INFINITY);
}

void report_head(const struct quality_case *c)
{
    printf("\n%s: %u conversations, %u requests; %u engines, %u router%s, time x %g, seed %llu\n\n",
           c->name, c->work->count, workload_asks(c->work), c->engines, c->routers,
           c->routers == 1 ? "" : "s", c->speed, (unsigned long long)c->seed);
    printf("| %-16s | cached  | TTFT mean |    p50    |    p99    | to the end | deviation | "
           "to perfect        | decision |\n|---|---|---|---|---|---|---|---|---|\n",
           "policy");
}

void report_row(const char *name, const struct figures *f, const struct figures *bound)
{
    char to_perfect[64] = "";
    if (bound)
        (void)snprintf(to_perfect, sizeof to_perfect, "%+.1f points, x %.2f",
                       100 * (f->cached - bound->cached), f->ttft_s / bound->ttft_s);
    printf(
        "| %-16s | %5.1f %% | %7.3f s | %7.3f s | %7.3f s | %8.2f s | %9.2f | %-17s | %5.1f us |",
        name, 100 * f->cached, f->ttft_s, f->p50_s, f->p99_s, f->end_s, f->deviation, to_perfect,
        f->choose_us);
    if (f->refused > 0)
        printf(" %u refused", f->refused);
    printf("\n");
    fflush(stdout);
}
