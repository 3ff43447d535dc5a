#ifndef TESTS_BENCH_QUALITY_TROUBLE_H
#define TESTS_BENCH_QUALITY_TROUBLE_H

/* All of them, or the one of that name. Returns how many promises were broken. */
unsigned troubles_run(const char *name);

#endif
