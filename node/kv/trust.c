#include "node/kv/trust.h"

void kv_tally_add(struct kv_tally *t, bool agreed)
{
    double fade = 1 - 1.0 / KV_TALLY_MEMORY;
    t->agreed = t->agreed * fade + agreed;
    t->all = t->all * fade + 1;
}

/* Half of `all` random answers would agree, with a standard deviation of sqrt(all) / 2. */
bool kv_tally_contradicts(const struct kv_tally *t)
{
    double below = t->all / 2 - t->agreed;
    return below > 0 && 4 * below * below > KV_TALLY_SIGMAS * KV_TALLY_SIGMAS * t->all;
}

bool kv_trust_lose(struct kv_trust *t, uint64_t now_ms)
{
    if (t->lost || (!kv_tally_contradicts(&t->blocks) && !kv_tally_contradicts(&t->cached)))
        return false;
    bool long_ago = now_ms >= t->until_ms + KV_TRUST_FORGET_MS;
    t->times = long_ago ? 0 : t->times;
    t->until_ms = now_ms + ((uint64_t)KV_TRUST_AGAIN_MS << t->times);
    t->times += t->times < KV_TRUST_DOUBLINGS;
    t->lost = true;
    return true;
}

static bool tried_again(struct kv_trust *t, bool tried)
{
    if (!t->lost || !tried)
        return false;
    *t = (struct kv_trust){.until_ms = t->until_ms, .times = t->times};
    return true;
}

bool kv_trust_again(struct kv_trust *t, uint64_t now_ms)
{
    return tried_again(t, now_ms >= t->until_ms);
}

bool kv_trust_restarted(struct kv_trust *t)
{
    return tried_again(t, t->times <= 1);
}
