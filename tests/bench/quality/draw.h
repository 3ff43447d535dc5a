/* A case drawn from a seed: a workload of a generator, and a fleet that nobody tuned anything for.
 */
#ifndef TESTS_BENCH_QUALITY_DRAW_H
#define TESTS_BENCH_QUALITY_DRAW_H

#include "tests/bench/quality/play.h"

enum { DRAWS_MIXED = 10000 }; /* from this number on each engine has a speed of its own */

struct drawn {
    struct workload work;
    struct quality_case setup;
    char says[512]; /* what was drawn, in words */
};

/* The pace is set such that the engines are loaded as drawn. The caller frees its work. */
void draw(struct drawn *out, unsigned number, unsigned asks);

#endif
