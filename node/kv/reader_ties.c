#include "base/check.h"
#include "node/kv/reader_internal.h"

/* --- state ----------------------------------------------------------------------------------- */

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

uint32_t kv_reader_block_tokens(const struct kv_reader *r)
{
    return r->block_tokens;
}

bool kv_reader_is_odd(const struct kv_reader *r)
{
    return r->block_tokens > 0 && r->paths == NULL;
}

void kv_reader_has_tier(struct kv_reader *r, bool has_tier)
{
    r->has_tier = has_tier;
}

bool kv_reader_is_silent(const struct kv_reader *r)
{
    return kv_tree_has_pool(r->tree) || (r->has_tier && !kv_tree_has_tiers(r->tree));
}

void kv_reader_catch_up(struct kv_reader *r)
{
    r->catch_up = r->paths != NULL ? kv_paths_stats(r->paths).places : 0;
}

void kv_reader_size(struct kv_reader *r)
{
    uint32_t block = kv_tree_block_tokens(r->tree);
    if (block == 0 || (block == r->block_tokens && r->paths != NULL))
        return;
    if (r->paths != NULL)
        kv_paths_unlisten(r->paths, &r->listener);
    r->block_tokens = block;
    r->paths = r->user->paths(r->user->context, block, r->now_ms);
    if (r->paths != NULL)
        kv_paths_listen(r->paths, &r->listener);
    kv_reader_catch_up(r);
}

void kv_reader_doubt(struct kv_reader *r)
{
    kv_tree_doubt(r->tree);
    kv_runs_clear(&r->runs);
    r->covers = false;
    r->stored = r->placed = 0;
    r->settle_ms = r->now_ms + KV_SETTLE_MS;
    r->whole_ms = r->now_ms;
    r->walked = true;
    r->doubtful = false;
}

void kv_reader_forget(struct kv_reader *r)
{
    kv_tree_clear(r->tree);
    kv_runs_clear(&r->runs);
    r->doubtful = false;
    r->settle_ms = 0;
    r->refused_count = 0;
}

bool kv_reader_sheds(struct kv_reader *r)
{
    bool tired = kv_tree_is_tired(r->tree);
    r->stats.shed += tired && !r->sheds;
    r->sheds |= tired;
    return r->sheds;
}

/* --- ties ------------------------------------------------------------------------------------ */

/* A request's part of a run, and the end of the prompt's whole blocks. */
struct match {
    struct kv_run *run;
    unsigned stop;
    struct kv_tree_place place; /* depth 0: there is no match, or several */
    bool unclear;               /* there are several matches */
};

/* Charges a walk of `blocks` blocks towards the root. Returns false if the limit on work is
 * exceeded. */
static bool walks(struct kv_reader *r, uint32_t blocks)
{
    kv_tree_spend(r->tree, blocks / KV_WALK_BLOCKS);
    return !kv_reader_sheds(r);
}

/* Returns the prompt's blocks, if a single run matches. The run must match the known part of the
 * text up to the checkpoint `text`. If `chain` is not 0, the run must match `chain` instead. */
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
        if (!walks(r, run->stop[stop].end))
            return (struct match){.unclear = true};
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

/* Returns true if the answer reports cached tokens, and no message was missed since the request was
 * sent. */
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
    if (r->paths != NULL)
        kv_paths_disown(r->paths, &r->listener);
    kv_reader_forget(r); /* the next attempt starts from new events */
    kv_reader_doubt(r);
}

/* Returns true if every block stored since the request was sent has a known place in the tree. If
 * the request found nothing in the cache, only the first blocks of prompts count. */
static bool knows_places(const struct kv_reader *r, const struct kv_told *told, uint32_t cached)
{
    uint64_t unknown_ms = cached > 0 ? r->placeless_ms : r->roomless_ms;
    return unknown_ms == 0 || unknown_ms + KV_TOLD_SLACK_MS < told->sent_ms;
}

/* Returns true if the answer's fronts show that the block after the prompt's cached part has
 * arrived. */
static bool front_came(struct kv_reader *r, const struct kv_told *told)
{
    uint64_t slack_ms = KV_TOLD_SLACK_MS;
    uint64_t since_ms = told->sent_ms > slack_ms ? told->sent_ms - slack_ms : 0;
    return kv_tree_fronts(r->tree, &told->fronts, since_ms);
}

/* Judges an answer without blocks. If the answer's usage says that a whole block of the prompt was
 * not cached, the engine must have stored it. Blocks of the output do not count, because they may
 * have been cached already. Nor do blocks of the known part of the text, which may have come
 * meanwhile for a similar prompt. */
static void judge_untied(struct kv_reader *r, const struct kv_waiting *w, uint32_t block,
                         struct kv_tree_place known)
{
    const struct kv_told *told = &w->told;
    uint32_t cached = told->cached_tokens / block;
    bool stores = (told->prompt_tokens - 1) / block > cached && known.depth <= cached;
    bool judges = stores && may_judge(r, told);
    if (judges && told->asked_block == block && told->fronts.count > 0)
        kv_tally_add(&r->trust.blocks, front_came(r, told));
    else if ((judges && knows_places(r, told, cached)) || w->outlived_zero)
        kv_tally_add(&r->trust.blocks, false);
}

