/* Computes the digest of a block's tokens, token by token. Token ids from an engine's events
 * (batch.h) and answers (asked.h) give the same digest.
 *
 *     struct kv_digest d = {0};
 *     for each token of the block:
 *         kv_digest_token(&d, secret, id);
 *     digest = kv_digest_end(&d, secret);    `d` is then ready for the next block
 */
#ifndef NODE_KV_DIGEST_H
#define NODE_KV_DIGEST_H

#include <stdint.h>

#include "base/hash.h"

enum { KV_DIGEST_TOKENS = 256 }; /* tokens hashed at once; longer blocks are hashed in parts */

struct kv_digest {
    uint64_t so_far;  /* digest of the tokens hashed so far */
    uint32_t waiting; /* number of tokens in `ids`, which are not hashed yet */
    uint32_t ids[KV_DIGEST_TOKENS];
};

static inline uint64_t kv_digest_mix(const struct hash_secret *secret, uint64_t so_far,
                                     uint64_t next)
{
    const uint64_t words[] = {so_far, next};
    return hash64(secret, words, sizeof words);
}

static inline void kv_digest_waiting(struct kv_digest *d, const struct hash_secret *secret)
{
    uint64_t some = hash64(secret, d->ids, d->waiting * sizeof d->ids[0]);
    d->so_far = d->so_far == 0 ? some : kv_digest_mix(secret, d->so_far, some);
    d->waiting = 0;
}

static inline void kv_digest_token(struct kv_digest *d, const struct hash_secret *secret,
                                   uint64_t id)
{
    d->ids[d->waiting++] = (uint32_t)id;
    if (d->waiting == KV_DIGEST_TOKENS)
        kv_digest_waiting(d, secret);
}

static inline uint64_t kv_digest_end(struct kv_digest *d, const struct hash_secret *secret)
{
    if (d->waiting > 0)
        kv_digest_waiting(d, secret);
    uint64_t digest = d->so_far;
    d->so_far = 0;
    return digest;
}

#endif
