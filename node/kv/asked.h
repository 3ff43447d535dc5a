/* The chain of a prompt with tokens given by its engine (vLLM's return_token_ids): hashed as they
 * pass, never stored. It equals the chain that the engine's events give the prompt's last whole
 * block (tree.h), if that has no name space: no cache_salt, no adapter, no images.
 *
 * An answer lists the tokens before it says how much of the prompt was cached. Until then each
 * block's digest is stored: 8 bytes for each of the first KV_FRONT_BLOCKS_MAX blocks.
 */
#ifndef NODE_KV_ASKED_H
#define NODE_KV_ASKED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "node/kv/digest.h"
#include "node/kv/tree.h"

struct kv_asked {
    const struct hash_secret *secret;
    uint32_t block_tokens, in_block; /* in_block: tokens of the unfinished block */
    uint64_t tokens;
    uint64_t chain; /* of the whole blocks so far */
    struct kv_digest digest;
    struct buf digests; /* of the first whole blocks, */
    bool gap;           /* and not of all of them */
};

/* `secret` is borrowed, and is the cluster's. `block_tokens` is above 0. */
void kv_asked_begin(struct kv_asked *a, const struct hash_secret *secret, uint32_t block_tokens);
void kv_asked_token(struct kv_asked *a, uint32_t id);
/* The front where a prompt with so many cached tokens went on. `blocks` 0: at the prompt's start,
 * nowhere, or beyond the stored digests. */
struct kv_front kv_asked_front(const struct kv_asked *a, uint32_t cached_tokens);
void kv_asked_end(struct kv_asked *a);

#endif
