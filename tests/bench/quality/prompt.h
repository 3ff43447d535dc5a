/* A prompt as the bench knows it: which text it is made of, but not the text.
 *
 * It is a row of units of equal size. Equal prefixes of units are equal text. The engine cuts it
 * into blocks of tokens, the router into blocks of bytes; the two do not coincide, and a unit has
 * more or fewer bytes than the mean by what is in it.
 */
#ifndef TESTS_BENCH_QUALITY_PROMPT_H
#define TESTS_BENCH_QUALITY_PROMPT_H

#include "base/chain.h"
#include "base/hash.h"
#include "tests/engine-sim/text.h"

#define PROMPT_IMAGE 0x80000000u /* a unit that is part of an image: tokens, but no text */

struct prompt {
    uint32_t unit_tokens;
    uint32_t count;
    const uint32_t *units; /* what is in each; borrowed */
    uint32_t tail_tokens;  /* behind them, which no other prompt has */
    uint64_t space;        /* prompts of different spaces (models, salts, adapters) share nothing */
};

static inline uint64_t prompt_tokens(const struct prompt *p)
{
    return (uint64_t)p->count * p->unit_tokens + p->tail_tokens;
}

/* Whether `next` begins with all units of `p`. */
bool prompt_continues(const struct prompt *p, const struct prompt *next);
/* As the engine names its blocks: by all that comes before them too, or (`any_place`) not; then a
 * unit is so many whole blocks. `unique` stands for the tail; so many tokens before the end are
 * such that no later prompt has them, whatever its units say: the template drops them (thinking) or
 * has them elsewhere next time. The caller frees it. */
void prompt_names(const struct prompt *p, uint32_t block_tokens, bool any_place, uint64_t unique,
                  uint32_t dropped_tokens, struct sim_chain *out);
/* Text has more or fewer bytes a token; here by up to a fifth. An image has one length for the
 * router, whatever its tokens. */
uint64_t prompt_unit_bytes(const struct prompt *p, uint32_t i, double bytes_per_token);
/* As the router reads it. */
void prompt_chain(const struct prompt *p, double bytes_per_token, struct chain *out);
/* The same with policy chunk_aware: as one text, written out, which http/prompt.h cuts. It may hold
 * no images. */
void prompt_chunks(const struct prompt *p, double bytes_per_token, uint64_t unique,
                   const struct hash_secret *secret, struct chain *out);

#endif
