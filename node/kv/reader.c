#include <stdlib.h>

#include "base/check.h"
#include "base/wire.h"
#include "node/kv/reader_internal.h"

/* --- reporting -------------------------------------------------------------------------------- */

/* Remembers a refused report. The number of reports about a checkpoint is limited
 * (crdt/marks.h). */
static void refused(struct kv_reader *r, uint64_t chain)
{
    for (unsigned i = 0; i < r->refused_count; i++) {
        if (r->refused[i] == chain)
            return;
    }
    if (r->refused_count < KV_REFUSED_MAX)
        r->refused[r->refused_count++] = chain;
}

static bool may_say(const struct kv_reader *r)
{
    return r->speaks && !r->doubtful && !r->sheds && !r->trust.lost && kv_feed_is_proven(r->feed);
}

static void say(struct kv_reader *r, uint64_t id, uint8_t code, uint64_t chain, enum kv_reach reach)
{
    if (!may_say(r) || reach == KV_UNSURE)
        return;
    if (reach == KV_GONE) {
        bool said = r->user->gone(r->user->context, id, code);
        r->stats.gone += said;
        if (!said)
            refused(r, chain);
    } else {
        r->stats.present++;
        r->user->present(r->user->context, id, code);
    }
}

static void on_said(void *context, uint64_t id, uint8_t code, uint64_t chain)
{
    struct kv_reader *r = context;
    say(r, id, code, chain, kv_tree_reach(r->tree, chain));
}

/* Called for the checkpoints at a chain whose reach changed, up to KV_AHEAD chains later. By then
 * the chain may have left the tree, and is gone. */
static void on_changed(void *context, uint64_t id, uint8_t code, uint64_t chain)
{
    struct kv_reader *r = context;
    bool known = kv_tree_find(r->tree, chain).depth > 0;
    say(r, id, code, chain, known ? kv_tree_reach(r->tree, chain) : KV_GONE);
}

/* Called for a checkpoint in a sweep, which reports only present ones. Gone checkpoints are
 * reported when they go, or when this reader begins to report. Later, a router may believe in a
 * prompt before the engine has stored it. */
static void on_swept(void *context, uint64_t id, uint8_t code, uint64_t chain)
{
    struct kv_reader *r = context;
    if (kv_tree_reach(r->tree, chain) == KV_THERE)
        say(r, id, code, chain, KV_THERE);
}

/* Repeats refused reports. While this reader may not report they wait, because they may still be
 * true later. */
static void say_refused(struct kv_reader *r)
{
    if (r->paths == NULL)
        return;
    unsigned count = r->refused_count;
    if (!may_say(r))
        return;
    r->refused_count = 0;
    for (unsigned i = 0; i < count; i++) /* on_said() may add some, up to index i */
        kv_paths_at(r->paths, r->refused[i], &r->sayer);
}

static void say_reached(struct kv_reader *r)
{
    if (r->paths != NULL)
        kv_paths_at_last(r->paths, &r->reached, &r->changed);
}

static void on_reached(void *context, uint64_t chain, enum kv_reach now)
{
    struct kv_reader *r = context;
    if (r->speaks && now != KV_UNSURE && r->paths != NULL)
        kv_paths_at_later(r->paths, &r->reached, chain, &r->changed);
    if (!r->in_message)
        say_reached(r);
}

/* --- events ---------------------------------------------------------------------------------- */

static void cover_note(struct kv_reader *r, uint32_t stored, bool placed)
{
    r->stored += stored;
    r->placed += placed ? stored : 0;
    if (r->stored < r->turnover)
        return;
    r->covers = r->covers || r->placed >= r->stored - r->stored / KV_COVER_SHARE;
    r->stored = r->placed = 0;
}

static void run_note(struct kv_reader *r, const struct kv_event *e)
{
    if (e->change != KV_STORED || e->medium != KV_GPU || e->remote || e->count == 0 ||
        !kv_tree_is_main(r->tree, e))
        return;
    struct kv_tree_place last = kv_tree_find_hash(r->tree, e->hashes[e->count - 1]);
    cover_note(r, e->count, last.depth >= e->count);
    if (last.depth >= e->count) {
        kv_runs_stored(&r->runs, e->parent, last.depth - e->count, e->hashes[e->count - 1],
                       last.chain, last.depth, r->now_ms);
        return;
    }
    r->placeless_ms = r->now_ms;
    if (!e->has_parent)
        r->roomless_ms = r->now_ms;
}

