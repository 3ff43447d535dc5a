/* XXH3 (xxHash 0.8) with a secret, so that a client without the secret cannot craft collisions.
 *
 * The secret is 192 bytes, made by the shell once per process or cluster.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

enum { HASH_SECRET_BYTES = 192 }; /* XXH3_SECRET_SIZE_MIN is 136 */

struct hash_secret {
    unsigned char bytes[HASH_SECRET_BYTES];
};

struct hash128 {
    uint64_t low;
    uint64_t high;
};

/* Fills the secret from a 64-bit seed: only for hashes that nobody needs to keep secret, such as
 * ids that all routers must compute, and for tests. */
void hash_secret_from_seed(struct hash_secret *secret, uint64_t seed);

uint64_t hash64(const struct hash_secret *secret, const void *bytes, size_t len);
struct hash128 hash128(const struct hash_secret *secret, const void *bytes, size_t len);

/* An unkeyed 64-bit mix (the finaliser of SplitMix64) for tables whose keys no client can
 * choose. */
static inline uint64_t hash_mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

#endif
