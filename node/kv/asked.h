/* The hash chain of a prompt, computed from the token ids in the engine's answer (vLLM's
 * return_token_ids). The ids are hashed as they pass, and never stored. The engine's KV events give
 * the same hash for the prompt's last whole block (kv_chain() in tree.h), unless the prompt has a
 * cache_salt, an adapter or images.
 *
 * An answer lists the tokens before it reports the cached part of the prompt. Until then each
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
    uint32_t block_tokens, in_block; /* tokens per block, and tokens so far of the present block */
    uint64_t tokens;                 /* tokens so far */
    uint64_t chain;                  /* chain of the whole blocks so far */
    struct kv_digest digest;
    struct buf digests; /* digests of the first whole blocks */
    bool gap;           /* no more digests are stored: the limit was reached, or memory ran out */
};

/* Begins a prompt. `secret` is the cluster's, borrowed. `block_tokens` must be above 0. */
void kv_asked_begin(struct kv_asked *a, const struct hash_secret *secret, uint32_t block_tokens);
void kv_asked_token(struct kv_asked *a, uint32_t id);
/* Returns the front at which the prompt continues after `cached_tokens` tokens from the cache.
 * `blocks` is 0 if the front is the prompt's start, or lies beyond the prompt or the stored
 * digests. */
struct kv_front kv_asked_front(const struct kv_asked *a, uint32_t cached_tokens);
void kv_asked_end(struct kv_asked *a);

#endif
