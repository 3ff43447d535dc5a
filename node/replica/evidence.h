/* Which size of a cache would have predicted best what its engine served from it (docs/adr/0029)?
 *
 * A prompt whose prefix was recorded at a replica is a test: so much of it was used last before so
 * much else (its depth in the LRU), and so much of it came from the cache. A miss may show a cache
 * that is smaller than believed, or a prefix that is not reused for another reason. The first kind
 * depends on the depth, the second does not. So many sizes are tried side by side, from a
 * thousandth to 64 times what the engine reports (or the settings). For each the sums of a
 * regression through the origin are kept,
 *
 *     cached tokens = share * tokens that a cache of this size would hold
 *
 * and the size that leaves the least error is believed, with its *share*. The reported size has a
 * head start, which evidence must beat, and evidence fades in half an hour. All is in units of the
 * prompt: each request counts as much as any other.
 */
#ifndef NODE_REPLICA_EVIDENCE_H
#define NODE_REPLICA_EVIDENCE_H

#include <stdbool.h>

enum {
    NODE_PARTS_MAX = 4,
    NODE_SIZES_PER_DOUBLING = 4,
    NODE_SIZES_BELOW = 10 * NODE_SIZES_PER_DOUBLING,
    NODE_SIZES = NODE_SIZES_BELOW + 6 * NODE_SIZES_PER_DOUBLING + 1,
};

/* A part of a prompt that was recorded at the replica. It is there if the cache holds what was used
 * after it; `from` and `to` are the depths of its first and last block, as shares of the size that
 * the engine reports. Between them the answer is not known, and the chance falls evenly. */
struct node_part {
    float tokens;
    float from, to;
};

/* The parts in the order of the prompt: each is as deep as the one before it, or deeper. */
struct node_reach {
    unsigned count;
    struct node_part parts[NODE_PARTS_MAX];
};

/* Adds the tokens of it that a cache of each size that is tried holds, `times` (which may be -1:
 * taken back). */
void node_reach_sum(const struct node_reach *reach, double times, float sums[NODE_SIZES]);

struct node_evidence {
    float expected2[NODE_SIZES]; /* sum of squares, each in units of its prompt */
    float product[NODE_SIZES];   /* sum of expected times cached */
    float cached2;
    float samples; /* that are left of them */
    /* What follows from these: */
    double size;   /* the best one, in units of the reported one */
    double weight; /* by how many whole prompts it predicted better than the reported one */
    double share;  /* of what is held, that is used again */
};

void node_evidence_init(struct node_evidence *e);

/* The size, or the nearest of those that are tried. */
double node_evidence_size(double size);

/* A request, or `weight` of them summed up: what would have been held at each size and what came
 * from the cache, in tokens, of `prompt` tokens. `head_start` is that of size 1. */
void node_evidence_add(struct node_evidence *e, const float expected[NODE_SIZES], double cached,
                       double prompt, double weight, double head_start);

/* So much time has passed. */
void node_evidence_fade(struct node_evidence *e, double seconds, double head_start);

#endif