static void on_event(void *context, const struct kv_event *e)
{
    struct kv_reader *r = context;
    if (r->sheds)
        return;
    kv_tree_clock(r->tree, r->now_ms);
    kv_tree_apply(r->tree, e);
    if (kv_reader_sheds(r))
        return;
    run_note(r, e);
    if (e->change == KV_CLEARED && r->speaks && !r->trust.lost)
        r->user->cleared(r->user->context);
}

static void on_ahead(void *context, uint64_t hash)
{
    struct kv_reader *r = context;
    kv_tree_ahead(r->tree, hash);
}

static int on_message(void *context, struct slice payload)
{
    struct kv_reader *r = context;
    struct kv_batch batch;
    bool asked = kv_feed_state(r->feed) == KV_FEED_REPLAYS;
    uint64_t steps = KV_MESSAGE_STEPS + payload.len / KV_STEP_BYTES;
    kv_tree_spend(r->tree, asked ? steps / KV_REPLAYED_STEPS : steps);
    if (kv_reader_sheds(r))
        return ERR_OK;
    r->in_message = true;
    int err = kv_batch_decode(r->decoder, payload, on_event, r, &batch);
    r->in_message = false;
    say_reached(r);
    kv_reader_size(r);
    return err;
}

static void on_missed(void *context)
{
    struct kv_reader *r = context;
    if (r->walked)
        r->doubtful = true;
    else
        kv_reader_doubt(r);
}

static void on_began(void *context, bool again)
{
    struct kv_reader *r = context;
    if (again && r->speaks && !r->trust.lost)
        r->user->began(r->user->context);
    kv_reader_forget(r);
    r->whole_ms = r->now_ms;
    r->covers = r->covers || kv_feed_state(r->feed) != KV_FEED_REPLAYS;
}

/* Makes room in a full tree. After a gap the tree fills with blocks whose copies are uncertain. If
 * the cache turns over before kv_tree_settle(), only this function removes such blocks. */
static void make_room(struct kv_reader *r)
{
    struct kv_tree_stats t = kv_tree_stats(r->tree);
    if (t.full == r->full || r->walked)
        return;
    r->full = t.full;
    r->walked = true;
    kv_tree_make_room(r->tree);
}

/* Starts a new window of the limit on work. */
static void window_next(struct kv_reader *r)
{
    if (r->now_ms < r->window_ms)
        return;
    r->window_ms = r->now_ms + KV_WINDOW_MS;
    r->walked = false;
    kv_tree_allow(r->tree, KV_STEPS_MAX);
    bool lost = r->sheds;
    r->sheds = false;
    if (lost)
        kv_reader_forget(r);
    if (lost || r->doubtful)
        kv_reader_doubt(r);
    make_room(r);
}

static void on_replay(void *context, uint64_t from)
{
    struct kv_reader *r = context;
    r->user->replay(r->user->context, from);
}

/* --- answers ---------------------------------------------------------------------------------- */

/* Tries the latest waiting answers again, because new blocks may be theirs. */
static void tie_waiting(struct kv_reader *r)
{
    for (unsigned i = 0; i < r->count && i < KV_TOLD_RETRIED; i++) {
        struct kv_waiting *w = &r->waiting[(r->first + r->count - 1 - i) % KV_TOLD_MAX];
        w->done = w->done || kv_reader_tie(r, w, false);
    }
}

/* Returns true if the request was in flight from before the last message before number 0 until
 * after number 0. Then only the feed restarted, and not the engine's process. */
static bool outlived_zero(const struct kv_reader *r, const struct kv_told *told)
{
    return told->sent_ms + KV_TOLD_SLACK_MS < r->former_ms &&
           told->ended_ms > r->zero_ms + KV_TOLD_SLACK_MS;
}

void kv_reader_told(struct kv_reader *r, const struct kv_told *told, uint64_t now_ms)
{
    r->now_ms = now_ms;
    r->stats.told++;
    r->tells_cached |= told->cached_tokens > 0 && told->cached_tokens != KV_UNTOLD;
    /* Matches at once if possible, before the next turn's blocks follow. */
    struct kv_waiting w = {
        .told = *told, .due_ms = now_ms + KV_TOLD_WAIT_MS, .outlived_zero = outlived_zero(r, told)};
    if (kv_reader_tie(r, &w, false))
        return;
    if (r->count == KV_TOLD_MAX) {
        r->stats.unmatched += !w.placed;
        return;
    }
    r->waiting[(r->first + r->count++) % KV_TOLD_MAX] = w;
}

