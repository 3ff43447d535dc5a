/* The sequence of one feed: nothing lost unnoticed, nothing twice.
 *
 * An engine numbers its messages from 0 and sends each once, to those who are subscribed (vLLM's
 * ZMQ publisher; SGLang's is the same). One that is slow, late or cut off misses messages, and the
 * number of the next one is the only trace. Where the engine has a replay endpoint, what is missing
 * is asked for there, once at a time, for a replay can hold up the engine's scheduler; what comes
 * meanwhile is held back. What no replay brings is *missed*: the caller doubts what it knows.
 *
 * Number 0 after others is a new engine. Another smaller number is not: it may be a message that
 * came twice, so it counts as missed events, never as an empty cache.
 *
 * Pure: messages and time go in, and calls of struct kv_feed_user come out.
 */
#ifndef NODE_KV_FEED_H
#define NODE_KV_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/slice.h"

enum {
    KV_FEED_HELD_MAX = 8 << 20, /* bytes of messages that wait for a replay; more count as missed */
    KV_REPLAY_TIMEOUT_MS = 3000, /* without a further message of it: engines poll every 100 ms */
    KV_REPLAY_PAUSE_MS = 1000,   /* between two replays of one engine */
    /* After a gap a block may have a second copy as long as answers run that ran then. A replay
     * that takes as long brings nothing that going on without it does not, and is given up. */
    KV_SETTLE_MS = 60000,
};

struct kv_feed_user {
    /* The next message, in order. ERR_SYNTAX, ERR_LIMIT or ERR_NOMEM: it could not be read, and
     * counts as missed. */
    int (*message)(void *context, struct slice payload);
    void (*missed)(void *context); /* messages; what is known may be wrong */
    /* The engine, with an empty cache; `again`: messages came before, and nobody said that another
     * process answers. */
    void (*began)(void *context, bool again);
    /* Ask for it, and drop what comes of an earlier one. */
    void (*replay)(void *context, uint64_t from);
    void *context;
};

enum kv_feed_state {
    KV_FEED_BEGINS,  /* nothing came yet */
    KV_FEED_LIVE,    /* in order */
    KV_FEED_REPLAYS, /* waits for what is missing */
};

struct kv_feed_stats {
    uint64_t live;     /* messages of the subscription that came */
    uint64_t messages; /* that were handed over */
    uint64_t replayed; /* of these, by a replay */
    uint64_t gaps;     /* numbers that did not follow */
    uint64_t replays;  /* that were asked for */
    uint64_t missed;   /* times that `missed` was called */
    uint64_t twice;    /* messages that came again */
    uint64_t unread;   /* that could not be read */
};

struct kv_feed;

/* `user` and `secret` are borrowed. ERR_NOMEM. */
MUST_USE int kv_feed_create(struct kv_feed **out, const struct kv_feed_user *user,
                            const struct hash_secret *secret, bool has_replay);
/* A new one goes on where an earlier one stopped, perhaps in another life of this process: with the
 * next number, and the hash of the message before it (kv_feed_last()). Where there is a replay it
 * must show that this message is still the last one before: until then nothing is *proven*, and if
 * it cannot, messages were missed. */
void kv_feed_resume(struct kv_feed *f, uint64_t next, uint64_t last_hash);
uint64_t kv_feed_last(const struct kv_feed *f);
bool kv_feed_is_proven(const struct kv_feed *f);
void kv_feed_destroy(struct kv_feed *f);
void kv_feed_check(const struct kv_feed *f);

/* A message of the subscription. */
void kv_feed_live(struct kv_feed *f, uint64_t number, struct slice payload, uint64_t now_ms);
/* One of the replay that was asked for, and its end. */
void kv_feed_replayed(struct kv_feed *f, uint64_t number, struct slice payload, uint64_t now_ms);
void kv_feed_replay_ended(struct kv_feed *f, uint64_t now_ms);
/* The subscription is open, for the first time or again: messages may have been missed. A replay
 * brings them, and the last one that is known, which shows whether it is the same engine. */
void kv_feed_connected(struct kv_feed *f, uint64_t now_ms);
/* Another process answers for the engine: its numbers begin anew. */
void kv_feed_restarted(struct kv_feed *f);

/* When kv_feed_tick() has something to do; UINT64_MAX: never. */
uint64_t kv_feed_due_ms(const struct kv_feed *f);
void kv_feed_tick(struct kv_feed *f, uint64_t now_ms);

enum kv_feed_state kv_feed_state(const struct kv_feed *f);
uint64_t kv_feed_next(const struct kv_feed *f);
struct kv_feed_stats kv_feed_stats(const struct kv_feed *f);

#endif
