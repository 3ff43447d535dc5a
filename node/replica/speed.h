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

#include "node/replica/constants.h"
#include "node/replica/replica.h"

static inline double node_replica_step_s(const struct node_replica *k, double context_tokens)
{
    return k->step_base_s * (1 + RULE(STEP_GROWTH) * context_tokens);
}

/* Nothing was seen yet: as the settings say. */
void node_replica_speed_begin(struct node_replica *k, const struct node_replica_config *config);

/* What is believed is a number above 0. */
void node_replica_speed_check(const struct node_replica *k);

/* Another router's figures, which rest on so many samples. Own samples replace them, the sooner the
 * fewer these were. */
void node_replica_rate_hear(struct node_replica *k, double tokens_per_s, uint64_t samples,
                            uint64_t now_ms);
void node_replica_pace_hear(struct node_replica *k, double step_base_s, uint64_t samples,
                            uint64_t now_ms);

/* A prefill of so many tokens took so long, >= 0: the clock has milliseconds. Small ones are added
 * up. Whether that was news. */
bool node_replica_rate_add(struct node_replica *k, double tokens, double seconds, uint64_t now_ms);
/* A step took so long while so many tokens of context were decoding. False: no step does. */
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
