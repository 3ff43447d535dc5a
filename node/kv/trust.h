/* Decides if an engine's KV events are trusted, by comparing them with its answers.
 *
 *   blocks   an answer's blocks are among those that were stored while it ran (reader.h)
 *   cached   an answer took from the cache the blocks that the events say were there all the
 *            time since it was sent, and none that was gone then
 *
 * For each, the share of agreeing answers among the last KV_TALLY_MEMORY or so is counted. A share
 * *contradicts* if it is below one half beyond all chance. The worst honest engine known, one that
 * preempts all the time, has no blocks for half of its answers, and nearly all others agree. None
 * agree if an engine's answers say 0, or all, or if its feed is another engine's.
 *
 * Events that contradict are not trusted for a while, longer each time, and then tried again. The
 * engine's own signals do not end that sooner: neither number 0 of its feed, nor a restart that
 * others see, except the first time in a row. Comparisons count beyond restarts.
 */
#ifndef NODE_KV_TRUST_H
#define NODE_KV_TRUST_H

#include <stdbool.h>
#include <stdint.h>

enum {
    KV_TALLY_MEMORY = 64, /* answers: four deviations below a half are then less than a quarter */
    KV_TALLY_SIGMAS = 4,  /* 3 in 100,000, for an engine just at the half */
    KV_TRUST_AGAIN_MS = 300000,   /* first time without trust, */
    KV_TRUST_DOUBLINGS = 3,       /* doubled each time, up to so often, */
    KV_TRUST_FORGET_MS = 3600000, /* until trust has lasted so long */
};

struct kv_tally {
    double agreed, all; /* decaying counts */
};

void kv_tally_add(struct kv_tally *t, bool agreed);
bool kv_tally_contradicts(const struct kv_tally *t);

/* Zeroes: nothing was compared, so the events are trusted. */
struct kv_trust {
    struct kv_tally blocks, cached;
    uint64_t until_ms; /* no trust until then */
    bool lost;
    unsigned times; /* losses of trust in a row */
};

/* A comparison was added. True: trust is lost from now on. */
bool kv_trust_lose(struct kv_trust *t, uint64_t now_ms);
/* True: the events are trusted again from now on. */
bool kv_trust_again(struct kv_trust *t, uint64_t now_ms);
/* The engine restarted, and not only its feed shows it: the restart may have repaired the events.
 * True: they are trusted again. */
bool kv_trust_restarted(struct kv_trust *t);

#endif
