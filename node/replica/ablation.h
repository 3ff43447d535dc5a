/* Parts of the routing rule that a bench can leave out, to see what each is worth
 * (docs/routing-evidence.md). Only VARIANT=ablation sets GRAPEVINE_ABLATION. In other builds
 * LEFT_OUT() is constant and false, and the compiler removes the code behind it. No router has an
 * option for it. */
#ifndef NODE_REPLICA_ABLATION_H
#define NODE_REPLICA_ABLATION_H

#include <stdbool.h>

/* Names and meanings, in the order of docs/routing.md: what a request finds, what it costs, what is
 * chosen, what is learned. */
#define NODE_ABLATION_MAP(X)                                                                       \
    X(QUEUE_OTHERS, "the prefill work that other routers placed")                                  \
    X(QUEUE_FOREIGN, "the queue of requests that no router of ours sent")                          \
    X(LATE, "a prompt that is late delays those behind it")                                        \
    X(RATE_SHOWN, "what is being computed shows the rate of a replica that showed little")         \
    X(TRIED, "one where nothing is under way is tried as if it were as fast as others")            \
    X(WHOLE_LATE, "whole answers that are due show a slow replica")                                \
    X(RAN_ANYWHERE, "more than ever ran anywhere costs")                                           \
    X(BEYOND, "the same, and twice what runs on average while load rises")                         \
    X(PACE_FORGET, "short steps say nothing for a replica without room")                           \
    X(FOREIGN, "requests that no router of ours sent")                                             \
    X(SLOTS_READ, "the gauges show how many run at once")                                          \
    X(MEMORY_READ, "the gauges show the memory that is left")                                      \
    X(CROWD, "steps get longer with what runs beside")                                             \
    X(STEP_MORE, "steps that are clearly longer than at the fastest")                              \
    X(DISPLACED, "what a prompt pushes out of the cache")                                          \
    X(FOLLOWERS, "a copy is no loss where others follow")                                          \
    X(ADAPTER, "what it costs to load an adapter")                                                 \
    X(DUE, "a slow replica gets its due")                                                          \
    X(NEAR_TIE, "costs that differ by 2 % are equal")                                              \
    X(LOOKS, "each router looks at one in R of the equal ones")                                    \
    X(UNSEEN, "what others place at the same moment fills up")                                     \
    X(SHARES, "each router prefers its share of the equal ones")                                   \
    X(FEWEST, "of equal ones that with the fewest requests")                                       \
    X(RATE_EARLY, "the first byte teaches the rate")                                               \
    X(RATE_SCRAPED, "the metrics teach rate and pace")                                             \
    X(SHRUNK, "few samples count less than the fleet's")                                           \
    X(APART, "equal replicas are believed equal")                                                  \
    X(PACE, "how long a step takes, learned of streams")                                           \
    X(WHOLE, "whole answers teach rate and pace")                                                  \
    X(KINDS, "tokens by kinds of text, and not by bytes")                                          \
    X(RULER, "where checkpoints stand in tokens, as answers told")                                 \
    X(SIZE, "the size of a cache, by what answers had cached")                                     \
    X(SIZE_READ, "the same by the metrics of evictions")                                           \
    X(SHARE, "how much of what is held is used again, by replica")                                 \
    X(VOIDS, "what was recorded and never computed")                                               \
    X(TIER, "bringing back from a tier takes time")                                                \
    X(RENDERINGS, "what engines make of a prompt, learned")

enum node_ablation {
#define NODE_ABLATION_NAME(name, says) NODE_WITHOUT_##name,
    NODE_ABLATION_MAP(NODE_ABLATION_NAME)
#undef NODE_ABLATION_NAME
        NODE_ABLATIONS
};

#ifdef GRAPEVINE_ABLATION
extern bool node_left_out[NODE_ABLATIONS]; /* set by the bench before anything runs */
#define LEFT_OUT(name) (node_left_out[NODE_WITHOUT_##name])
#else
#define LEFT_OUT(name) (NODE_WITHOUT_##name == NODE_ABLATIONS)
#endif

#endif
