/* A prompt before the segments are joined, for comparison with other prompts in any rendering
 * (node/replica/renderings.h). A plain value. */
#ifndef NODE_REPLICA_PRINT_H
#define NODE_REPLICA_PRINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/chain.h"
#include "base/rendering.h"
#include "http/prompt.h"
#include "node/replica/limits.h"

struct node_print {
    struct http_prompt_form form;
    uint16_t length;
    struct chain_point points[NODE_PRINT_POINTS_MAX];
};

/* Sets `print` to a prompt: the segments in `form`, and their points in `chain`, which are not
 * joined yet. Points beyond NODE_PRINT_POINTS_MAX are left out. */
void node_print_set(struct node_print *print, const struct http_prompt_form *form,
                    const struct chain *chain);
void node_print_check(const struct node_print *print);

/* True if both prompts, as sent, have the same bytes before the conversation. */
bool node_print_same_head(const struct node_print *a, const struct node_print *b);

/* A prompt in a certain rendering. */
struct node_reading {
    struct rendering rendering;
    uint8_t order[HTTP_PROMPT_SEGMENTS];
    unsigned count;
    uint64_t all;  /* bytes of the whole prompt */
    uint64_t head; /* bytes before the conversation and before later system messages */
};

struct node_reading node_print_read(const struct node_print *print, struct rendering rendering);

/* Bytes shared by two prompts: at least `from`, up to the last common checkpoint; at most `to`, up
 * to the next checkpoint. */
struct node_shared {
    uint64_t from, to;
};

/* The bytes that the prompts share at the beginning, in the rendering of `of`. `of` is the reading
 * of prompt `a`. */
struct node_shared node_print_shared(const struct node_print *a, const struct node_print *b,
                                     const struct node_reading *of);

#endif
