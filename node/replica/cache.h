/* The size of a replica's cache, as its engine reports it and as it turns out, and what is compared
 * to find out. What the cache holds follows from the size (belief.h).
 *
 * Two things tell how much of a prompt was cached: the usage of its answer, and the engine's
 * counters between two readings. Both are held against what each size would have had
 * (node/replica/evidence.h), here and at the other routers. */
#ifndef NODE_REPLICA_CACHE_H
#define NODE_REPLICA_CACHE_H

#include "node/replica/booking.h"
#include "node/replica/evidence.h"
#include "node/replica/learn.h"

struct node_replica;

enum { NODE_WINDOW_SHARED_MS = 15000 }; /* least length of a window while there are other routers */

/* Predictions against what turned out, since the start. */
struct node_prediction_sums {
    uint64_t predicted;
    uint64_t actual;
    uint64_t off; /* sum of absolute differences, per answer or per scrape */
};
void node_prediction_add(struct node_prediction_sums *s, uint64_t predicted, uint64_t actual);

/* What each router adds up since its start, and reports. */
struct node_sums {
    uint64_t prompt_tokens; /* of requests whose answers began, */
    uint64_t cached_tokens; /* and of these, as predicted */
    uint64_t told;          /* answers that reported their cached tokens */
    uint64_t void_blocks;   /* of prompts that were never computed */
    uint32_t work;          /* how often it saw the engine work: scraped.h */
};

/* What the others report of the cache, summed up: differences mean something while they are the
 * same routers in the same lives. */
struct node_others {
    uint64_t who; /* names those routers and lives; 0: nobody */
    unsigned count;
    struct node_sums sums;
    double size_log, size_weight; /* by their evidence; the first weighed, summed up */
};

/* The sums at the scrape that began this window. The engine's counters count the requests of all
 * routers, so they are compared with what all routers predicted in the window. The others' sums are
 * a few seconds late, so a window is longer while there are others. */
struct node_scrape_window {
    double queries, hits; /* -1: not known */
    struct node_sums sums;
    uint64_t who;
    uint64_t since_ms;
    /* Of this router's requests that began in it: a stand-in for all. */
    uint64_t own_prompt_tokens;
    unsigned own_requests;
    float own_expected[NODE_SIZES];
};

/* Part of struct node_replica. */
struct node_cache {
    struct node_ratio bytes_per_token; /* of all prompts, whatever model and form */
    uint64_t bytes_samples;            /* taken here or by other routers, each once */
    bool size_learned;                 /* the belief's factor is of this cache, by any router */
    struct node_size_held {            /* what others knew when this router began, or the engine */
        double log, weight;            /* shows; it fades */
    } size_held;
    double evicted_seen, evicted_idle_seen_s; /* what was made use of; -1: nothing */
    bool tells_cached[2];     /* streamed and whole answers said what was cached: none said is 0 */
    unsigned told_block;      /* what divides all that they said; 0: nothing said */
    unsigned told_block_seen; /* how often they said something else than before */
    uint64_t told_last;
    struct node_evidence evidence; /* of its size, by this router's requests */
    uint64_t usage_impossible;     /* answers whose usage cannot be true (node/replica/usage.h) */
    struct node_sums sums;         /* own */
    struct node_others others;
    struct node_scrape_window window;
    struct node_prediction_sums by_usage, by_scrape;
    struct node_prediction_sums by_events; /* of by_usage, while its KV events were live */
};

/* Tokens as the settings say of this replica, by the engine, or `configured` for all; without the
 * learned factor. */
double node_replica_cache_tokens(const struct node_replica *k, double configured);
/* Of the engine's own memory, by itself; 0: unknown. */
double node_replica_near_tokens(const struct node_replica *k);
/* Tokens in a block of its cache, by the engine or by what its answers say; 0: unknown. */
double node_replica_block_tokens(const struct node_replica *k);
/* Of the tokens that match those that it can use: whole blocks, and never the prompt's last. */
double node_replica_whole_tokens(const struct node_replica *k, double prompt, double matched);

/* A request began there: what of it would be held, at each size of the cache. The engine's counters
 * will show it. `times` -1: they will not, after all. */
void node_replica_began(struct node_replica *k, const struct node_work *work, int times);
/* Its prompt was not computed: what it brought to the index is not there. */
void node_replica_void(struct node_replica *k, const struct node_work *work);
/* What an answer said, corrected (node/replica/usage.h); `*sane` is false where it cannot be true.
 * Some engines leave cached tokens out where they are none: once a replica has reported them, none
 * reported means zero, in answers of the same kind that report their tokens. */
struct node_usage node_replica_usage(struct node_replica *k, const struct node_usage *reported,
                                     bool answer_whole, bool *sane);
/* It said what came from the cache; `predicted` is of the same prompt. `expected`: what would have,
 * at each size; `counted`: what did, but for the grain of both. */
void node_replica_cached_reported(struct node_replica *k, uint64_t prompt, uint64_t predicted,
                                  uint64_t actual, double counted,
                                  const float expected[NODE_SIZES]);
/* Bytes of a prompt, and its tokens: as the answer `told` them, or as estimated. */
void node_replica_bytes_add(struct node_replica *k, double bytes, double tokens, bool told);
/* Another router's figure, or a prior, which rests on so many samples. */
void node_replica_bytes_believe(struct node_replica *k, double bytes_per_token, uint64_t samples);

/* The engine reports its size, where > 0. */
void node_replica_size_told(struct node_replica *k, double tokens);
/* Its metrics were read; `anew`: its counters are those of another process. */
void node_replica_window(struct node_replica *k, bool anew, uint64_t now_ms);
/* Once a tick: evidence fades. */
void node_replica_size_fade(struct node_replica *k, double seconds);
/* What this router knows of the size, to be shared: in units of the reported one, and by how many
 * prompts that is better. */
void node_replica_size_known(const struct node_replica *k, double *size, double *weight);
/* The engine shows for how long blocks had not been used when they gave way, so long ago is what
 * its cache reaches back to. Seconds, once enough of them did since the last answer; else 0. */
double node_replica_evicted_after(struct node_replica *k);
/* And that is so much, in units of the reported size: it is believed before anything else. */
void node_replica_size_shown(struct node_replica *k, double size);
/* Another router believes in that factor. Counts where nothing is known here. */
void node_replica_size_heard(struct node_replica *k, double factor);
/* Nothing is known of its cache: it is another one. What was learned of its speed stays. */
void node_replica_cache_forget(struct node_replica *k);
/* The same, and it has that key: its engine is another process, maybe. */
void node_replica_cache_renewed(struct node_replica *k, uint32_t rkey);
/* The others' sums as they are now: what their answers taught since counts here too, in the present
 * generation. What they saw of the engine's work is a sign of it here. */
void node_replica_others(struct node_replica *k, const struct node_others *others,
                         uint32_t generation, uint64_t now_ms);

#endif
