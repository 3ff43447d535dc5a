#include "node/replica/reuse.h"

#include <math.h>

#include "base/number.h"
#include "node/replica/ablation.h"
#include "node/replica/constants.h"

void node_reuse_init(struct node_reuse *r)
{
    /* Behind the last checkpoint of a prompt, all of which match, half is believed to match too. */
    *r = (struct node_reuse){.rest_used = RULE(PRIOR) / 2, .rest_seen = RULE(PRIOR)};
}

double node_reuse_share(const struct node_reuse *r)
{
    if (LEFT_OUT(REUSE_SHARE))
        return 1;
    return number_min((r->used + RULE(PRIOR)) / (r->held + RULE(PRIOR)), 1);
}

static double to_blocks(double tokens, double block)
{
    return block > 1 ? floor(tokens / block) * block : tokens;
}

double node_reuse_whole(const struct node_reuse *r, const struct node_held *h)
{
    if (h->matched <= 0)
        return 0;
    double rest = h->all && !LEFT_OUT(REST) ? r->rest_used / r->rest_seen : 0;
    double tokens = number_min(h->matched + rest * (h->prompt - h->matched), h->prompt - 1);
    return number_max(to_blocks(tokens, h->block), 0);
}

double node_reuse_predict(const struct node_reuse *r, const struct node_held *h)
{
    double whole = node_reuse_whole(r, h);
    return whole > 0 ? whole * h->share * node_reuse_share(r) : 0;
}

static void add(double *sum, double *count, double x, double weight)
{
    double keep = RULE(REUSE_PROMPTS) / (RULE(REUSE_PROMPTS) + 1);
    *sum = (*sum + x) * keep;
    *count = (*count + weight) * keep;
}

void node_reuse_add(struct node_reuse *r, const struct node_held *h, bool surely, double cached)
{
    double matched = number_min(to_blocks(h->matched, h->block), h->prompt - 1);
    if (h->prompt <= 1 || matched <= 0)
        return;
    if (surely)
        add(&r->used, &r->held, number_min(cached, matched) / h->prompt,
            matched / h->prompt * number_max(h->share, 1e-3));
    if (cached < matched)
        return;
    double most = to_blocks(h->prompt - 1, h->block);
    if (h->all && h->prompt > h->matched) {
        double used = cached >= most ? 1 : (cached - h->matched) / (h->prompt - h->matched);
        add(&r->rest_used, &r->rest_seen, number_min(number_max(used, 0), 1), 1);
    }
}
