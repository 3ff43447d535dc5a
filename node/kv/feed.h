/* The message sequence of a KV-event feed: no message is lost unnoticed or applied twice.
 *
 * An engine numbers the messages from 0 and sends each once to all subscribers (vLLM's ZMQ
 * publisher; SGLang's is the same). A slow, late or disconnected subscriber misses messages; the
 * next message's number is the only sign. If the engine has a replay endpoint, the feed requests
 * missing messages there. Replays never overlap, because a replay can delay the engine's scheduler.
 * New messages wait meanwhile. Messages not replayed are *missed*: the state of the cache is then
 * in doubt.
 *
 * Number 0 after higher numbers means that the engine restarted with an empty cache. Any other
 * smaller number may be a repeated message, and counts as missed messages.
 *
 * Pure: messages and time go in, calls of struct kv_feed_user come out.
 */
#ifndef NODE_KV_FEED_H
#define NODE_KV_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/slice.h"

enum {
    KV_FEED_HELD_MAX = 8 << 20,  /* bytes of messages waiting for a replay; more count as missed */
    KV_REPLAY_TIMEOUT_MS = 3000, /* longest gap in a replay; engines poll at 100 ms */
    KV_REPLAY_PAUSE_MS = 1000,   /* shortest time between two replays of an engine */
    /* Time from a gap until all answers in flight at the gap have ended, so that no block has a
     * second copy any more. A longer replay is useless by then, and is given up. */
    KV_SETTLE_MS = 60000,
};

struct kv_feed_user {
    /* Handles the next message, in order. ERR_SYNTAX, ERR_LIMIT or ERR_NOMEM: the message could not
     * be read, and counts as missed. */
    int (*message)(void *context, struct slice payload);
    void (*missed)(void *context); /* messages were missed; the state may be wrong */
    /* The engine has just started with an empty cache. `again`: messages had come before, and
     * kv_feed_restarted() was not called. */
    void (*began)(void *context, bool again);
    /* Requests a replay from this number. Messages of an earlier replay must be dropped from now
     * on. */
    void (*replay)(void *context, uint64_t from);
    void *context;
};

enum kv_feed_state {
    KV_FEED_BEGINS,  /* no message yet */
    KV_FEED_LIVE,    /* messages come in order */
    KV_FEED_REPLAYS, /* waits for a replay of missing messages */
};

struct kv_feed_stats {
    uint64_t live;     /* messages from the subscription */
    uint64_t messages; /* messages passed to the caller */
    uint64_t replayed; /* messages passed to the caller from a replay */
    uint64_t gaps;     /* messages with an unexpected number */
    uint64_t replays;  /* requests for a replay */
    uint64_t missed;   /* calls of `missed` */
    uint64_t twice;    /* repeated messages, which were dropped */
    uint64_t unread;   /* unreadable messages */
};

struct kv_feed;

/* `user` and `secret` are borrowed. ERR_NOMEM. */
MUST_USE int kv_feed_create(struct kv_feed **out, const struct kv_feed_user *user,
                            const struct hash_secret *secret, bool has_replay);
/* Continues where an earlier feed stopped, perhaps before a restart of the router. `next`: the next
 * number. `last_hash`: the hash of the message before (kv_feed_last()). If there is a replay
 * endpoint, a replay must then show that the message before `next` still has this hash. Until then
 * the state is not *proven*. If no replay shows this, messages were missed. */
void kv_feed_resume(struct kv_feed *f, uint64_t next, uint64_t last_hash);
uint64_t kv_feed_last(const struct kv_feed *f);
bool kv_feed_is_proven(const struct kv_feed *f);
void kv_feed_destroy(struct kv_feed *f);
void kv_feed_check(const struct kv_feed *f);

/* Handles a message from the subscription. */
void kv_feed_live(struct kv_feed *f, uint64_t number, struct slice payload, uint64_t now_ms);
/* Handle a message from the requested replay, and the replay's end. */
void kv_feed_replayed(struct kv_feed *f, uint64_t number, struct slice payload, uint64_t now_ms);
void kv_feed_replay_ended(struct kv_feed *f, uint64_t now_ms);
/* Called when the subscription is open, for the first time or again. Messages may have been missed,
 * so a replay is requested. The replay begins with the last known message, as proof that the engine
 * is still the same. */
void kv_feed_connected(struct kv_feed *f, uint64_t now_ms);
/* Called when the engine was restarted: message numbers restart at 0. */
void kv_feed_restarted(struct kv_feed *f);

/* Returns the time at which kv_feed_tick() has work to do; UINT64_MAX: never. */
uint64_t kv_feed_due_ms(const struct kv_feed *f);
void kv_feed_tick(struct kv_feed *f, uint64_t now_ms);

enum kv_feed_state kv_feed_state(const struct kv_feed *f);
uint64_t kv_feed_next(const struct kv_feed *f);
struct kv_feed_stats kv_feed_stats(const struct kv_feed *f);

#endif