/* Compares the answer's cached part with the blocks present all the time since the request was
 * sent. `place` is on the prompt's path. Unsure blocks found by the answer become sure. */
static void judge_cached(struct kv_reader *r, const struct kv_told *told, uint32_t block,
                         struct kv_tree_place place)
{
    uint64_t slack_ms = KV_TOLD_SLACK_MS;
    uint64_t since_ms = told->sent_ms > slack_ms ? told->sent_ms - slack_ms : 0;
    if (place.depth == 0 || !may_judge(r, told) || !walks(r, place.depth))
        return;
    uint32_t stood = kv_tree_stood(r->tree, place, since_ms), found = told->cached_tokens / block;
    bool known = kv_tree_found(r->tree, place, found, since_ms) || kv_reader_is_silent(r);
    if (kv_reader_sheds(r))
        return;
    if (known && stood < KV_STOOD_MIN)
        return;
    bool agreed = known && 2 * found >= stood;
    r->stats.agreed += agreed;
    r->stats.contradicted += !agreed;
    kv_tally_add(&r->trust.cached, agreed);
}

/* Notes that the engine computed the blocks after the cached part, up to the output's last block,
 * which has this chain. */
static void computed(struct kv_reader *r, const struct kv_told *told, uint32_t block,
                     uint64_t chain)
{
    struct kv_tree_place last = kv_tree_find(r->tree, chain);
    if (!kv_tree_is_whole(r->tree) && may_judge(r, told) && walks(r, last.depth))
        kv_tree_computed(r->tree, last, told->cached_tokens / block,
                         told->sent_ms - KV_TOLD_SLACK_MS);
}

static void place(struct kv_reader *r, const struct kv_told *told, uint32_t block,
                  struct kv_tree_place at)
{
    bool tied = kv_paths_tie(r->paths, &r->listener, told->end, told->tail_bytes,
                             told->prompt_tokens, block, r->tree, at) >= 0;
    r->stats.tied += tied;
    r->stats.unmatched += !tied;
}

/* Ties an answer that has the prompt's chain, as soon as the chain's block is in the tree. The
 * answer's run may come later, and then belongs to no other answer. Returns true if the run has
 * come. */
static bool tie_asked(struct kv_reader *r, struct kv_waiting *w, uint32_t block)
{
    const struct kv_told *told = &w->told;
    if (!w->placed) {
        struct kv_tree_place at = kv_tree_find(r->tree, told->asked_chain);
        if (at.depth == 0 && told->fronts.count > 0 && front_came(r, told))
            at = kv_tree_find(r->tree, told->asked_chain);
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
    if (m.run != NULL) {
        computed(r, told, block, m.run->stop[m.stop].chain);
        kv_runs_take(&r->runs, m.run, m.stop);
    }
    return m.run != NULL;
}

/* Finds the blocks by structure. If the engine has never reported cached tokens, `cached_tokens` of
 * 0 means nothing. */
static struct match blocks_found(struct kv_reader *r, const struct kv_told *told, uint32_t block)
{
    struct match m = blocks_of(r, told, block, told->end, 0);
    if (m.place.depth > 0 || told->cached_tokens > 0 || r->tells_cached)
        return m;
    struct kv_told untold = *told;
    untold.cached_tokens = KV_UNTOLD;
    return blocks_of(r, &untold, block, told->end, 0);
}

bool kv_reader_tie(struct kv_reader *r, struct kv_waiting *w, bool last_time)
{
    const struct kv_told *told = &w->told;
    uint32_t block = kv_tree_block_tokens(r->tree);
    if (block == 0 || told->prompt_tokens < block || told->prompt_tokens == KV_UNTOLD ||
        told->output_tokens == KV_UNTOLD || !told->well)
        return true;
    kv_reader_size(r);
    if (r->paths == NULL)
        return true;
    struct match m = {.run = NULL};
    if (told->asked_block == block) {
        if (tie_asked(r, w, block))
            return true;
    } else {
        m = blocks_found(r, told, block);
    }
    if (m.place.depth > 0) {
        kv_tally_add(&r->trust.blocks, true);
        judge_cached(r, told, block, m.place);
        computed(r, told, block, m.run->stop[m.stop].chain);
        kv_runs_take(&r->runs, m.run, m.stop);
        place(r, told, block, m.place);
        judged(r);
        return true;
    }
    if (last_time && !w->placed) {
        r->stats.unclear += m.unclear;
        r->stats.unmatched += !m.unclear;
        kv_paths_untied(r->paths, told->end);
        struct kv_tree_place known = kv_paths_known(r->paths, told->end, r->tree);
        if (!m.unclear)
            judge_untied(r, w, block, known);
        judge_cached(r, told, block, known);
        judged(r);
    }
    return last_time;
}
