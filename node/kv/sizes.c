#include "node/kv/sizes.h"

static unsigned votes(const uint32_t *sizes, unsigned count, uint32_t size)
{
    unsigned n = 0;
    for (unsigned i = 0; i < count; i++)
        n += sizes[i] == size;
    return n;
}

uint32_t kv_sizes_choose(const uint32_t *sizes, unsigned count, uint32_t current)
{
    uint32_t best = current;
    unsigned most = current > 0 ? 2 * votes(sizes, count, current) : 0;
    for (unsigned i = 0; i < count; i++) {
        unsigned n = sizes[i] > 0 && sizes[i] != best ? votes(sizes, count, sizes[i]) : 0;
        if (n > most) {
            best = sizes[i];
            most = n;
        }
    }
    return best;
}
