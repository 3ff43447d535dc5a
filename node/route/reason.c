#include "node/route/reason.h"

#include "node/route/policy.h"

const char *node_reason_text(enum node_reason reason)
{
    static const char *const texts[NODE_REASONS] = {
        [NODE_REASON_LOAD] = "load",     [NODE_REASON_MAKER] = "maker",
        [NODE_REASON_ONLY] = "only",     [NODE_REASON_COLD] = "cold",
        [NODE_REASON_CACHED] = "cached", [NODE_REASON_CHEAPER] = "cheaper",
        [NODE_REASON_DUE] = "due",
    };
    return texts[reason];
}

enum node_reason node_reason_of(const struct node_candidate *candidates, unsigned count,
                                unsigned chosen)
{
    uint64_t most = 0;
    if (count == 1)
        return NODE_REASON_ONLY;
    if (candidates[chosen].is_due)
        return NODE_REASON_DUE;
    for (unsigned i = 0; i < count; i++) {
        if (candidates[i].cached_tokens > most)
            most = candidates[i].cached_tokens;
    }
    if (most == 0)
        return NODE_REASON_COLD;
    return candidates[chosen].cached_tokens == most ? NODE_REASON_CACHED : NODE_REASON_CHEAPER;
}
