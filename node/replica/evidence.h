/* Estimates a cache's size: the size that would have predicted best what the engine served from its
 * cache (docs/adr/0029).
 *
 * Each prompt with a recorded prefix at a replica is a test: the prefix has a depth in the LRU
 * order, and a number of its tokens came from the cache. A miss means that the cache is smaller
 * than believed, or that the prefix was not reused for another reason. Only the first kind depends
 * on the depth. So many sizes are tried in parallel, from a thousandth to 64 times the reported (or
 * configured) size. Each keeps the sums of a regression through the origin,
 *
 *       cached tokens = share * tokens that a cache of this size would hold
 *
 * and the size with the least error is believed, with its *share*. The reported size has a head
 * start that evidence must beat, and evidence fades in half an hour. All sums are in units of the
 * prompt, so each request counts the same. */
#ifndef NODE_REPLICA_EVIDENCE_H
#define NODE_REPLICA_EVIDENCE_H

#include <stdbool.h>

enum {
    NODE_PARTS_MAX = 4,
    NODE_SIZES_PER_DOUBLING = 4,
    NODE_SIZES_BELOW = 10 * NODE_SIZES_PER_DOUBLING,
    NODE_SIZES = NODE_SIZES_BELOW + 6 * NODE_SIZES_PER_DOUBLING + 1,
};

/* A part of a prompt that was recorded at the replica. The part is cached if everything used after
 * it fits in the cache. `from` and `to` are the depths of its first and last block, as shares of
 * the size that the engine reports. For sizes between them the chance is linear. */
struct node_part {
    float tokens;
    float from, to;
};

/* The parts in the order of the prompt; each part is at least as deep as the one before. */
struct node_reach {
    unsigned count;
    struct node_part parts[NODE_PARTS_MAX];
};

/* Adds `times` the tokens that a cache of each size would hold; `times` -1 takes them back. */
void node_reach_sum(const struct node_reach *reach, double times, float sums[NODE_SIZES]);

struct node_evidence {
    float expected2[NODE_SIZES]; /* per size: sum of the squared expected tokens, each in units of
                                  * its prompt */
    float product[NODE_SIZES];   /* per size: sum of expected times cached tokens */
    float cached2;
    float samples; /* faded number of samples */
    /* Derived from the sums above: */
    double size;   /* the best size, in units of the reported one */
    double weight; /* number of whole prompts by which the best size predicts better than the
                    * reported one */
    double share;  /* reused share of the tokens in the cache */
};

void node_evidence_init(struct node_evidence *e);

/* The size, limited to the range of sizes that are tried. */
double node_evidence_size(double size);

/* Adds a request, or several summed up with their `weight`: the expected cached tokens at each
 * size, and the actual ones, out of `prompt` tokens. `head_start` is the reported size's. */
void node_evidence_add(struct node_evidence *e, const float expected[NODE_SIZES], double cached,
                       double prompt, double weight, double head_start);

/* Lets the evidence fade by this time. */
void node_evidence_fade(struct node_evidence *e, double seconds, double head_start);

#endif
