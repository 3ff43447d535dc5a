/* A case drawn from a seed: a generated workload, and a fleet for which nothing was tuned. */
#ifndef TESTS_BENCH_QUALITY_DRAW_H
#define TESTS_BENCH_QUALITY_DRAW_H

#include "tests/bench/quality/play.h"

enum { DRAWS_MIXED = 10000 }; /* from this number on each engine has a random speed */

struct drawn {
    struct workload work;
    struct quality_case setup;
    char says[512]; /* the draw in words */
};

/* The pace is set so that the engines have the drawn load. The caller frees the work. */
void draw(struct drawn *out, unsigned number, unsigned asks);

#endif
