/* Fewest requests in flight. */
#include "node/route/policy.h"

const struct node_policy node_policy_least_request = {.name = "least_request",
                                                      .choose = node_policy_least_requests};
