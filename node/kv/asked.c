#include "node/kv/asked.h"

#include "base/check.h"
#include "node/kv/tree.h"

void kv_asked_begin(struct kv_asked *a, const struct hash_secret *secret, uint32_t block_tokens)
{
    CHECK(block_tokens > 0);
    *a = (struct kv_asked){.secret = secret,
                           .block_tokens = block_tokens,
                           .chain = kv_chain_root(secret, block_tokens, 0)};
}

void kv_asked_token(struct kv_asked *a, uint32_t id)
{
    a->tokens++;
    kv_digest_token(&a->digest, a->secret, id);
    if (++a->in_block < a->block_tokens)
        return;
    a->in_block = 0;
    a->chain = kv_chain(a->secret, a->chain, kv_digest_end(&a->digest, a->secret));
}
