/* The chain of a prompt whose tokens its engine told (vLLM's return_token_ids): hashed as they
 * pass, never kept. It is the chain that the engine's events give the prompt's last whole block
 * (tree.h), if it has no name space: no cache_salt, no adapter, no images.
 */
#ifndef NODE_KV_ASKED_H
#define NODE_KV_ASKED_H

#include <stdint.h>

#include "node/kv/digest.h"

struct kv_asked {
    const struct hash_secret *secret;
    uint32_t block_tokens, in_block; /* tokens of the unfinished one */
    uint64_t tokens;
    uint64_t chain; /* of the whole blocks; without any, of none */
    struct kv_digest digest;
};

/* `secret` is borrowed, and the cluster's. `block_tokens` is above 0. */
void kv_asked_begin(struct kv_asked *a, const struct hash_secret *secret, uint32_t block_tokens);
void kv_asked_token(struct kv_asked *a, uint32_t id);

#endif
