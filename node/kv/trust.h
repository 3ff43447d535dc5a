/* Decides if an engine's KV events are trusted, by comparing them with the engine's answers.
 *
 *   blocks   by the events, the answer's blocks were stored while it ran (reader.h)
 *   cached   by the events, the answer used at least half of the blocks cached all the time since
 *            the request was sent, and no gone block
 *
 * For each comparison, the share of agreeing answers among about the last KV_TALLY_MEMORY is
 * counted. A share *contradicts* if it is below 1/2 by more than chance explains. The worst honest
 * engine known preempts all the time: half of the answers have no blocks, and nearly all others
 * agree. No answer agrees if an engine always reports 0 cached tokens, or all as cached, or if the
 * feed is another engine's.
 *
 * If answers contradict the events, the events are not trusted for a while, each time for longer,
 * and then tried again. Message number 0 of the feed does not end this time sooner. A restart with
 * other signs than the feed ends only the first such time in a row. Comparisons from before a
 * restart still count.
 */
#ifndef NODE_KV_TRUST_H
#define NODE_KV_TRUST_H

#include <stdbool.h>
#include <stdint.h>

enum {
    KV_TALLY_MEMORY = 64,         /* number of remembered answers; 4 standard deviations below a
                                   * share of 1/2 is then a share of 1/4 */
    KV_TALLY_SIGMAS = 4,          /* a chance of 3 in 100,000 for an engine at exactly 1/2 */
    KV_TRUST_AGAIN_MS = 300000,   /* length of the first time without trust */
    KV_TRUST_DOUBLINGS = 3,       /* most doublings of KV_TRUST_AGAIN_MS */
    KV_TRUST_FORGET_MS = 3600000, /* after this time with trust, the doublings start again */
};

struct kv_tally {
    double agreed, all; /* decaying counts of agreeing answers, and of all answers */
};

void kv_tally_add(struct kv_tally *t, bool agreed);
bool kv_tally_contradicts(const struct kv_tally *t);

/* Starts zeroed: without comparisons the events are trusted. */
struct kv_trust {
    struct kv_tally blocks, cached;
    uint64_t until_ms; /* while `lost`: end of the time without trust */
    bool lost;         /* the events are not trusted now */
    unsigned times;    /* losses of trust in a row */
};

/* Called after a comparison was added. Returns true if trust is lost from now on. */
bool kv_trust_lose(struct kv_trust *t, uint64_t now_ms);
/* Returns true if the events are trusted again from now on. */
bool kv_trust_again(struct kv_trust *t, uint64_t now_ms);
/* Called after a restart that shows in other signs than the feed: the restart may have repaired the
 * events. Returns true if the events are trusted again from now on. */
bool kv_trust_restarted(struct kv_trust *t);

#endif
