/* How many tokens a prompt has, by what it is made of (struct chain_content), as one model's
 * tokenizer cuts it: so many for each byte of a kind, and for each image, sound and film. Spaces
 * count with the word that they precede.
 *
 * What is learned is a factor for each kind, on what is believed at first: least squares over
 * fading samples, as a Kalman filter whose state is the factors. Those of text begin correlated, so
 * prompts of any kind teach the others. What a sample may change is bounded (docs/adr/0032).
 */
#ifndef NODE_REPLICA_TOKENS_H
#define NODE_REPLICA_TOKENS_H

#include <stdbool.h>

#include "base/chain.h"
#include "base/wire.h"

enum node_kind {
    NODE_KIND_LETTER,
    NODE_KIND_DIGIT,
    NODE_KIND_MARK,
    NODE_KIND_TWO,   /* bytes of characters of two bytes */
    NODE_KIND_THREE, /* of three or four */
    NODE_KIND_OTHER, /* strings of tool definitions, roles; and what nobody counted */
    NODE_KIND_IMAGE, /* of unknown size; this and the next two as enum chain_medium */
    NODE_KIND_SOUND,
    NODE_KIND_FILM,
    NODE_KIND_SIZED,     /* an image of a known size, and */
    NODE_KIND_MEGAPIXEL, /* so many of these */
    NODE_KINDS
};

struct node_tokens {
    double first[NODE_KINDS];                /* tokens of a byte, or of a medium */
    double factor[NODE_KINDS];               /* of that */
    double variance[NODE_KINDS][NODE_KINDS]; /* of the factors */
};

/* At first a prompt of mostly English is believed to have `bytes_per_token`. */
void node_tokens_init(struct node_tokens *t, double bytes_per_token);

/* Tokens of a prompt of so many bytes in all, as the chain counts them. `media`, unless NULL, is
 * filled with those of its images, sounds and films. */
double node_tokens_of(const struct node_tokens *t, uint64_t bytes,
                      const struct chain_content *content, double *media);

/* How far off that may be: a standard deviation as a share of it, of the kind whose logarithm is
 * normal. */
double node_tokens_deviation(const struct node_tokens *t, uint64_t bytes,
                             const struct chain_content *content);

/* An engine counted so many (> 0) tokens in it; of which its media had so many, where these are
 * above 0. */
void node_tokens_add(struct node_tokens *t, uint64_t bytes, const struct chain_content *content,
                     double tokens, const int64_t media_tokens[CHAIN_MEDIA]);

/* What was learned, for the next life of this process; and back. False: that is no state of the
 * filter, and `t` is as it was. */
enum { NODE_TOKENS_KEPT = 8 * (1 + NODE_KINDS + NODE_KINDS * (NODE_KINDS + 1) / 2) }; /* bytes */
void node_tokens_keep(const struct node_tokens *t, struct wire_writer *w);
bool node_tokens_recall(struct node_tokens *t, struct wire_reader *in);

/* Tokens of a byte of that kind, of a medium, of a million pixels. */
static inline double node_tokens_each(const struct node_tokens *t, enum node_kind kind)
{
    return t->first[kind] * t->factor[kind];
}

#endif
