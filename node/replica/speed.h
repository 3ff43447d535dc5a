/* A replica's speed by observation. Each function takes a kind of evidence; the believed speed
 * follows from all replicas together (fleet.h).
 *
 *   a streamed answer     the time of the prefill, and the pace
 *   the engine's metrics  sums of histograms, between two readings
 *   a whole answer        the duration, and the tokens of prefill and decode: the two speeds which
 *                         explain the last answers best
 *
 * The better evidence counts: the other two are ignored if an answer was streamed within
 * RULE(HALF_LIFE_MS), and whole answers are ignored if the metrics taught a speed within
 * RULE(HALF_LIFE_MS). */
#ifndef NODE_REPLICA_SPEED_H
#define NODE_REPLICA_SPEED_H

#include <stdbool.h>

#include "node/replica/learn.h"
#include "node/replica/whole.h"

struct node_replica;
struct node_replica_config;
struct node_scrape;

/* Part of struct node_replica: the speed shown by the replica. */
struct node_shown {
    struct node_speed rate;        /* tokens of prefill per second */
    struct node_speed pace;        /* decode steps per second, extrapolated to no context */
    struct node_whole whole;       /* whole answers, used if there is no better evidence */
    double short_tokens, short_s;  /* sums of prefills too short to be timed individually */
    uint64_t streamed_ms, told_ms; /* times when streams, and when the metrics, last taught; 0:
                                    * never */
};

/* Resets to the settings: nothing was seen yet. */
void node_replica_speed_begin(struct node_replica *k, const struct node_replica_config *config);

/* A prefill of `tokens` took `seconds`, >= 0: the clock has milliseconds. Short prefills are added
 * up. Returns true if the speed was updated. */
bool node_replica_rate_add(struct node_replica *k, double tokens, double seconds, uint64_t now_ms);
/* A step of a stream took step_s at this number of decoding context tokens. Returns false if the
 * sample did not count. */
bool node_replica_pace_add(struct node_replica *k, double context_tokens, double step_s,
                           uint64_t now_ms);

/* A whole answer arrived `seconds` after the request was sent. `prefill_tokens`: uncached tokens of
 * the prompt and of the queue before it; `context_tokens`: of the requests decoding at the same
 * time, this request included. Returns true if the answer counted. */
bool node_replica_whole_add(struct node_replica *k, double seconds, double prefill_tokens,
                            double completion_tokens, double context_tokens, uint64_t now_ms);

/* The metrics were read: `before`, and `seconds` later `now`. */
void node_replica_speed_scraped(struct node_replica *k, const struct node_scrape *before,
                                const struct node_scrape *now, double seconds, uint64_t now_ms);

#endif
