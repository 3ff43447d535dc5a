/* How fast clients must be, so that engines are loaded so much. */
#ifndef TESTS_BENCH_QUALITY_CALIBRATE_H
#define TESTS_BENCH_QUALITY_CALIBRATE_H

#include "tests/bench/quality/play.h"

/* The share of what they can do that the engines did: of the time for prefill, of the places for
 * requests that run, or of the memory for their contexts, whichever was used most. */
double load_of(const struct outcome *o, const struct quality_case *c);
/* Sets the pace such that with perfect knowledge the load is about so high. */
void calibrate(struct quality_case *c, double load);

#endif
