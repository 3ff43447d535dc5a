/* The worth of each part of the routing rule: the default policy alone, with parts left out
 * (node/replica/ablation.h), on the draws, the coding sessions and the arrivals. A line for each
 * run; tests/bench/ablation.py runs this with each part left out and compares. */
#ifndef TESTS_BENCH_QUALITY_ABLATION_H
#define TESTS_BENCH_QUALITY_ABLATION_H

#include "tests/bench/quality/settings.h"

/* `names` of parts, or a number of node/replica/constants.h and a factor for it (FEW=0.5),
 * separated by commas; NULL: none. Exits on an unknown name, or if the build cannot leave parts
 * out. */
void ablation_leave_out(const char *names);
void ablation_run(const struct settings *set);

#endif
