#include "node/kv/asked.h"

#include <string.h>

#include "base/check.h"
#include "node/kv/tree.h"

void kv_asked_begin(struct kv_asked *a, const struct hash_secret *secret, uint32_t block_tokens)
{
    CHECK(block_tokens > 0);
    *a = (struct kv_asked){.secret = secret,
                           .block_tokens = block_tokens,
                           .chain = kv_chain_root(secret, block_tokens, 0)};
}

/* Stores the digest. Once the limit is reached or memory has run out, stores no more. */
static void digest_keep(struct kv_asked *a, uint64_t digest)
{
    bool more = a->digests.len < KV_FRONT_BLOCKS_MAX * sizeof digest;
    a->gap = a->gap || !more || buf_append(&a->digests, &digest, sizeof digest) != ERR_OK;
}

void kv_asked_token(struct kv_asked *a, uint32_t id)
{
    a->tokens++;
    kv_digest_token(&a->digest, a->secret, id);
    if (++a->in_block < a->block_tokens)
        return;
    a->in_block = 0;
    uint64_t digest = kv_digest_end(&a->digest, a->secret);
    a->chain = kv_chain(a->secret, a->chain, digest);
    digest_keep(a, digest);
}

struct kv_front kv_asked_front(const struct kv_asked *a, uint32_t cached_tokens)
{
    struct kv_front front = {.blocks = cached_tokens / a->block_tokens,
                             .chain = kv_chain_root(a->secret, a->block_tokens, 0)};
    if ((front.blocks + 1) * sizeof front.digest > a->digests.len)
        return (struct kv_front){.blocks = 0};
    for (uint32_t i = 0; i <= front.blocks; i++) {
        if (i > 0)
            front.chain = kv_chain(a->secret, front.chain, front.digest);
        memcpy(&front.digest, a->digests.at + i * sizeof front.digest, sizeof front.digest);
    }
    return front;
}

void kv_asked_end(struct kv_asked *a)
{
    buf_free(&a->digests);
}
