#include "node/kv/reader.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/wire.h"
#include "node/kv/batch.h"
#include "node/kv/runs.h"
#include "node/kv/trust.h"

/* An answer that waits for its blocks' events. */
struct waiting {
    struct kv_told told;
    uint64_t due_ms;
    bool done;
    bool placed, wrong; /* by the chain that it said; structure said another one, */
    uint64_t text;      /* by what was known up to this checkpoint before */
};

struct kv_reader {
    const struct kv_reader_user *user;
    struct kv_paths *paths;
    struct kv_tree *tree;
    struct kv_feed *feed;
    struct kv_decoder *decoder;
    struct kv_tree_user tree_user;
    struct kv_feed_user feed_user;
    struct kv_anchor_user listener, sayer, sweeper;
    bool speaks;
    uint64_t now_ms;       /* of the call under way */
    uint64_t window_ms;    /* when the next one begins, for what the feed may cost */
    uint64_t settle_ms;    /* when what was missed matters no more; 0: nothing was */
    uint64_t whole_ms;     /* since when nothing was missed */
    bool walked;           /* in this window, over all of the tree */
    bool doubtful;         /* more was missed since */
    bool tells_cached;     /* some answer found something, so 0 of another one is nothing */
    bool sheds;            /* it cost too much: nothing is read until the next one */
    uint32_t cursor;       /* of the sweep, */
    uint64_t sweep_ms;     /* which goes on then, */
    uint32_t catch_up;     /* and says of so many places of the paths what is gone there, too */
    unsigned first, count; /* of those that wait */
    struct kv_trust trust;
    struct kv_reader_stats stats;
    uint64_t refused[KV_REFUSED_MAX]; /* chains */
    unsigned refused_count;
    struct waiting waiting[KV_TOLD_MAX];
    struct kv_runs runs;
    struct kv_paths_later reached; /* of these nothing is said yet, */
    bool in_message;               /* while one is being read */
};

/* --- saying ---------------------------------------------------------------------------------- */

/* Of a checkpoint there are only so many words a while (crdt/marks.h). */
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

/* What is gone is said when it goes, or when this reader begins to speak: an observation since may
 * be of a prompt that is on its way. */
static void on_swept(void *context, uint64_t id, uint8_t code, uint64_t chain)
{
    struct kv_reader *r = context;
    if (kv_tree_reach(r->tree, chain) == KV_THERE)
        say(r, id, code, chain, KV_THERE);
}

static void say_refused(struct kv_reader *r)
{
    unsigned count = r->refused_count;
    r->refused_count = 0;
    for (unsigned i = 0; i < count; i++) /* some come in again, at their place or before it */
        kv_paths_at(r->paths, r->refused[i], &r->sayer);
}

static void on_reached(void *context, uint64_t chain, enum kv_reach now)
{
    struct kv_reader *r = context;
    if (r->speaks && now != KV_UNSURE)
        kv_paths_at_later(r->paths, &r->reached, chain, &r->sayer);
    if (!r->in_message)
        kv_paths_at_last(r->paths, &r->reached, &r->sayer);
}

/* --- events ---------------------------------------------------------------------------------- */

static void run_note(struct kv_reader *r, const struct kv_event *e)
{
    if (e->change != KV_STORED || e->medium != KV_GPU || e->count == 0 ||
        !kv_tree_is_main(r->tree, e))
        return;
    struct kv_tree_place last = kv_tree_find_hash(r->tree, e->hashes[e->count - 1]);
    if (last.depth >= e->count)
        kv_runs_stored(&r->runs, e->parent, last.depth - e->count, e->hashes[e->count - 1],
                       last.chain, last.depth, r->now_ms);
}

static void on_event(void *context, const struct kv_event *e)
{
    struct kv_reader *r = context;
    if (r->sheds)
        return;
    kv_tree_clock(r->tree, r->now_ms);
    kv_tree_apply(r->tree, e);
    if (kv_tree_is_tired(r->tree)) {
        r->sheds = true;
        r->stats.shed++;
        return;
    }
    run_note(r, e);
    if (e->change == KV_CLEARED && r->speaks)
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
    r->in_message = true;
    int err = kv_batch_decode(r->decoder, payload, on_event, r, &batch);
    r->in_message = false;
    kv_paths_at_last(r->paths, &r->reached, &r->sayer);
    return err;
}

