/* Turns of agents at engines in which nothing waits, with first tokens late by chance: no turn may
 * leave the cache. */
#ifndef TESTS_BENCH_QUALITY_NOISE_H
#define TESTS_BENCH_QUALITY_NOISE_H

/* A case of cases.h: returns the number of broken promises. */
unsigned case_noise(const char *traces);

#endif
