/* xoshiro256** (Blackman and Vigna, 2018): small, fast, seeded by the caller. Not for secrets. */
#ifndef BASE_PRNG_H
#define BASE_PRNG_H

#include <stdint.h>

struct prng {
    uint64_t state[4];
};

void prng_seed(struct prng *p, uint64_t seed);
uint64_t prng_next(struct prng *p);

/* Uniform in [0, below), without modulo bias (Lemire, 2019); `below` must not be 0. */
uint64_t prng_below(struct prng *p, uint64_t below);

/* Uniform in [0, 1). */
double prng_unit(struct prng *p);

#endif
