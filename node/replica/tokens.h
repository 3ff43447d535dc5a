/* Estimates a prompt's tokens from the content (struct chain_content), for a model's tokenizer: a
 * number of tokens for each byte of a kind, and for each image, sound and film. Spaces count with
 * the next word.
 *
 * For each kind, a factor is learned by which the initial value is multiplied: by least squares
 * over fading samples, in a Kalman filter whose state is the factors. The factors of text begin
 * correlated, so prompts of any kind teach the others. A sample's effect is bounded
 * (docs/adr/0032). */
#ifndef NODE_REPLICA_TOKENS_H
#define NODE_REPLICA_TOKENS_H

#include <stdbool.h>

#include "base/chain.h"
#include "base/wire.h"

enum node_kind {
    NODE_KIND_LETTER,
    NODE_KIND_DIGIT,
    NODE_KIND_MARK,
    NODE_KIND_TWO,   /* bytes of two-byte characters */
    NODE_KIND_THREE, /* bytes of characters of three or four bytes */
    NODE_KIND_OTHER, /* bytes of strings of tool definitions, of roles, and of unknown kind */
    NODE_KIND_IMAGE, /* image of unknown size. From here to FILM: in the order of enum
                      * chain_medium */
    NODE_KIND_SOUND,
    NODE_KIND_FILM,
    NODE_KIND_SIZED,     /* image of a known size, without the pixels */
    NODE_KIND_MEGAPIXEL, /* million pixels of images of known size */
    NODE_KINDS
};

struct node_tokens {
    double first[NODE_KINDS];                /* initially believed tokens of a byte, or of a
                                              * medium */
    double factor[NODE_KINDS];               /* learned factor on `first` */
    double variance[NODE_KINDS][NODE_KINDS]; /* covariance of the factors */
};

/* Initially, a prompt of mostly English is believed to have `bytes_per_token`. */
void node_tokens_init(struct node_tokens *t, double bytes_per_token);

/* Tokens of a prompt of `bytes` in all, as the chain counts them. `media`, unless NULL, gets the
 * tokens of the prompt's images, sounds and films. */
double node_tokens_of(const struct node_tokens *t, uint64_t bytes,
                      const struct chain_content *content, double *media);

/* Relative standard deviation of node_tokens_of(); the logarithm of the error is normal. */
double node_tokens_deviation(const struct node_tokens *t, uint64_t bytes,
                             const struct chain_content *content);

/* An engine counted `tokens` (> 0) in the prompt, and `media_tokens` in the prompt's media if these
 * are above 0. */
void node_tokens_add(struct node_tokens *t, uint64_t bytes, const struct chain_content *content,
                     double tokens, const int64_t media_tokens[CHAIN_MEDIA]);

/* node_tokens_keep() writes the learned state for the next life of this process, and
 * node_tokens_recall() reads it back. Returns false if the bytes are no valid state; `t` is then
 * unchanged. */
enum { NODE_TOKENS_KEPT = 8 * (1 + NODE_KINDS + NODE_KINDS * (NODE_KINDS + 1) / 2) }; /* bytes */
void node_tokens_keep(const struct node_tokens *t, struct wire_writer *w);
bool node_tokens_recall(struct node_tokens *t, struct wire_reader *in);

/* Tokens of a byte of this kind, of a medium, or of a million pixels. */
static inline double node_tokens_each(const struct node_tokens *t, enum node_kind kind)
{
    return t->first[kind] * t->factor[kind];
}

#endif
