#include "node/replica/reuse.h"

#include <math.h>

#include "base/number.h"
#include "node/replica/ablation.h"

/* As if so many requests had used all of it; samples that count. */
static const double share_prior = 4, share_samples = 64;
/* Behind the last checkpoint of a prompt, all of which match, half is believed to match too. */
static const double rest_prior = 2, tail_samples = 32;
/* More than this beyond the last checkpoint is another prompt's doing. */
static const double beyond_max = 4096;

void node_reuse_init(struct node_reuse *r)
{
    *r = (struct node_reuse){.rest_used = rest_prior / 2, .rest_seen = rest_prior};
}

double node_reuse_share(const struct node_reuse *r)
{
    if (LEFT_OUT(REUSE_SHARE))
        return 1;
    return number_min((r->used + share_prior) / (r->held + share_prior), 1);
}

static double to_blocks(double tokens, double block)
{
    return block > 1 ? floor(tokens / block) * block : tokens;
}

double node_reuse_whole(const struct node_reuse *r, const struct node_held *h)
{
    if (h->matched <= 0)
        return 0;
    double tail = h->all ? r->rest_used / r->rest_seen * (h->prompt - h->matched)
                         : r->beyond / (r->beyond_seen + 1);
    if (h->all ? LEFT_OUT(REST) : LEFT_OUT(REUSE_BEYOND))
        tail = 0;
    double tokens = number_min(h->matched + number_max(tail, 0) + h->beyond, h->prompt - 1);
    return number_max(to_blocks(tokens, h->block), 0);
}

double node_reuse_predict(const struct node_reuse *r, const struct node_held *h)
{
    double whole = node_reuse_whole(r, h);
    return whole > 0 ? whole * h->share * node_reuse_share(r) : 0;
}

static void add(double *sum, double *count, double x, double weight, double samples)
{
    double keep = samples / (samples + 1);
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
            matched / h->prompt * number_max(h->share, 1e-3), share_samples);
    if (cached < matched)
        return;
    double most = to_blocks(h->prompt - 1, h->block);
    if (h->all && h->prompt > h->matched) {
        double used = cached >= most ? 1 : (cached - h->matched) / (h->prompt - h->matched);
        add(&r->rest_used, &r->rest_seen, number_min(number_max(used, 0), 1), 1, tail_samples);
    } else if (!h->all) {
        /* Where a prefix ends by chance, a whole block loses half of one. */
        double lost = h->block > 1 ? (h->block - 1) / 2 : 0;
        double beyond = number_min(cached + lost - h->matched, beyond_max);
        add(&r->beyond, &r->beyond_seen, beyond, 1, tail_samples);
    }
}
