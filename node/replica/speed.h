/* How fast one replica is, by what is seen of it. Each function takes one kind of evidence; what is
 * believed follows from all replicas together (fleet.h).
 *
 *   a streamed answer     its prefill was timed, and its pace
 *   the engine's metrics  sums of its histograms, between two readings
 *   a whole answer        how long it took, tokens of prefill and of decode: the two speeds that
 *                         explain the last answers best
 *
 * The better evidence counts: where answers were streamed within RULE(HALF_LIFE_MS) the other two
 * teach nothing, and whole answers teach nothing where the metrics did.
 */
#ifndef NODE_REPLICA_SPEED_H
#define NODE_REPLICA_SPEED_H

#include <stdbool.h>

#include "node/replica/learn.h"
#include "node/replica/whole.h"

struct node_replica;
struct node_replica_config;
struct node_scrape;

/* Part of struct node_replica: how fast it has shown itself to be. */
struct node_shown {
    struct node_speed rate;        /* tokens of prefill per second */
    struct node_speed pace;        /* decode steps per second, were there no context */
    struct node_whole whole;       /* whole answers, where nothing better tells */
    double short_tokens, short_s;  /* prefills too short to be timed one by one, added up */
    uint64_t streamed_ms, told_ms; /* when streams, and the metrics, last taught; 0: never */
};

/* Nothing was seen yet: as the settings say. */
void node_replica_speed_begin(struct node_replica *k, const struct node_replica_config *config);

/* A prefill of so many tokens took so long, >= 0: the clock has milliseconds. Small ones are added
 * up. Whether that was news. */
bool node_replica_rate_add(struct node_replica *k, double tokens, double seconds, uint64_t now_ms);
/* A step of a stream took so long while so many tokens of context were decoding. False: no step
 * does. */
bool node_replica_pace_add(struct node_replica *k, double context_tokens, double step_s,
                           uint64_t now_ms);

/* An answer that came in one piece took so long since it was sent. `prefill_tokens`: of the prompt
 * and of the queue before it; `context_tokens`: that were decoding beside it, its own included.
 * Whether that was news. */
bool node_replica_whole_add(struct node_replica *k, double seconds, double prefill_tokens,
                            double completion_tokens, double context_tokens, uint64_t now_ms);

/* New metrics, and those of so many seconds before. */
void node_replica_speed_scraped(struct node_replica *k, const struct node_scrape *before,
                                const struct node_scrape *now, double seconds, uint64_t now_ms);

#endif
