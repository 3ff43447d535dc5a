/* Decides for which prompts an engine is asked for the tokens: a share of all prompt bytes. Every
 * prompt's bytes fill the budget, up to KV_BUDGET_BYTES. A prompt with a request for tokens takes
 * its own bytes out, if need be on credit. A prompt with a text known to find no tie may take the
 * whole budget; any other one only the overflow. So the share holds in the long run, and the
 * prompts that need it come first. */
#ifndef NODE_KV_BUDGET_H
#define NODE_KV_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "node/kv/paths.h"

enum { KV_BUDGET_BYTES = 16 * 1024 };

struct kv_budget {
    double bytes;
};

/* A prompt of so many bytes arrives; `share` is the part of all bytes that may be asked for.
 * Returns true if the tokens may be requested. */
static inline bool kv_budget_ask(struct kv_budget *b, double share, uint64_t bytes,
                                 enum kv_want want)
{
    b->bytes += share * (double)bytes;
    bool full = b->bytes >= KV_BUDGET_BYTES;
    if (full)
        b->bytes = KV_BUDGET_BYTES;
    return want == KV_WANT_SURE ? b->bytes > 0 : want == KV_WANT_MAYBE && full;
}

/* The tokens were requested. */
static inline void kv_budget_spend(struct kv_budget *b, uint64_t bytes)
{
    b->bytes -= (double)bytes;
}

#endif
