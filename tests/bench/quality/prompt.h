/* A prompt in the bench: the identity of the text, but not the text.
 *
 * A prompt is a row of units of equal size. Equal prefixes of units are equal text. The engine cuts
 * the text into blocks of tokens, the router into blocks of bytes. The two do not coincide, and the
 * bytes of a unit vary with the contents. */
#ifndef TESTS_BENCH_QUALITY_PROMPT_H
#define TESTS_BENCH_QUALITY_PROMPT_H

#include "base/chain.h"
#include "base/hash.h"
#include "tests/engine-sim/text.h"

#define PROMPT_IMAGE 0x80000000u /* a unit that is part of an image: tokens, but no text */

struct prompt {
    uint32_t unit_tokens;
    uint32_t count;
    const uint32_t *units; /* identity of each unit's text; borrowed */
    uint32_t tail_tokens;  /* behind the units; no other prompt has them */
    uint64_t space;        /* prompts of different spaces (models, salts, adapters) share nothing */
};

static inline uint64_t prompt_tokens(const struct prompt *p)
{
    return (uint64_t)p->count * p->unit_tokens + p->tail_tokens;
}

/* True if `next` begins with all units of `p`. */
bool prompt_continues(const struct prompt *p, const struct prompt *next);
/* The engine's names of the blocks: by all text up to the block, or (`any_place`) by the block
 * alone; then a unit has whole blocks only. `unique` identifies the tail. No later prompt has the
 * last `dropped_tokens`, with whatever units: the template drops them (thinking) or moves them next
 * time. The caller frees the result. */
void prompt_names(const struct prompt *p, uint32_t block_tokens, bool any_place, uint64_t unique,
                  uint32_t dropped_tokens, struct sim_chain *out);
/* The ratio of bytes to tokens varies with the text; here by up to a fifth. To the router all
 * images have the same length, whatever their tokens. */
uint64_t prompt_unit_bytes(const struct prompt *p, uint32_t i, double bytes_per_token);
/* The prompt as read by the router. */
void prompt_chain(const struct prompt *p, double bytes_per_token, struct chain *out);
/* The prompt as read with policy chunk_aware: a single text, written out, which http/prompt.h cuts.
 * The prompt may have no images. */
void prompt_chunks(const struct prompt *p, double bytes_per_token, uint64_t unique,
                   const struct hash_secret *secret, struct chain *out);

#endif
