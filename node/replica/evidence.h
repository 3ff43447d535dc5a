/* Estimates a cache's size: the size with the best predictions of the cached tokens
 * (docs/adr/0029).
 *
 * Each prompt with a recorded prefix at a replica is a test: the prefix has a depth in the LRU
 * order, and a number of tokens came from the cache. After a miss, either the cache is smaller than
 * believed, or the prefix was not reused for another reason. Only the misses of a too small cache
 * depend on the depth. So many sizes are tried in parallel, from a thousandth to 64 times the
 * reported (or configured) size. Each keeps the sums of a regression through the origin,
 *
 *       cached tokens = share * tokens in a cache of this size
 *
 * and the size with the least error is believed, with the size's *share*. Evidence must beat a head
 * start of the reported size, and fades in half an hour. All sums are in units of the prompt, so
 * each request counts the same. */
#ifndef NODE_REPLICA_EVIDENCE_H
#define NODE_REPLICA_EVIDENCE_H

#include <stdbool.h>

enum {
    NODE_PARTS_MAX = 4,
    NODE_SIZES_PER_DOUBLING = 4,
    NODE_SIZES_BELOW = 10 * NODE_SIZES_PER_DOUBLING,
    NODE_SIZES = NODE_SIZES_BELOW + 6 * NODE_SIZES_PER_DOUBLING + 1,
};

/* A part of a prompt recorded at the replica. The part is cached if everything used after it fits
 * in the cache. `from` and `to` are the depths of the part's first and last block, as shares of the
 * reported size. In a cache of a size between them, a part of the tokens is expected, growing
 * linearly from none to all. */
struct node_part {
    float tokens;
    float from, to;
};

/* The parts in the order of the prompt; each part is at least as deep as the part before. */
struct node_reach {
    unsigned count;
    struct node_part parts[NODE_PARTS_MAX];
};

/* For each size, adds to `sums` the tokens expected in a cache of this size, multiplied by `times`;
 * -1 takes them back. */
void node_reach_sum(const struct node_reach *reach, double times, float sums[NODE_SIZES]);

struct node_evidence {
    float expected2[NODE_SIZES]; /* per size: sum of the squared expected tokens, in units of the
                                  * prompt */
    float product[NODE_SIZES];   /* per size: sum of expected times cached tokens */
    float cached2;
    float samples; /* faded number of samples */
    /* Derived from the sums above: */
    double size;   /* the best size, in units of the reported size */
    double weight; /* number of whole prompts by which the best size predicts better than the
                    * reported size */
    double share;  /* share of the tokens in a cache of the best size that is reused */
};

void node_evidence_init(struct node_evidence *e);

/* The size, limited to the range of tried sizes. */
double node_evidence_size(double size);

/* Adds a request, or the sum of several that count as `weight` requests: the expected cached tokens
 * at each size, and the actual cached tokens, out of `prompt` tokens. `head_start`: number of
 * prompts by which evidence for another size must beat the reported size. */
void node_evidence_add(struct node_evidence *e, const float expected[NODE_SIZES], double cached,
                       double prompt, double weight, double head_start);

/* Lets the evidence fade for this time. */
void node_evidence_fade(struct node_evidence *e, double seconds, double head_start);

#endif
