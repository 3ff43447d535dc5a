#include "node/replica/foreign.h"

#include <math.h>
#include <stdbool.h>

#include "base/number.h"
#include "node/replica/ablation.h"
#include "node/replica/booking.h"
#include "node/replica/constants.h"
#include "node/replica/scrape.h"

static bool rose(double before, double now)
{
    return before >= 0 && now > before;
}

/* True if no request waits and nothing was computed between the readings. Some engines then do not
 * update their gauges for a while. */
static bool gauges_are_old(const struct node_scrape *before, const struct node_scrape *now)
{
    return now->waiting <= 0 && before->generation_tokens >= 0 &&
           !rose(before->generation_tokens, now->generation_tokens) &&
           !rose(before->prompt_tokens, now->prompt_tokens);
}

/* Learns the limit on running requests. Prompts wait for a moment while others are computed, even
 * if few requests run. So only a repeated wait, while the most requests ever seen are running,
 * shows a limit. One more running request disproves the limit. */
static void limit_learn(struct node_foreign *f, const struct node_scrape *now)
{
    if (now->running > f->running_most) {
        f->running_most = now->running;
        f->running_max = 0;
        f->full = 0;
    }
    bool full = now->waiting >= 1 && now->running >= 1 && now->running >= f->running_most &&
                now->cache_usage < 1 / RULE(SLIGHTLY);
    f->full = full ? f->full + 1 : 0;
    if (f->full >= RULE(PRIOR) && !LEFT_OUT(SLOTS_READ))
        f->running_max = now->running;
}

void node_foreign_scraped(struct node_foreign *f, const struct node_load *load, double at_ranks,
                          const struct node_scrape *before, const struct node_scrape *now,
                          uint64_t now_ms)
{
    if (now->running < 0)
        return;
    double waiting = number_max(now->waiting, 0);
    struct node_room_amount booked = node_load_booked(load);
    double extra = number_max(now->running + waiting - booked.requests, 0);
    if (f->at_ms != 0 && gauges_are_old(before, now))
        extra = 0;
    f->requests = number_min(extra, f->seen);
    f->seen = extra;
    extra = number_max(extra - at_ranks, 0);
    f->strange = number_min(extra, f->strange_seen);
    f->strange_seen = extra;
    f->waiting = number_min(f->requests, waiting);
    f->used_tokens =
        now->cache_usage >= 0 && now->cache_tokens > 0 ? now->cache_usage * now->cache_tokens : -1;
    f->booked_tokens = booked.tokens;
    if (f->used_tokens > 0 && now->running >= 1)
        f->context_tokens = f->used_tokens / now->running;
    /* Contexts that outgrow the memory preempt each other: the memory is full, whatever the gauge
     * says. */
    if (before->preemptions >= 0 && now->preemptions > before->preemptions && f->used_tokens >= 0)
        f->used_tokens = number_max(f->used_tokens, now->cache_tokens);
    limit_learn(f, now);
    f->at_ms = now_ms > 0 ? now_ms : 1;
}

struct node_under_way node_under_way(const struct node_foreign *f, const struct node_load *load,
                                     uint64_t now_ms)
{
    double age_ms = now_ms > f->at_ms ? (double)(now_ms - f->at_ms) : 0;
    double left = f->requests <= 0 || LEFT_OUT(FOREIGN)
                      ? 0
                      : exp2(number_min(1 - age_ms / RULE(HALF_LIFE_MS), 0));
    double foreign = f->requests * left, waiting = f->waiting * left;
    struct node_room_amount booked = node_load_booked(load);
    return (struct node_under_way){
        .requests = booked.requests + foreign,
        .context_tokens = booked.tokens + (foreign - waiting) * f->context_tokens,
        .foreign_waiting = waiting,
    };
}

/* Seconds until the prompt finds memory. Contexts share prefixes, so their sum is more than the
 * filled memory: bookings since the reading count in the same proportion. */
static double memory_wait_s(const struct node_foreign *f, const struct node_load *load,
                            double new_tokens, double residence_s, double cache_tokens)
{
    if (f->at_ms == 0 || f->used_tokens <= 0 || cache_tokens <= 0 || LEFT_OUT(MEMORY_READ))
        return 0;
    double share = f->booked_tokens > f->used_tokens ? f->used_tokens / f->booked_tokens : 1;
    double used = f->used_tokens + (node_load_booked(load).tokens - f->booked_tokens) * share;
    double lacking = used + new_tokens - cache_tokens;
    return lacking > 0 && used > 0 ? number_min(lacking / used, 1) * residence_s : 0;
}

double node_foreign_wait_s(const struct node_foreign *f, const struct node_load *load,
                           const struct node_under_way *all, double new_tokens, double residence_s,
                           double cache_tokens)
{
    double slots_s = 0;
    if (f->running_max > 0 && all->requests >= f->running_max)
        slots_s = (all->requests - f->running_max + 1) / f->running_max * residence_s;
    return number_max(slots_s, memory_wait_s(f, load, new_tokens, residence_s, cache_tokens));
}
