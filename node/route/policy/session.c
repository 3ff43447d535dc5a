/* Consistent hashing of the session that the client names; round robin where it names none. */
#include "node/route/policy.h"

static unsigned choose(const struct node_policy_input *in)
{
    if (in->session_key == 0)
        return node_policy_next_turn(in);
    unsigned best = 0;
    uint64_t best_weight = 0;
    for (unsigned i = 0; i < in->count; i++) {
        uint64_t weight = node_policy_weight(in->session_key, &in->candidates[i]);
        if (i == 0 || weight > best_weight) {
            best = i;
            best_weight = weight;
        }
    }
    return best;
}

const struct node_policy node_policy_session = {.name = "session", .choose = choose};
