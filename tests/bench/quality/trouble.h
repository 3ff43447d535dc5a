#ifndef TESTS_BENCH_QUALITY_TROUBLE_H
#define TESTS_BENCH_QUALITY_TROUBLE_H

/* Runs all cases, or only the case called `name`. Returns the number of broken promises. */
unsigned troubles_run(const char *name);

#endif
