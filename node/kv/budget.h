/* Decides for which prompts an engine is asked for the token ids, within a share of all prompt
 * bytes. The share of each prompt's bytes is added to the budget, up to KV_BUDGET_BYTES. A request
 * for token ids takes the prompt's bytes out; the budget may become negative. A prompt known to get
 * no tie from structure (KV_WANT_SURE) may use the whole budget, and any other prompt only what
 * overflows. So the share holds in the long run, and KV_WANT_SURE prompts come first. */
#ifndef NODE_KV_BUDGET_H
#define NODE_KV_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "node/kv/paths.h"

enum { KV_BUDGET_BYTES = 16 * 1024 };

struct kv_budget {
    double bytes;
};

/* Called for each prompt, of `bytes` bytes. `share`: the part of all bytes for which token ids may
 * be requested. Returns true if they may be requested for this prompt. */
static inline bool kv_budget_ask(struct kv_budget *b, double share, uint64_t bytes,
                                 enum kv_want want)
{
    b->bytes += share * (double)bytes;
    bool full = b->bytes >= KV_BUDGET_BYTES;
    if (full)
        b->bytes = KV_BUDGET_BYTES;
    return want == KV_WANT_SURE ? b->bytes > 0 : want == KV_WANT_MAYBE && full;
}

/* Called if the token ids of a prompt of `bytes` bytes were requested. */
static inline void kv_budget_spend(struct kv_budget *b, uint64_t bytes)
{
    b->bytes -= (double)bytes;
}

#endif
