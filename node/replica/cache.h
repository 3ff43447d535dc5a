/* The size of a replica's cache, reported and learned, and the figures from which the size is
 * learned. The believed contents follow from the size (belief.h).
 *
 * Two sources say how much of a prompt was cached: the usage in the answer, and the engine's
 * counters between two readings. Both are compared with the prediction for each size
 * (node/replica/evidence.h), here and at the other routers. */
#ifndef NODE_REPLICA_CACHE_H
#define NODE_REPLICA_CACHE_H

#include "node/replica/booking.h"
#include "node/replica/evidence.h"
#include "node/replica/learn.h"

struct node_replica;

enum { NODE_WINDOW_SHARED_MS = 15000 }; /* least length of a window while there are other routers */

/* Sums of predicted and of actual cached tokens, since the router's start. */
struct node_prediction_sums {
    uint64_t predicted;
    uint64_t actual;
    uint64_t off; /* sum of the absolute differences between predicted and actual tokens of each
                   * answer, or of each scrape */
};
void node_prediction_add(struct node_prediction_sums *s, uint64_t predicted, uint64_t actual);

/* A router's sums about one replica since the router's start, reported to the others. */
struct node_sums {
    uint64_t prompt_tokens; /* estimated prompt tokens of requests with begun answers */
    uint64_t cached_tokens; /* predicted cached tokens of these requests */
    uint64_t told;          /* number of answers that reported cached tokens */
    uint64_t void_blocks;   /* index blocks of prompts that were never computed */
    uint32_t work;          /* how often the router saw the engine work: scraped.h */
};

/* Sum of the other routers' reports about one replica's cache. Differences mean something only
 * while the same routers report, without a restart in between (`who`). */
struct node_others {
    uint64_t who; /* hash of the reporting routers and their starts; 0: none */
    unsigned count;
    struct node_sums sums;
    double size_log, size_weight; /* the other routers' evidence of the size: sum of the weights,
                                   * and weighted sum of the sizes' logarithms */
};

/* The sums at the first scrape of this window. The engine's counters count the requests of all
 * routers, so they are compared with all routers' predictions in the window. The others' sums are a
 * few seconds late, so a window is longer while there are other routers. */
struct node_scrape_window {
    double queries, hits; /* the engine's counters at the first scrape: prompt tokens looked up in
                           * the cache, and found; -1: unknown */
    struct node_sums sums;
    uint64_t who;
    uint64_t since_ms;
    /* This router's requests begun in the window: a sample of all requests. */
    uint64_t own_prompt_tokens;
    unsigned own_requests;
    float own_expected[NODE_SIZES];
};

/* Part of struct node_replica. */
struct node_cache {
    struct node_ratio bytes_per_token; /* ratio over all prompts, of any model and form */
    uint64_t bytes_samples;            /* samples taken here or by other routers, each counted
                                        * once */
    bool size_learned;                 /* some router has learned the belief's factor for this
                                        * cache */
    struct node_size_held {            /* evidence that is not from this router's requests: another
                                        * router's factor, or the size by the engine's evictions;
                                        * fades */
        double log, weight;            /* `log`: `weight` times the logarithm of the size */
    } size_held;
    double evicted_seen, evicted_idle_seen_s; /* the engine's eviction counters at the last result
                                               * of node_replica_evicted_after(); -1: none */
    bool tells_cached[2];     /* [0]: streamed answers, [1]: whole answers report cached tokens, so
                               * that a missing count means 0 */
    unsigned told_block;      /* greatest common divisor of all reported cached tokens; 0: none
                               * reported */
    unsigned told_block_seen; /* number of reports that differed from the last nonzero report,
                               * capped */
    uint64_t told_last;
    struct node_evidence evidence; /* evidence of the cache size, from this router's requests */
    uint64_t usage_impossible;     /* answers with impossible usage (node/replica/usage.h) */
    struct node_sums sums;         /* this router's sums */
    struct node_others others;
    struct node_scrape_window window;
    struct node_prediction_sums by_usage, by_scrape;
    struct node_prediction_sums by_events; /* the part of by_usage from answers while KV-cache
                                            * events were live */
};

