/* The simulator's tokenizer and the chained hash of a token sequence. Pure.
 *
 * Words are cut roughly as by a byte-pair tokenizer, 3.5 to 5 bytes a token:
 *
 *   up to 12 letters or underscores, 3 digits or 4 signs, each with a leading space;
 *   up to 16 blanks and line ends
 *
 * A token's id is a hash of the token's bytes, equal in all simulators. A block's name is a hash
 * over the ids from the start of the prompt to the block's end, as in prefix caches. */
#ifndef TESTS_ENGINE_SIM_TEXT_H
#define TESTS_ENGINE_SIM_TEXT_H

#include <stdbool.h>

#include "base/slice.h"

enum { SIM_VOCABULARY = 1 << 20, SIM_TOKEN_BYTES_MAX = 16, SIM_SPACE_BYTES = 64 };

/* Cuts the next token off the front of `text`, which must not be empty. */
struct slice sim_token_cut(struct slice *text);
uint32_t sim_token_id(struct slice token);

struct sim_chain {
    uint32_t block_tokens;
    uint32_t block_left; /* tokens until the next block is full */
    uint64_t tokens;
    uint64_t hash;    /* hash of all tokens so far */
    uint64_t *blocks; /* a name per full block; owned */
    size_t block_count;
    size_t block_cap;
    /* Names of the first blocks, full or not, if the owner knows them in advance (borrowed). NULL:
     * none. */
    const uint64_t *ahead;
    size_t ahead_count;
    /* All tokens, for publishers; set right after sim_chain_init(). */
    bool keeps_ids;
    uint32_t *ids; /* owned */
    size_t id_cap;
    /* The parts of the salt of sim_chain_init(), for publishers. Empty: none. */
    char salt[SIM_SPACE_BYTES], adapter[SIM_SPACE_BYTES];
};

/* `salt` separates namespaces: equal prompts with another salt share nothing. */
void sim_chain_init(struct sim_chain *c, uint32_t block_tokens, uint64_t salt);
void sim_chain_free(struct sim_chain *c);
void sim_chain_copy(struct sim_chain *to, const struct sim_chain *from);
void sim_chain_add(struct sim_chain *c, uint32_t id);
void sim_chain_add_text(struct sim_chain *c, struct slice text);

/* Number of tokens in a text. */
uint64_t sim_text_tokens(struct slice text);

/* The text of token `index` of the output for `seed`. The first token has no leading space. */
struct slice sim_output_token(uint64_t seed, uint64_t index);

#endif
