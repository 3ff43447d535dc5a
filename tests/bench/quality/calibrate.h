/* Finds the clients' speed for a given load of the engines. */
#ifndef TESTS_BENCH_QUALITY_CALIBRATE_H
#define TESTS_BENCH_QUALITY_CALIBRATE_H

#include "tests/bench/quality/play.h"

/* The engines' work as a share of their capacity: time for prefill, places for running requests, or
 * memory for contexts, whichever was used most. */
double load_of(const struct outcome *o, const struct quality_case *c);
/* Sets the pace so that the load with perfect knowledge is about `load`. */
void calibrate(struct quality_case *c, double load);

#endif