static void doubt(struct kv_reader *r)
{
    kv_tree_doubt(r->tree);
    kv_runs_clear(&r->runs);
    r->settle_ms = r->now_ms + KV_SETTLE_MS;
    r->whole_ms = r->now_ms;
    r->walked = true;
    r->doubtful = false;
}

static void on_missed(void *context)
{
    struct kv_reader *r = context;
    if (r->walked)
        r->doubtful = true;
    else
        doubt(r);
}

static void forget(struct kv_reader *r)
{
    kv_tree_clear(r->tree);
    kv_runs_clear(&r->runs);
    r->doubtful = r->sheds = false;
    r->settle_ms = 0;
    r->refused_count = 0;
}

static void on_began(void *context)
{
    struct kv_reader *r = context;
    forget(r);
    r->whole_ms = r->now_ms;
    r->trust = (struct kv_trust){0};
}

/* It may cost as much again. */
static void window_next(struct kv_reader *r)
{
    if (r->now_ms < r->window_ms)
        return;
    r->window_ms = r->now_ms + KV_WINDOW_MS;
    r->walked = false;
    kv_tree_allow(r->tree, KV_STEPS_MAX);
    bool lost = r->sheds;
    if (lost)
        forget(r);
    if (lost || r->doubtful)
        doubt(r);
}

static void on_replay(void *context, uint64_t from)
{
    struct kv_reader *r = context;
    r->user->replay(r->user->context, from);
}

/* --- ties ------------------------------------------------------------------------------------ */

/* A request's part of a run, and where its prompt's whole blocks end. */
struct match {
    struct kv_run *run;
    unsigned stop;
    struct kv_tree_place place; /* of depth 0: there is none, */
    bool unclear;               /* or several */
};

/* The blocks of the prompt, if they can be no others: by what is known of its text up to the
 * checkpoint `text`, or by its chain, if that is not 0. */
static struct match blocks_of(struct kv_reader *r, const struct kv_told *told, uint32_t block,
                              uint64_t text, uint64_t chain)
{
    struct match m = {.run = NULL};
    struct kv_run *run = kv_runs_newest(&r->runs);
    for (; run != NULL && kv_run_last_ms(run) + KV_TOLD_SLACK_MS >= told->sent_ms;
         run = kv_runs_older(&r->runs, run)) {
        int stop = kv_run_stop(run, told, block);
        if (stop < 0)
            continue;
        struct kv_tree_place place = kv_tree_find(r->tree, run->stop[stop].chain);
        place = kv_tree_up(r->tree, place, told->prompt_tokens / block);
        if (place.depth == 0 ||
            (chain != 0 ? place.chain != chain : !kv_paths_fits(r->paths, text, r->tree, place)))
            continue;
        if (m.place.depth > 0 && m.place.chain != place.chain)
            return (struct match){.unclear = true};
        m = (struct match){.run = run, .stop = (unsigned)stop, .place = place};
    }
    return m;
}

static bool is_live(const struct kv_reader *r)
{
    return kv_reader_state(r) == KV_READER_LIVE;
}

/* It tells what it found, and nothing was missed since it was sent. */
static bool may_judge(const struct kv_reader *r, const struct kv_told *told)
{
    return is_live(r) && r->tells_cached && told->cached_tokens != KV_UNTOLD &&
           told->sent_ms > r->whole_ms + KV_TOLD_SLACK_MS;
}

static void judged(struct kv_reader *r)
{
    if (!kv_trust_lose(&r->trust, r->now_ms))
        return;
    r->stats.disbelieved++;
    kv_paths_disown(r->paths, &r->listener);
    forget(r); /* it is tried again with what it says from now on */
    doubt(r);
}

/* It has no blocks, and should have: it computed one whole block by what it tells, and that one's
 * place is known, because it found none in the cache or all that is there is known. */
