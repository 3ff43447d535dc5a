/* Parts of the routing rule that a bench can leave out, to measure the worth of each
 * (docs/routing-evidence.md). Only VARIANT=ablation sets GRAPEVINE_ABLATION. In other builds
 * LEFT_OUT() is constant and false, and the compiler removes the code behind it. No router has such
 * an option. */
#ifndef NODE_REPLICA_ABLATION_H
#define NODE_REPLICA_ABLATION_H

#include <stdbool.h>

/* Names and meanings, in the order of docs/routing.md: the load found by a request, the cost, the
 * choice, and the learned figures. */
#define NODE_ABLATION_MAP(X)                                                                       \
    X(QUEUE_OTHERS, "other routers' prefill work counts as queue")                                 \
    X(QUEUE_FOREIGN, "requests that bypass the routers count as queue")                            \
    X(LATE, "a late prompt delays those behind it")                                                \
    X(RATE_SHOWN, "prefill in progress shows the speed of a replica with few samples")             \
    X(TRIED, "an idle replica with few samples counts as fast as the best")                        \
    X(WHOLE_LATE, "overdue whole answers show a slow replica")                                     \
    X(RAN_ANYWHERE, "running more than ever ran anywhere costs")                                   \
    X(BEYOND, "the same, and twice the average while load rises")                                  \
    X(PACE_FORGET, "short steps do not speed up a replica without room")                           \
    X(FOREIGN, "requests that bypass the routers count")                                           \
    X(SLOTS_READ, "an engine's gauges show how many requests run at once")                         \
    X(MEMORY_READ, "an engine's gauges show the free memory")                                      \
    X(CROWD, "steps grow with the requests beside them")                                           \
    X(STEP_MORE, "steps clearly longer than at the fastest replica cost")                          \
    X(DISPLACED, "evicted cache costs")                                                            \
    X(FOLLOWERS, "a copy costs less if other requests follow")                                     \
    X(ADAPTER, "loading an adapter costs time")                                                    \
    X(DUE, "a slow replica gets its due")                                                          \
    X(NEAR_TIE, "costs within 2 % are equal")                                                      \
    X(LOOKS, "each router looks at one in R of the equal replicas")                                \
    X(UNSEEN, "other routers' choices of the same moment fill up replicas")                        \
    X(SHARES, "each router prefers its share of the equal replicas")                               \
    X(FEWEST, "of equal replicas, the one with the fewest requests wins")                          \
    X(RATE_EARLY, "the first byte teaches the prefill rate")                                       \
    X(RATE_SCRAPED, "an engine's metrics teach rate and pace")                                     \
    X(SHRUNK, "few samples count less than the fleet's")                                           \
    X(APART, "equal replicas are assumed equal")                                                   \
    X(PACE, "streams teach the decode pace")                                                       \
    X(WHOLE, "whole answers teach rate and pace")                                                  \
    X(KINDS, "kinds of text have their own bytes per token")                                       \
    X(RULER, "answers place checkpoints at exact tokens")                                          \
    X(SIZE, "answers' cached tokens teach the cache size")                                         \
    X(SIZE_READ, "an engine's metrics of evictions teach the cache size")                          \
    X(SHARE, "the reused share is learned by replica")                                             \
    X(VOIDS, "recorded prompts that were never computed do not count")                             \
    X(TIER, "restoring from a cache tier takes time")                                              \
    X(RENDERINGS, "how engines render prompts is learned")

enum node_ablation {
#define NODE_ABLATION_NAME(name, says) NODE_WITHOUT_##name,
    NODE_ABLATION_MAP(NODE_ABLATION_NAME)
#undef NODE_ABLATION_NAME
        NODE_ABLATIONS
};

#ifdef GRAPEVINE_ABLATION
extern bool node_left_out[NODE_ABLATIONS]; /* the bench sets it before anything runs */
#define LEFT_OUT(name) (node_left_out[NODE_WITHOUT_##name])
#else
#define LEFT_OUT(name) (NODE_WITHOUT_##name == NODE_ABLATIONS)
#endif

#endif
