#include "base/prng.h"

#include "base/check.h"

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

void prng_seed(struct prng *p, uint64_t seed)
{
    for (int i = 0; i < 4; i++) { /* SplitMix64, as the authors recommend */
        seed += 0x9e3779b97f4a7c15u;
        uint64_t z = seed;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        p->state[i] = z ^ (z >> 31);
    }
}

uint64_t prng_next(struct prng *p)
{
    uint64_t *s = p->state;
    uint64_t result = rotl(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

uint64_t prng_below(struct prng *p, uint64_t below)
{
    CHECK(below != 0);
    unsigned __int128 m = (unsigned __int128)prng_next(p) * below;
    if ((uint64_t)m < below) {
        uint64_t threshold = -below % below;
        while ((uint64_t)m < threshold)
            m = (unsigned __int128)prng_next(p) * below;
    }
    return (uint64_t)(m >> 64);
}

double prng_unit(struct prng *p)
{
    return (double)(prng_next(p) >> 11) * 0x1.0p-53;
}
