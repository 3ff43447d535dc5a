/* The figures of a run, and the table of a case. */
#ifndef TESTS_BENCH_QUALITY_REPORT_H
#define TESTS_BENCH_QUALITY_REPORT_H

#include "tests/bench/quality/chooser.h"

/* Figures of the answered requests. Seconds are the workload's: multiplied by the workload's
 * speed. */
struct figures {
    double cached; /* share of prompt tokens */
    double ttft_s, p50_s, p99_s, end_s;
    double deviation; /* standard deviation of the engines' seconds of prefill, as a share of the
                       * mean */
    double choose_us;
    unsigned count, refused;
};

struct figures figures_of(const struct outcome *o, const struct quality_case *c);
/* Figures of the requests sent in [from_s, to_s) of the run. */
struct figures figures_between(const struct outcome *o, const struct quality_case *c, double from_s,
                               double to_s);

/* `bound` NULL: none. */
void report_head(const struct quality_case *c);
void report_row(const char *name, const struct figures *f, const struct figures *bound);

#endif