/* --- time ------------------------------------------------------------------------------------ */

uint64_t kv_reader_due_ms(const struct kv_reader *r)
{
    uint64_t due_ms = kv_feed_due_ms(r->feed);
    if (r->settle_ms > 0 && r->settle_ms < due_ms)
        due_ms = r->settle_ms;
    if ((r->sheds || r->doubtful) && r->window_ms < due_ms)
        due_ms = r->window_ms;
    if (r->count > 0 && r->waiting[r->first].due_ms < due_ms)
        due_ms = r->waiting[r->first].due_ms;
    if (r->speaks && r->sweep_ms < due_ms)
        due_ms = r->sweep_ms;
    if (r->trust.lost && r->trust.until_ms < due_ms)
        due_ms = r->trust.until_ms;
    return due_ms;
}

void kv_reader_tick(struct kv_reader *r, uint64_t now_ms)
{
    r->now_ms = now_ms;
    window_next(r);
    kv_feed_tick(r->feed, now_ms);
    if (kv_trust_again(&r->trust, now_ms)) {
        if (kv_tree_is_whole(r->tree))
            kv_reader_doubt(r); /* number 0 had emptied the tree, but was not trusted either */
        kv_reader_catch_up(r);
    }
    if (r->settle_ms > 0 && now_ms >= r->settle_ms) {
        r->settle_ms = 0;
        kv_tree_settle(r->tree);
    }
    while (r->count > 0 && now_ms >= r->waiting[r->first].due_ms) {
        if (!r->waiting[r->first].done)
            (void)kv_reader_tie(r, &r->waiting[r->first], true);
        r->first = (r->first + 1) % KV_TOLD_MAX;
        r->count--;
    }
    if (!r->speaks || now_ms < r->sweep_ms)
        return;
    r->sweep_ms = now_ms + KV_SWEEP_MS;
    kv_reader_size(r);
    if (r->paths == NULL)
        return;
    say_refused(r);
    if (r->catch_up == 0 || !may_say(r)) {
        kv_paths_walk(r->paths, &r->cursor, KV_SWEEP_POINTS, &r->sweeper);
        return;
    }
    uint32_t count = r->catch_up < KV_CATCH_UP_POINTS ? r->catch_up : KV_CATCH_UP_POINTS;
    kv_paths_walk(r->paths, &r->cursor, count, &r->sayer);
    r->catch_up -= count;
}

void kv_reader_live(struct kv_reader *r, uint64_t number, struct slice payload, uint64_t now_ms)
{
    r->now_ms = now_ms;
    window_next(r);
    if (number == 0 && now_ms >= r->zero_ms + KV_WINDOW_MS) {
        r->former_ms = r->live_ms;
        r->zero_ms = now_ms;
    }
    r->live_ms = now_ms;
    kv_feed_live(r->feed, number, payload, now_ms);
    tie_waiting(r);
}

void kv_reader_replayed(struct kv_reader *r, uint64_t number, struct slice payload, uint64_t now_ms)
{
    r->now_ms = now_ms;
    window_next(r);
    kv_feed_replayed(r->feed, number, payload, now_ms);
}

void kv_reader_replay_ended(struct kv_reader *r, uint64_t now_ms)
{
    r->now_ms = now_ms;
    kv_feed_replay_ended(r->feed, now_ms);
}

void kv_reader_connected(struct kv_reader *r, uint64_t now_ms)
{
    r->now_ms = r->whole_ms = now_ms;
    kv_feed_connected(r->feed, now_ms);
}

void kv_reader_restarted(struct kv_reader *r, uint64_t now_ms)
{
    r->now_ms = now_ms;
    kv_feed_restarted(r->feed);
}

void kv_reader_restart_is_seen(struct kv_reader *r)
{
    if (kv_trust_restarted(&r->trust))
        kv_reader_catch_up(r);
}

const struct kv_trust *kv_reader_trust(const struct kv_reader *r)
{
    return &r->trust;
}

