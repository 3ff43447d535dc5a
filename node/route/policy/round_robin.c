/* Candidates in turn, whatever the load. */
#include "node/route/policy.h"

const struct node_policy node_policy_round_robin = {.name = "round_robin",
                                                    .choose = node_policy_next_turn};
