/* Whether an engine's KV events are believed: what they say is compared with its answers.
 *
 *   blocks   an answer's blocks are among those that were stored while it ran (reader.h)
 *   cached   an answer took from the cache what stood there all the time since it was sent, by the
 *            events, and nothing that was gone then
 *
 * Of each the share of the last KV_TALLY_MEMORY answers or so that agree is kept. It *contradicts*
 * where it is below one half beyond all chance. The worst engine of good faith that we know, one
 * that preempts all the time, has half of its answers without blocks, and of the rest nearly all
 * agree; one whose answers say 0, or all, or of whose feed another engine is the author, has none.
 *
 * Events that contradict are not believed for a while, longer each time, and then tried again.
 * What the engine says of itself ends that no sooner: not number 0 of its feed, and a restart that
 * others see only the first time in a row. What was compared counts beyond restarts.
 */
#ifndef NODE_KV_TRUST_H
#define NODE_KV_TRUST_H

#include <stdbool.h>
#include <stdint.h>

enum {
    KV_TALLY_MEMORY = 64, /* answers: four deviations below a half are then less than a quarter */
    KV_TALLY_SIGMAS = 4,  /* 3 in 100,000, for an engine just at the half */
    KV_TRUST_AGAIN_MS = 300000,   /* it is tried again after so long, */
    KV_TRUST_DOUBLINGS = 3,       /* twice as long each time, up to so often, */
    KV_TRUST_FORGET_MS = 3600000, /* until it was believed so long */
};

struct kv_tally {
    double agreed, all; /* fading */
};

void kv_tally_add(struct kv_tally *t, bool agreed);
bool kv_tally_contradicts(const struct kv_tally *t);

/* Zeroes: nothing was compared, so they are believed. */
struct kv_trust {
    struct kv_tally blocks, cached;
    uint64_t until_ms; /* not believed until then */
    bool lost;
    unsigned times; /* in a row */
};

/* Something was added. True: they are no longer believed, from now on. */
bool kv_trust_lose(struct kv_trust *t, uint64_t now_ms);
/* True: they are believed again, from now on. */
bool kv_trust_again(struct kv_trust *t, uint64_t now_ms);
/* The engine was started anew, and its feed is not the only witness: that may have mended it. True:
 * they are believed again. */
bool kv_trust_restarted(struct kv_trust *t);

#endif