void kv_reader_trusts(struct kv_reader *r, const struct kv_trust *before)
{
    r->trust = *before;
}

void kv_reader_speaks(struct kv_reader *r, bool speaks)
{
    if (speaks && !r->speaks)
        kv_reader_catch_up(r);
    r->speaks = speaks;
}

/* --- questions and life ---------------------------------------------------------------------- */

enum { KEPT_HEAD = 16 };

int kv_reader_keep(const struct kv_reader *r, struct buf *out)
{
    uint8_t head[KEPT_HEAD];
    struct wire_writer w = wire_writer_of(head, sizeof head);
    if (kv_feed_next(r->feed) == 0 || kv_feed_last(r->feed) == 0 || r->doubtful || r->sheds)
        return 0;
    wire_write_u64(&w, kv_feed_next(r->feed));
    wire_write_u64(&w, kv_feed_last(r->feed));
    int err = buf_append(out, head, sizeof head);
    if (err == ERR_OK)
        err = kv_tree_keep(r->tree, out);
    return err == ERR_OK ? 1 : err;
}

bool kv_reader_resume(struct kv_reader *r, struct slice kept, uint64_t now_ms)
{
    struct wire_reader in = wire_reader_of(kept.at, kept.len);
    uint64_t next = wire_read_u64(&in), last = wire_read_u64(&in);
    r->now_ms = now_ms;
    if (in.bad || next == 0 || last == 0 || !kv_tree_recall(r->tree, slice_skip(kept, KEPT_HEAD)))
        return false;
    kv_feed_resume(r->feed, next, last);
    r->covers = kv_tree_is_whole(r->tree);
    if (kv_feed_is_proven(r->feed)) /* no replay will prove the state */
        kv_reader_doubt(r);
    return true;
}

bool kv_reader_covers(const struct kv_reader *r)
{
    return r->covers && kv_feed_is_proven(r->feed) && !r->doubtful && !r->sheds && !r->trust.lost;
}

const struct kv_tree *kv_reader_tree(const struct kv_reader *r)
{
    return r->tree;
}

struct kv_reader_stats kv_reader_stats(const struct kv_reader *r)
{
    struct kv_reader_stats stats = r->stats;
    stats.feed = kv_feed_stats(r->feed);
    stats.tree = kv_tree_stats(r->tree);
    stats.believed_ms = r->trust.lost ? r->trust.until_ms : 0;
    return stats;
}

int kv_reader_create(struct kv_reader **out, const struct kv_reader_user *user,
                     const struct hash_secret *secret, uint32_t blocks_max, bool has_replay)
{
    struct kv_reader *r = calloc(1, sizeof *r);
    if (r == NULL)
        return ERR_NOMEM;
    r->user = user;
    r->tree_user = (struct kv_tree_user){on_reached, r};
    r->feed_user = (struct kv_feed_user){on_message, on_missed, on_began, on_replay, r};
    r->listener = r->sayer = (struct kv_anchor_user){.anchored = on_said, .context = r};
    r->changed = (struct kv_anchor_user){.anchored = on_changed, .context = r};
    r->sweeper = (struct kv_anchor_user){.anchored = on_swept, .context = r};
    r->turnover = blocks_max / 2;
    r->runs.salt = hash64(secret, "runs", 4);
    kv_runs_clear(&r->runs);
    if (kv_tree_create(&r->tree, &r->tree_user, secret, blocks_max) != 0 ||
        kv_decoder_create(&r->decoder, secret) != 0 ||
        kv_feed_create(&r->feed, &r->feed_user, secret, has_replay) != 0) {
        kv_reader_destroy(r);
        return ERR_NOMEM;
    }
    kv_decoder_ahead(r->decoder, on_ahead);
    *out = r;
    return ERR_OK;
}

void kv_reader_destroy(struct kv_reader *r)
{
    if (r == NULL)
        return;
    if (r->paths != NULL)
        kv_paths_unlisten(r->paths, &r->listener);
    kv_feed_destroy(r->feed);
    kv_decoder_destroy(r->decoder);
    kv_tree_destroy(r->tree);
    free(r);
}

void kv_reader_check(const struct kv_reader *r)
{
    CHECK(r->count <= KV_TOLD_MAX && r->first < KV_TOLD_MAX);
    kv_tree_check(r->tree);
    kv_feed_check(r->feed);
}
