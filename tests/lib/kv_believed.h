/* The believed contents of an engine's cache, from KV events: a feed, a decoder and a tree, as in a
 * reader; and the part of a prompt believed to be cached. */
#ifndef TESTS_LIB_KV_BELIEVED_H
#define TESTS_LIB_KV_BELIEVED_H

#include "node/kv/feed.h"
#include "node/kv/tree.h"
#include "tests/engine-sim/text.h"
#include "tests/lib/kv_held.h"

enum { BELIEVED_BLOCKS_MAX = 64 }; /* blocks of a prompt */

struct believed {
    struct hash_secret secret;
    struct kv_decoder *decoder;
    struct kv_tree *tree; /* in doubt at first */
    struct kv_feed *feed;
    struct kv_feed_user user;
    void (*replay)(void *context, uint64_t from);
    void *context;
    int32_t rank; /* rank in the last message */
};

/* `replay` NULL: no replay. The struct must not move. */
void believed_open(struct believed *b, uint64_t seed, void (*replay)(void *, uint64_t),
                   void *context);
void believed_close(struct believed *b);

/* The chains of a prompt's blocks, found by publishing the prompt alone in the engine's form,
 * because only events contain digests. */
struct believed_chains {
    uint64_t at[BELIEVED_BLOCKS_MAX];
    uint32_t count;
    const struct hash_secret *secret;
};
struct believed_chains believed_chains(struct believed *b, const char *form,
                                       const struct sim_chain *prompt);

/* The cached part of the prompt. */
struct kv_held believed_held(const struct believed *b, const struct believed_chains *c);

#endif