/* The cache size in tokens, without the learned factor: from this replica's label, from the
 * engine's report, or `configured`. */
double node_replica_cache_tokens(const struct node_replica *k, double configured);
/* Size of the engine's own memory, as reported by the engine; 0: unknown. */
double node_replica_near_tokens(const struct node_replica *k);
/* Tokens per block of the replica's cache, as reported by the engine or shown by answers; 0:
 * unknown. */
double node_replica_block_tokens(const struct node_replica *k);
/* Usable tokens out of `matched`: whole blocks, and never the prompt's last token. */
double node_replica_whole_tokens(const struct node_replica *k, double prompt, double matched);

/* A request began at the replica. Adds the request's expected cached tokens at each size of the
 * cache to the window, for comparison with the engine's counters. `times` is 1, or -1 to take a
 * request back that the counters will not show. */
void node_replica_began(struct node_replica *k, const struct node_work *work, int times);
/* The prompt was not computed: the index blocks added for the prompt are not in the cache. */
void node_replica_void(struct node_replica *k, const struct node_work *work);
/* The usage of an answer, corrected (node/replica/usage.h); `*sane` is false if it was impossible.
 * Some engines omit cached tokens when there are none. So once a replica has reported cached
 * tokens, a missing count means zero, in answers of the same kind (streamed or whole) with a
 * reported number of prompt tokens. */
struct node_usage node_replica_usage(struct node_replica *k, const struct node_usage *reported,
                                     bool answer_whole, bool *sane);
/* An answer reported cached tokens; `predicted` is the prediction for the same prompt. `expected`:
 * the prediction at each size. `counted`: the actual tokens, corrected for the rounding of
 * prediction and report to whole blocks. */
void node_replica_cached_reported(struct node_replica *k, uint64_t prompt, uint64_t predicted,
                                  uint64_t actual, double counted,
                                  const float expected[NODE_SIZES]);
/* Adds a prompt's bytes and tokens to bytes_per_token. `told`: the answer reported the tokens; if
 * not, they are estimated. */
void node_replica_bytes_add(struct node_replica *k, double bytes, double tokens, bool told);
/* Takes over another router's figure, or a prior, based on this number of samples. */
void node_replica_bytes_believe(struct node_replica *k, double bytes_per_token, uint64_t samples);

/* Sets the size of the cache on the GPU, as reported by the engine; 0 or less: not reported, and no
 * effect. */
void node_replica_size_told(struct node_replica *k, double tokens);
/* The engine's metrics were read: compares the counters with the window's predictions, if enough
 * was counted. `anew`: the counters belong to another process, so a new window begins. */
void node_replica_window(struct node_replica *k, bool anew, uint64_t now_ms);
/* Lets the evidence of the size fade; called once a tick. */
void node_replica_size_fade(struct node_replica *k, double seconds);
/* This router's evidence of the size, to be shared: the factor of the reported size, and the number
 * of prompts by which this factor predicts better. */
void node_replica_size_known(const struct node_replica *k, double *size, double *weight);
/* Seconds between the last use of a block and the eviction, from the engine's counters: blocks used
 * within this time are in the cache. 0 until enough blocks were evicted since the last result. */
double node_replica_evicted_after(struct node_replica *k);
/* Sets the size that node_replica_evicted_after() implies, in units of the reported size. This size
 * takes precedence over all other evidence. */
void node_replica_size_shown(struct node_replica *k, double size);
/* Takes over the factor that another router believes, unless a factor is known here already. */
void node_replica_size_heard(struct node_replica *k, double factor);
/* Resets the cache: nothing is known of the new cache. The replica's learned speed stays. */
void node_replica_cache_forget(struct node_replica *k);
/* Resets the cache, and sets the new cache's key. The engine may be another process. */
void node_replica_cache_renewed(struct node_replica *k, uint32_t rkey);
/* Sets the other routers' present sums, with their evidence of the size. Prompts declared void by
 * other routers since the last call are void here too, in the present generation. Work seen by
 * other routers is a sign of life here. */
void node_replica_others(struct node_replica *k, const struct node_others *others,
                         uint32_t generation, uint64_t now_ms);

#endif
