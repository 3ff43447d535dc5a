/* Which prompts an engine is asked the tokens of: a share of the bytes of all. The bytes of every
 * prompt fill the budget, up to KV_BUDGET_BYTES; one that is asked takes its own, if need be on
 * credit. A prompt whose text is known to find no tie may take all that is there, another one what
 * would overflow. So the share holds in the long run, and those that need it come first. */
#ifndef NODE_KV_BUDGET_H
#define NODE_KV_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "node/kv/paths.h"

enum { KV_BUDGET_BYTES = 16 * 1024 };

struct kv_budget {
    double bytes;
};

/* A prompt of so many bytes comes, and `share` of all bytes may be asked for. Whether it may be. */
static inline bool kv_budget_ask(struct kv_budget *b, double share, uint64_t bytes,
                                 enum kv_want want)
{
    b->bytes += share * (double)bytes;
    bool full = b->bytes >= KV_BUDGET_BYTES;
    if (full)
        b->bytes = KV_BUDGET_BYTES;
    return want == KV_WANT_SURE ? b->bytes > 0 : want == KV_WANT_MAYBE && full;
}

/* It is asked. */
static inline void kv_budget_spend(struct kv_budget *b, uint64_t bytes)
{
    b->bytes -= (double)bytes;
}

#endif
