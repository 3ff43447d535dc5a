#include "node/kv/feed.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"

/* A message waiting for the end of a replay, followed by the payload. */
struct held {
    uint64_t number;
    uint64_t len;
};

struct kv_feed {
    const struct kv_feed_user *user;
    const struct hash_secret *secret;
    bool has_replay;
    enum kv_feed_state state;
    uint64_t next;            /* number of the next message */
    uint64_t last_hash;       /* hash of the message before `next`; 0: unknown */
    uint64_t live, live_hash; /* number and hash of the subscription's last message */
    bool has_live;            /* a message came since the subscription opened */
    uint64_t replayed;        /* number after the replay's last message; 0: none came since the
                                 subscription opened */
    bool asked;               /* the replay was requested; false: the request waits */
    bool verifies;            /* the replay should begin with the last known message */
    bool unproven;            /* the last known message is from before a restart of the router */
    bool heard;               /* a message was passed to the caller before, perhaps by an earlier
                               * process */
    uint64_t due_ms;          /* time at which to request the replay, or to give it up */
    uint64_t end_ms;          /* time at which to give the replay up even if messages come */
    uint64_t pause_ms;        /* no replay is requested before this time */
    struct buf held;
    struct kv_feed_stats stats;
};

static uint64_t hash_of(const struct kv_feed *f, struct slice payload)
{
    uint64_t hash = hash64(f->secret, payload.at, payload.len);
    return hash != 0 ? hash : 1;
}

static void missed(struct kv_feed *f)
{
    f->stats.missed++;
    f->unproven = false;
    f->user->missed(f->user->context);
}

static void hand_over(struct kv_feed *f, uint64_t number, struct slice payload)
{
    if (number == 0) {
        f->unproven = false;
        f->user->began(f->user->context, f->heard);
    }
    f->heard = true;
    f->next = number + 1;
    f->last_hash = hash_of(f, payload);
    f->stats.messages++;
    if (f->user->message(f->user->context, payload) == 0)
        return;
    f->stats.unread++;
    missed(f);
}

/* --- replays --------------------------------------------------------------------------------- */

static void ask(struct kv_feed *f, uint64_t now_ms)
{
    f->asked = true;
    f->due_ms = now_ms + KV_REPLAY_TIMEOUT_MS;
    f->end_ms = now_ms + KV_SETTLE_MS;
    f->pause_ms = now_ms + KV_REPLAY_PAUSE_MS;
    f->stats.replays++;
    f->verifies = f->next > 0 && f->last_hash != 0;
    f->user->replay(f->user->context, f->next - f->verifies);
}

static void replay_begin(struct kv_feed *f, uint64_t now_ms)
{
    f->state = KV_FEED_REPLAYS;
    f->asked = false;
    f->replayed = 0;
    f->due_ms = f->pause_ms;
    buf_clear(&f->held);
    if (now_ms >= f->pause_ms)
        ask(f, now_ms);
}

/* Stores a message until the replay ends. If there is no room, the message is dropped, and counts
 * as missed when the next number shows the gap. */
static void hold(struct kv_feed *f, uint64_t number, struct slice payload)
{
    const struct held h = {number, payload.len};
    if (buf_reserve(&f->held, sizeof h + payload.len) != 0)
        return;
    CHECK(buf_append(&f->held, &h, sizeof h) == 0);
    CHECK(buf_append_slice(&f->held, payload) == 0);
}

/* Ends the replay, and continues with the waiting messages. */
static void replay_end(struct kv_feed *f)
{
    f->state = KV_FEED_LIVE;
    if (f->unproven && f->held.len == 0)
        missed(f);
    struct slice rest = buf_slice(&f->held);
    while (rest.len > 0) {
        struct held h;
        memcpy(&h, rest.at, sizeof h);
        struct slice payload = slice_of(rest.at + sizeof h, h.len);
        rest = slice_skip(rest, sizeof h + h.len);
        if (h.number < f->next && !f->verifies) /* the replay had the message, too */
            continue;
        if (h.number != f->next || f->verifies) /* no replay showed that the engine is the same */
            missed(f);
        f->verifies = false;
        hand_over(f, h.number, payload);
    }
    buf_clear(&f->held);
}

/* --- messages -------------------------------------------------------------------------------- */

/* Called if messages before this message are missing. */
static void gap(struct kv_feed *f, uint64_t number, struct slice payload, uint64_t now_ms)
{
    f->stats.gaps++;
    if (f->has_replay) {
        replay_begin(f, now_ms);
        hold(f, number, payload);
        return;
    }
    missed(f);
    hand_over(f, number, payload);
}