static void judge_blocks(struct kv_reader *r, const struct kv_told *told, uint32_t block, bool tied)
{
    uint32_t cached = told->cached_tokens / block;
    uint32_t last = (told->prompt_tokens + told->output_tokens - 1) / block;
    bool knows = cached == 0 || kv_tree_is_whole(r->tree);
    if (tied || (may_judge(r, told) && knows && last > cached))
        kv_tally_add(&r->trust.blocks, tied);
}

/* What it found in the cache, against what was there all the time: `place` is on its way. What was
 * unsure is settled. */
static void judge_cached(struct kv_reader *r, const struct kv_told *told, uint32_t block,
                         struct kv_tree_place place)
{
    uint64_t slack_ms = KV_TOLD_SLACK_MS;
    uint64_t since_ms = told->sent_ms > slack_ms ? told->sent_ms - slack_ms : 0;
    if (place.depth == 0 || !may_judge(r, told))
        return;
    uint32_t stood = kv_tree_stood(r->tree, place, since_ms), found = told->cached_tokens / block;
    bool known = kv_tree_found(r->tree, place, found, since_ms);
    if (known && stood < KV_STOOD_MIN)
        return;
    bool agreed = known && 2 * found >= stood;
    r->stats.agreed += agreed;
    r->stats.contradicted += !agreed;
    kv_tally_add(&r->trust.cached, agreed);
}

static void place(struct kv_reader *r, const struct kv_told *told, uint32_t block,
                  struct kv_tree_place at)
{
    r->stats.tied += kv_paths_tie(r->paths, &r->listener, told->end, told->tail_bytes,
                                  told->prompt_tokens, block, r->tree, at) >= 0;
}

/* It said the chain: that block is its prompt's end, as soon as it is there. Its run may come
 * later, and is no other's. */
static bool tie_asked(struct kv_reader *r, struct waiting *w, uint32_t block)
{
    const struct kv_told *told = &w->told;
    if (!w->placed) {
        struct kv_tree_place at = kv_tree_find(r->tree, told->asked_chain);
        if (at.depth == 0 || at.depth != told->prompt_tokens / block)
            return false;
        w->placed = true;
        w->text = kv_paths_anchored(r->paths, told->end);
        judge_cached(r, told, block, at);
        place(r, told, block, at);
        r->stats.asked++;
        judged(r);
    }
    struct match m = blocks_of(r, told, block, w->text, 0);
    if (m.place.depth > 0 && m.place.chain != told->asked_chain && !w->wrong) {
        w->wrong = true;
        r->stats.asked_wrong++;
    }
    m = blocks_of(r, told, block, 0, told->asked_chain);
    if (m.run != NULL)
        kv_runs_take(&r->runs, m.run, m.stop);
    return m.run != NULL;
}

/* By structure. One that never told what was cached may say 0 of all. */
static struct match blocks_found(struct kv_reader *r, const struct kv_told *told, uint32_t block)
{
    struct match m = blocks_of(r, told, block, told->end, 0);
    if (m.place.depth > 0 || told->cached_tokens > 0 || r->tells_cached)
        return m;
    struct kv_told untold = *told;
    untold.cached_tokens = KV_UNTOLD;
    return blocks_of(r, &untold, block, told->end, 0);
}

/* Whether there is no more to do. */
static bool tie(struct kv_reader *r, struct waiting *w, bool last_time)
{
    const struct kv_told *told = &w->told;
    uint32_t block = kv_tree_block_tokens(r->tree);
    if (block == 0 || told->prompt_tokens < block || told->prompt_tokens == KV_UNTOLD ||
        told->output_tokens == KV_UNTOLD || !told->well)
        return true;
    if (!kv_paths_takes_answer(r->paths, block))
        return true;
    struct match m = {.run = NULL};
    if (told->asked_block == block) {
        if (tie_asked(r, w, block))
            return true;
    } else {
        m = blocks_found(r, told, block);
    }
    if (m.place.depth > 0) {
        judge_blocks(r, told, block, true);
        judge_cached(r, told, block, m.place);
        kv_runs_take(&r->runs, m.run, m.stop);
        place(r, told, block, m.place);
        judged(r);
        return true;
    }
    if (last_time && !w->placed) {
        r->stats.unclear += m.unclear;
        r->stats.unmatched += !m.unclear;
        kv_paths_untied(r->paths, told->end);
        if (!m.unclear)
            judge_blocks(r, told, block, false);
        judge_cached(r, told, block, kv_paths_known(r->paths, told->end, r->tree));
        judged(r);
    }
    return last_time;
}

