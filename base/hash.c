#include "base/hash.h"

#define XXH_STATIC_LINKING_ONLY
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/prng.h"

void hash_secret_from_seed(struct hash_secret *secret, uint64_t seed)
{
    struct prng prng;
    prng_seed(&prng, seed);
    for (size_t i = 0; i < HASH_SECRET_BYTES; i++)
        secret->bytes[i] = (unsigned char)prng_next(&prng);
}

uint64_t hash64(const struct hash_secret *secret, const void *bytes, size_t len)
{
    return XXH3_64bits_withSecret(bytes, len, secret->bytes, HASH_SECRET_BYTES);
}

struct hash128 hash128(const struct hash_secret *secret, const void *bytes, size_t len)
{
    XXH128_hash_t h = XXH3_128bits_withSecret(bytes, len, secret->bytes, HASH_SECRET_BYTES);
    return (struct hash128){.low = h.low64, .high = h.high64};
}
