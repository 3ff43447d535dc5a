#include "node/route/cost.h"

#include "node/replica/constants.h"

struct node_cost node_cost_of(const struct node_cost_input *in)
{
    double uncached_s =
        (in->prompt_tokens - in->cached_tokens + in->restored_tokens) / in->tokens_per_s;
    double shared_s = in->copied_tokens / in->tokens_per_s * in->followers / (1 + in->followers);
    double alone = uncached_s > 0 ? 1 - shared_s / uncached_s : 1;
    double queue_s = in->queue_s;
    double crowd_s = in->output_tokens * in->step_context_s * in->context_tokens +
                     in->requests * in->step_context_s * in->prompt_tokens * in->output_tokens / 2 +
                     in->requests * uncached_s * alone;
    double decode_s = crowd_s * RULE(ENGINE_RUNS) / (RULE(ENGINE_RUNS) + in->requests_typical) +
                      in->output_tokens * in->step_more_s;
    if (in->weight != 1) {
        queue_s /= in->weight;
        decode_s /= in->weight;
    }
    double displaced_s = in->displaced_tokens / in->tokens_per_s * alone;
    return (struct node_cost){
        .queue_s = queue_s,
        .uncached_s = uncached_s,
        .displaced_s = displaced_s,
        .decode_s = decode_s,
        .adapter_s = in->load_s + in->unloaded_s,
        .total_s = queue_s + uncached_s + in->displaced_weight * displaced_s +
                   in->decode_weight * decode_s + in->load_s + in->unloaded_s,
    };
}
