/* Turns of agents at engines in which nothing waits, and whose first tokens are late by chance:
 * none is to leave its cache. */
#ifndef TESTS_BENCH_QUALITY_NOISE_H
#define TESTS_BENCH_QUALITY_NOISE_H

/* As a case of cases.h: how many of its promises were not kept. */
unsigned case_noise(const char *traces);

#endif