void kv_feed_live(struct kv_feed *f, uint64_t number, struct slice payload, uint64_t now_ms)
{
    uint64_t hash = hash_of(f, payload);
    bool falls = f->has_live && number <= f->live;
    f->stats.live++;
    if (falls && number == f->live && hash == f->live_hash) {
        f->stats.twice++;
        return;
    }
    f->live = number;
    f->live_hash = hash;
    f->has_live = true;
    if (f->state == KV_FEED_REPLAYS && !falls) {
        hold(f, number, payload);
        return;
    }
    if (number < f->replayed && !falls) { /* the replay overtook the message */
        f->stats.twice++;
        return;
    }
    f->state = KV_FEED_LIVE;
    f->replayed = 0;
    buf_clear(&f->held);
    if (number == 0 || (number == f->next && !falls)) {
        hand_over(f, number, payload);
        return;
    }
    if (number <= f->next) { /* another engine, or a late message: all is in doubt */
        missed(f);
        f->next = 0;
        f->last_hash = 0;
    }
    gap(f, number, payload, now_ms);
}

void kv_feed_replayed(struct kv_feed *f, uint64_t number, struct slice payload, uint64_t now_ms)
{
    if (f->state != KV_FEED_REPLAYS || !f->asked)
        return;
    if (f->verifies || number >= f->next) { /* a new message */
        f->due_ms = now_ms + KV_REPLAY_TIMEOUT_MS;
        f->due_ms = f->due_ms < f->end_ms ? f->due_ms : f->end_ms;
    }
    if (f->verifies && (number != f->next - 1 || hash_of(f, payload) != f->last_hash)) {
        missed(f); /* maybe another engine, with unknown earlier messages */
        f->next = number;
    }
    f->verifies = f->unproven = false;
    if (number < f->next)
        return;
    if (number > f->next)
        missed(f);
    f->stats.replayed++;
    f->replayed = number + 1;
    hand_over(f, number, payload);
}

void kv_feed_replay_ended(struct kv_feed *f, uint64_t now_ms)
{
    if (f->state != KV_FEED_REPLAYS || !f->asked)
        return;
    if (f->verifies) { /* another engine: this replay lacks the last known message */
        missed(f);
        f->next = 0;
        f->last_hash = 0;
        f->asked = false;
        f->due_ms = f->pause_ms;
        kv_feed_tick(f, now_ms);
        return;
    }
    replay_end(f);
}

void kv_feed_connected(struct kv_feed *f, uint64_t now_ms)
{
    f->has_live = false;
    if (f->has_replay) /* even during a replay: another engine may answer */
        replay_begin(f, now_ms);
}

void kv_feed_restarted(struct kv_feed *f)
{
    f->state = KV_FEED_LIVE;
    f->next = f->replayed = 0;
    f->last_hash = 0;
    f->has_live = f->unproven = f->heard = false;
    buf_clear(&f->held);
    f->user->began(f->user->context, false);
}

/* --- time ------------------------------------------------------------------------------------ */

uint64_t kv_feed_due_ms(const struct kv_feed *f)
{
    return f->state == KV_FEED_REPLAYS ? f->due_ms : UINT64_MAX;
}

void kv_feed_tick(struct kv_feed *f, uint64_t now_ms)
{
    if (now_ms < kv_feed_due_ms(f))
        return;
    if (f->asked)
        replay_end(f); /* the engine no longer answers */
    else
        ask(f, now_ms);
}

/* --- life ------------------------------------------------------------------------------------ */

int kv_feed_create(struct kv_feed **out, const struct kv_feed_user *user,
                   const struct hash_secret *secret, bool has_replay)
{
    struct kv_feed *f = calloc(1, sizeof *f);
    if (f == NULL)
        return ERR_NOMEM;
    f->user = user;
    f->secret = secret;
    f->has_replay = has_replay;
    buf_init(&f->held, KV_FEED_HELD_MAX);
    *out = f;
    return ERR_OK;
}

void kv_feed_resume(struct kv_feed *f, uint64_t next, uint64_t last_hash)
{
    f->next = next;
    f->last_hash = last_hash;
    f->unproven = f->has_replay;
    f->heard = true;
}

uint64_t kv_feed_last(const struct kv_feed *f)
{
    return f->last_hash;
}

bool kv_feed_is_proven(const struct kv_feed *f)
{
    return !f->unproven;
}

void kv_feed_destroy(struct kv_feed *f)
{
    if (f == NULL)
        return;
    buf_free(&f->held);
    free(f);
}

void kv_feed_check(const struct kv_feed *f)
{
    CHECK(f->state == KV_FEED_REPLAYS || f->held.len == 0);
    CHECK(f->state != KV_FEED_REPLAYS || f->has_replay);
    CHECK(f->stats.replayed <= f->stats.messages);
    CHECK(!f->unproven || f->state != KV_FEED_LIVE);
}

enum kv_feed_state kv_feed_state(const struct kv_feed *f)
{
    return f->state;
}

uint64_t kv_feed_next(const struct kv_feed *f)
{
    return f->next;
}

struct kv_feed_stats kv_feed_stats(const struct kv_feed *f)
{
    return f->stats;
}
