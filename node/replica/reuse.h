/* How much of what a replica holds of a prompt an engine uses, by model and kind of request.
 *
 * The index says what was recorded: a prefix of so many tokens, to the grain of its checkpoints.
 * The engine's own count differs, for reasons that have nothing to do with the size of its cache:
 *   - It counts whole blocks (16 to 1,024 tokens), and computes at least the last token.
 *   - Behind the last checkpoint of a prompt that is held whole some of its rest is held, too.
 *   - A template moves or drops parts, or the request asks for what only computing can give
 *     (log-probabilities of the prompt): then less is used than is there, whatever its age.
 * The last is the *share*. A replica has one of its own (node/replica/evidence.h); this one is what
 * the requests of a kind have in common beyond that.
 */
#ifndef NODE_REPLICA_REUSE_H
#define NODE_REPLICA_REUSE_H

#include <stdbool.h>

/* Requests that are learned from apart: chats and programs are streamed, evaluations seldom. */
enum { NODE_REUSE_KINDS = 2 };

struct node_reuse {
    double used, held;           /* sums in units of prompts; the share is their quotient */
    double rest_used, rest_seen; /* of the tokens behind the last checkpoint, where all matched */
};

/* What is believed of one prompt at one replica, in tokens. */
struct node_held {
    double prompt;
    double matched; /* up to the last checkpoint that was recorded */
    bool all;       /* that is the last one of the prompt */
    double block;   /* of the engine's cache; at most 1: unknown */
    double share;   /* of the replica */
};

void node_reuse_init(struct node_reuse *r);
double node_reuse_share(const struct node_reuse *r);
/* Cached tokens to be expected. */
double node_reuse_predict(const struct node_reuse *r, const struct node_held *h);
/* Without the shares: what a whole hit gives. */
double node_reuse_whole(const struct node_reuse *r, const struct node_held *h);
/* The engine said so many. `surely`: what is held was used so lately that the cache has it. */
void node_reuse_add(struct node_reuse *r, const struct node_held *h, bool surely, double cached);

#endif
