/* How fast a replica is believed to be: like the fleet, until its own samples outvote that.
 *
 * Replicas of a fleet are mostly alike, and the first samples of each are its worst: kernels are
 * compiled, pages are touched, images are fetched. A replica that was judged by these alone would
 * never be chosen again, so it could never show that it is fast.
 *
 *   fleet     the replicas that serve the same model (node_replica.fleet). Its figure is the upper
 *             median of what they show, with one vote for the configured prior
 *   replica   what a third of its own samples reach, among which the fleet's figure is one
 *             with one or two timed prompts its rate is between its own and the fleet's, the
 *             nearer to its own the more the replicas of the fleet differ
 *   nearly equal is equal: small differences, and those that rest on few samples, are ignored. So
 *             noise decides nothing between equal replicas.
 *
 * Samples fade when no new ones come (learn.h). So there are two beliefs: one while the replica is
 * busy, and one while it is idle. For the second, a replica that has shown nothing is hoped to be
 * like the best of its fleet, one whose prompts were not timed lately is as fast as the fleet at
 * least, and one whose pace was not seen for two minutes and a hundred answers is like the best.
 * So a replica that was judged slow is tried again, by one request at a time. Idle means that it
 * computes no prompt, and for one that has shown little, and for the pace, that nothing is under
 * way there.
 */
#ifndef NODE_REPLICA_FLEET_H
#define NODE_REPLICA_FLEET_H

#include "node/replica/replica.h"

/* Sets what is believed of each replica (tokens_per_s, idle_tokens_per_s, step_base_s,
 * idle_step_base_s). `scratch` has room for count + 1 votes. Costs a
 * sort of each fleet. */
void node_fleet_believe(struct node_replica *replicas, unsigned count,
                        const struct node_replica_config *config, struct node_vote *scratch,
                        uint64_t now_ms);

#endif