/* New blocks may be those of the answers that ended last. */
static void tie_waiting(struct kv_reader *r)
{
    for (unsigned i = 0; i < r->count && i < KV_TOLD_RETRIED; i++) {
        struct waiting *w = &r->waiting[(r->first + r->count - 1 - i) % KV_TOLD_MAX];
        w->done = w->done || tie(r, w, false);
    }
}

void kv_reader_told(struct kv_reader *r, const struct kv_told *told, uint64_t now_ms)
{
    r->now_ms = now_ms;
    r->stats.told++;
    r->tells_cached |= told->cached_tokens > 0 && told->cached_tokens != KV_UNTOLD;
    /* At once, if its blocks are there: the next turn's come behind them. */
    struct waiting w = {.told = *told, .due_ms = now_ms + KV_TOLD_WAIT_MS};
    if (tie(r, &w, false))
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
    (void)kv_trust_again(&r->trust, now_ms);
    if (r->settle_ms > 0 && now_ms >= r->settle_ms) {
        r->settle_ms = 0;
        kv_tree_settle(r->tree);
    }
    while (r->count > 0 && now_ms >= r->waiting[r->first].due_ms) {
        if (!r->waiting[r->first].done)
            (void)tie(r, &r->waiting[r->first], true);
        r->first = (r->first + 1) % KV_TOLD_MAX;
        r->count--;
    }
    if (!r->speaks || now_ms < r->sweep_ms)
        return;
    r->sweep_ms = now_ms + KV_SWEEP_MS;
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

void kv_reader_restarted(struct kv_reader *r)
{
    kv_feed_restarted(r->feed);
}

void kv_reader_speaks(struct kv_reader *r, bool speaks)
{
    if (speaks && !r->speaks)
        r->catch_up = kv_paths_stats(r->paths).places;
    r->speaks = speaks;
}

/* --- questions and life ---------------------------------------------------------------------- */

enum kv_reader_state kv_reader_state(const struct kv_reader *r)
{
    enum kv_feed_state state = kv_feed_state(r->feed);
    if (r->trust.lost)
        return KV_READER_CONTRADICTS;
    if (r->sheds || r->doubtful)
        return KV_READER_DOUBTS;
    return state == KV_FEED_LIVE     ? KV_READER_LIVE
           : state == KV_FEED_BEGINS ? KV_READER_BEGINS
                                     : KV_READER_DOUBTS;
}

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
    if (kv_feed_is_proven(r->feed)) /* nothing will prove it */
        doubt(r);
    return true;
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
                     struct kv_paths *paths, const struct hash_secret *secret, uint32_t blocks_max,
                     bool has_replay, uint64_t next)
{
    struct kv_reader *r = calloc(1, sizeof *r);
    if (r == NULL)
        return ERR_NOMEM;
    r->user = user;
    r->tree_user = (struct kv_tree_user){on_reached, r};
    r->feed_user = (struct kv_feed_user){on_message, on_missed, on_began, on_replay, r};
    r->listener = r->sayer = (struct kv_anchor_user){.anchored = on_said, .context = r};
    r->sweeper = (struct kv_anchor_user){.anchored = on_swept, .context = r};
    kv_runs_clear(&r->runs);
    if (kv_tree_create(&r->tree, &r->tree_user, secret, blocks_max) != 0 ||
        kv_decoder_create(&r->decoder, secret) != 0 ||
        kv_feed_create(&r->feed, &r->feed_user, secret, has_replay, next) != 0) {
        kv_reader_destroy(r);
        return ERR_NOMEM;
    }
    kv_decoder_ahead(r->decoder, on_ahead);
    r->paths = paths;
    kv_paths_listen(paths, &r->listener);
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
