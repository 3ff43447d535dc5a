/* Consistent hashing of the session named by the client; without a session, of the prompt. */
#include "node/route/policy.h"

static unsigned choose(const struct node_policy_input *in)
{
    if (in->session_key == 0)
        return node_policy_prefix_hash.choose(in);
    unsigned best = 0;
    double best_score = 0;
    for (unsigned i = 0; i < in->count; i++) {
        double score = node_policy_score(in, in->session_key, &in->candidates[i]);
        if (i == 0 || score > best_score) {
            best = i;
            best_score = score;
        }
    }
    return best;
}

const struct node_policy node_policy_session = {
    .name = "session", .wants_session = true, .choose = choose};
