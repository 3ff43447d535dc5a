/* The regret of the default policy: the excess over the best rival of each case. */
#ifndef TESTS_BENCH_QUALITY_REGRET_H
#define TESTS_BENCH_QUALITY_REGRET_H

#include "tests/bench/quality/report.h"

enum { REGRET_DRAWS_MAX = 1024 };

enum measure { MEASURE_TTFT, MEASURE_P99, MEASURE_END, MEASURE_CACHED, MEASURES };

struct regret {
    char says[256];
    unsigned number;
    double ratio[MEASURES];     /* times the best; for MEASURE_CACHED: points below the best */
    const char *best[MEASURES]; /* policy */
    struct figures own, perfect;
};

struct regrets {
    unsigned count;
    struct regret *all;
};

void regrets_open(struct regrets *v);
enum regrets_print { REGRETS_QUIET, REGRETS_LINE, REGRETS_TABLE };

/* Plays draw `number` under all policies; REGRETS_QUIET: without perfect knowledge. */
void regrets_draw(struct regrets *v, unsigned number, unsigned asks, enum regrets_print print);
/* Median and worst of a measure. */
double regrets_at(const struct regrets *v, enum measure m, double share);
/* Prints the regrets, and the worst cases. */
void regrets_report(struct regrets *v);
void regrets_close(struct regrets *v);

#endif
