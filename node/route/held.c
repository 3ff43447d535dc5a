/* A prompt's cached part at each replica: the recorded part, and the believed share of it still in
 * the cache. */
#include "base/checkpoint.h"
#include "base/number.h"
#include "crdt/marks.h"
#include "node/replica/ablation.h"
#include "node/replica/constants.h"
#include "node/route/router_internal.h"

#include <math.h>

#include "base/err.h"

enum { PREFIX_KEY_BLOCKS = 16 }; /* for prefix_hash: about 1,000 tokens */

/* Tokens per block of the index at the replica, averaged over all models and kinds of prompts sent
 * there. */
double node_router_block_tokens(const struct node_replica *replica)
{
    return CHECKPOINT_BLOCK_BYTES / node_ratio_value(&replica->cache.bytes_per_token);
}

static double reported_blocks(const struct node_router *r, const struct node_replica *k)
{
    return node_replica_cache_tokens(k, (double)r->config.cache_tokens) /
           node_router_block_tokens(k);
}

static void belief_refresh(struct node_router *r, unsigned k)
{
    struct node_replica *replica = &r->replicas[k];
    if (!replica->belief.stale)
        return;
    struct crdt_index_ring ring = node_router_ring(r, k);
    double near_blocks = node_replica_near_tokens(replica) / node_router_block_tokens(replica);
    node_belief_refresh(&replica->belief, &ring, reported_blocks(r, replica), near_blocks);
}

static void beliefs_refresh(struct node_router *r)
{
    for (unsigned k = 0; k < r->replica_count; k++)
        belief_refresh(r, k);
}

static uint32_t floor_of(const struct node_belief *b)
{
    return b->floor + (b->floor_share < 0.5 ? 1 : 0); /* more than half of the generation is gone */
}

/* The oldest generation that is mostly present. With events, the oldest generation that was evicted
 * lately: if a cache turns over within a generation, no generation is mostly present. */
static uint32_t floor_at(const struct node_router *r, unsigned k)
{
    uint32_t gave_way = node_router_has_events(r, k) ? node_router_events_floor(r, k) : 0;
    return gave_way > 0 ? gave_way : floor_of(&r->replicas[k].belief);
}

uint32_t node_router_belief_floor(struct node_router *r, unsigned k)
{
    belief_refresh(r, k);
    return floor_at(r, k);
}

void node_router_beliefs_now(struct node_router *r, uint64_t now_ms)
{
    node_router_clock(r, now_ms);
    beliefs_refresh(r);
}

void node_router_match_ahead(const struct node_router *r, const struct chain *chain)
{
    enum { POINTS = 8 };
    for (unsigned i = 0; chain != NULL && i < POINTS && i < chain->length; i++)
        crdt_index_prefetch(r->index, chain->points[chain->length - 1 - i].id);
}

/* True if the replica's events say that the point is no longer cached. */
static bool is_gone(const struct node_router *r, const struct chain *chain, unsigned point,
                    unsigned k)
{
    const struct chain_point *p = &chain->points[point];
    uint32_t generation = 0;
    DISCARD(crdt_index_get(r->index, p->id, k, p->code, &generation));
    return crdt_index_is_gone(r->index, p->id, k, generation);
}

/* Shortens the cached part, so that it ends before the first evicted point. All later points are
 * evicted too. */
static void cut_gone(struct node_router *r, const struct chain *chain, unsigned k)
{
    unsigned low = 0, high = r->lengths[k];
    if (!is_gone(r, chain, high - 1, k))
        return;
    high--;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        if (is_gone(r, chain, middle, k))
            high = middle;
        else
            low = middle + 1;
    }
    r->lengths[k] = (uint16_t)low;
    r->generations[k] = 0;
    if (low > 0)
        DISCARD(crdt_index_get(r->index, chain->points[low - 1].id, k, chain->points[low - 1].code,
                               &r->generations[k]));
}

void node_router_match(struct node_router *r, const struct node_request *request)
{
    const struct chain *chain = request->chain;
    beliefs_refresh(r);
    memset(r->lengths, 0, r->replica_count * sizeof r->lengths[0]);
    memset(r->held_blocks, 0, r->replica_count * sizeof r->held_blocks[0]);
    memset(r->generations, 0, r->replica_count * sizeof r->generations[0]);
    if (!chain || chain->length == 0)
        return;
    for (unsigned k = 0; k < r->replica_count; k++)
        r->floors[k] = floor_at(r, k);
    if (chain->chunks) {
        crdt_index_cover(r->index, chain, r->floors, r->replica_count, r->held_blocks,
                         r->generations);
        return;
    }
    crdt_index_match(r->index, chain, r->floors, r->replica_count, r->lengths, r->generations);
    for (unsigned k = 0; k < r->replica_count; k++) {
        if (r->lengths[k] > 0 && node_router_has_events(r, k))
            cut_gone(r, chain, k);
        if (r->lengths[k] > 0)
            r->held_blocks[k] = chain->points[r->lengths[k] - 1].blocks;
    }
}

uint64_t node_router_prefix_key(const struct chain *chain)
{
    uint64_t key = 0;
    for (unsigned i = 0; chain && i < chain->length; i++) {
        if (i > 0 && chain->points[i].blocks > PREFIX_KEY_BLOCKS)
            break;
        key = chain->points[i].id;
    }
    return key;
}

/* --- what was recorded, believed or not ------------------------------------------------------ */

static bool recorded(const struct node_router *r, const struct chain *chain, unsigned point,
                     unsigned k, uint32_t *generation)
{
    const struct chain_point *p = &chain->points[point];
    return crdt_index_get(r->index, p->id, k, p->code, generation) == ERR_OK;
}

/* Number of points at the prompt's start that were ever recorded for the replica; at least
 * `known`. */
static unsigned recorded_length(const struct node_router *r, const struct chain *chain, unsigned k,
                                unsigned known)
{
    unsigned low = known, high = chain->length;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        uint32_t generation;
        if (recorded(r, chain, middle, k, &generation))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The first point of the part that ends before `end`. A part is a run of points with the same last
 * use, which `generation` gets. Returns `end` if the index lacks the point before `end`. */
static unsigned part_begin(const struct node_router *r, const struct chain *chain, unsigned k,
                           unsigned end, uint32_t *generation)
{
    if (!recorded(r, chain, end - 1, k, generation))
        return end; /* a hole: the index was full */
    unsigned low = 0, high = end - 1;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        uint32_t found = 0;
        if (recorded(r, chain, middle, k, &found) && found <= *generation)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* A part of the prompt's start, which ends before the point `end`. The blocks lie at depths between
 * `from` and `to` in the cache. */
struct part {
    unsigned end;
    double from, to;
};

/* Sets `out` to the parts of the prompt's start that were ever recorded for the replica, newest
 * first. Returns the number of parts. */
static unsigned parts_of(const struct node_router *r, unsigned k, const struct chain *chain,
                         struct part *out)
{
    struct crdt_index_ring ring = node_router_ring(r, k);
    struct part parts[NODE_PARTS_MAX];
    unsigned end = recorded_length(r, chain, k, r->lengths[k]);
    unsigned count = 0;
    while (end > 0 && count < NODE_PARTS_MAX) {
        uint32_t generation;
        unsigned first = part_begin(r, chain, k, end, &generation);
        if (first == end)
            break;
        double newer, among;
        node_belief_depth(&r->replicas[k].belief, &ring, generation, &newer, &among);
        parts[count++] = (struct part){.end = end, .from = newer, .to = newer + among};
        end = first;
    }
    for (unsigned i = 0; i < count; i++)
        out[i] = parts[count - 1 - i];
    return count;
}

static double blocks_of(const struct chain *chain, const struct part *parts, unsigned part)
{
    unsigned begin = part > 0 ? parts[part - 1].end : 0;
    uint32_t before = begin > 0 ? chain->points[begin - 1].blocks : 0;
    return chain->points[parts[part].end - 1].blocks - before;
}

/* A prompt's parts were last used at different times: the system prompt a moment ago, by any
 * request, and the conversation's history at the last turn. The last part is the oldest. `out` gets
 * the parts' depths in units of the reported cache size. If a part's generation spans half of the
 * believed cache, answers say nothing about the cache size, and `out` is empty. */
static void reach_find(const struct node_router *r, unsigned k, const struct chain *chain,
                       double token_scale, struct node_reach *out)
{
    double unit = reported_blocks(r, &r->replicas[k]);
    double width_max = r->replicas[k].belief.factor / RULE(CLEARLY);
    struct part parts[NODE_PARTS_MAX];
    *out = (struct node_reach){.count = parts_of(r, k, chain, parts)};
    for (unsigned i = 0; i < out->count; i++) {
        out->parts[i] = (struct node_part){
            .tokens = (float)(blocks_of(chain, parts, i) * token_scale),
            .from = (float)(parts[i].from / unit),
            .to = (float)(parts[i].to / unit),
        };
        if ((parts[i].to - parts[i].from) / unit > width_max)
            *out = (struct node_reach){0};
    }
}

/* --- what is there still --------------------------------------------------------------------- */

/* Number of images and other media in the first `blocks` blocks of a prompt. For a prompt of
 * chunks, `blocks` may lie anywhere, so the media are divided evenly over the prompt. */
static double media_within(const struct chain *chain, double blocks)
{
    unsigned all = chain_media(&chain->content);
    if (all == 0)
        return 0;
    if (chain->chunks)
        return all * number_min(blocks * CHECKPOINT_BLOCK_BYTES / (double)chain->bytes, 1);
    unsigned begin = 0, end = chain->length;
    while (begin < end) {
        unsigned middle = (begin + end) / 2;
        if (chain->points[middle].blocks <= blocks)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin > 0 ? chain->points[begin - 1].media : 0;
}

/* Blocks of the prompt believed to be cached. */
struct grip {
    double blocks; /* recorded for the replica, and not evicted by belief */
    double media;  /* images and other media in these blocks */
};

static struct grip grip_of(const struct node_router *r, unsigned k, const struct chain *chain)
{
    double blocks = r->held_blocks[k];
    return (struct grip){.blocks = blocks, .media = blocks > 0 ? media_within(chain, blocks) : 0};
}

static const struct node_ruler_mark *mark_at(const struct node_router *r, unsigned k,
                                             const struct chain *chain)
{
    bool none = r->lengths[k] == 0 || LEFT_OUT(RULER);
    if (r->shadow_of != NULL)
        chain = r->shadow_of;
    return none ? NULL : node_ruler_at(r->ruler, chain->points[r->lengths[k] - 1].id);
}

static double mark_bytes(const struct node_router *r, unsigned k, const struct chain *chain,
                         const struct node_ruler_mark *m)
{
    return (double)chain->points[r->lengths[k] - 1].blocks * CHECKPOINT_BLOCK_BYTES + m->tail_bytes;
}

static double matched_tokens(const struct node_router *r, unsigned k, const struct chain *chain,
                             const struct grip *grip, const struct node_size *size)
{
    const struct node_ruler_mark *m = mark_at(r, k, chain);
    if (m != NULL)
        return number_min(node_ruler_tokens(r->ruler, m), size->prompt_tokens);
    double media_blocks = grip->media * CHAIN_MEDIUM_BYTES / CHECKPOINT_BLOCK_BYTES;
    double text = number_max(grip->blocks - media_blocks, 0) * size->block_tokens;
    return number_min(text + grip->media * size->medium_tokens, size->prompt_tokens);
}

void node_router_measure(const struct node_router *r, const struct node_request *request,
                         struct node_size *size)
{
    const struct chain *chain = request->chain;
    unsigned longest = 0;
    if (chain == NULL || chain->length == 0 || chain->chunks || chain->token_ids ||
        chain_media(&chain->content) > 0)
        return;
    for (unsigned k = 1; k < r->replica_count; k++)
        longest = r->lengths[k] > r->lengths[longest] ? k : longest;
    const struct node_ruler_mark *m = mark_at(r, longest, chain);
    if (m == NULL)
        return;
    double rest = number_max((double)chain->bytes - mark_bytes(r, longest, chain, m), 0);
    size->prompt_tokens = m->tokens + rest * size->mean_block_tokens / CHECKPOINT_BLOCK_BYTES;
    size->mean_block_tokens = CHECKPOINT_BLOCK_BYTES * size->prompt_tokens / (double)chain->bytes;
    size->block_tokens = size->mean_block_tokens; /* there are no media */
}

/* Other, still needed tokens that the prompt's new tokens would evict. Evicted blocks belong to
 * other prompts, so this uses the average tokens per block, not this prompt's. */
static double displaced_tokens(const struct node_router *r, unsigned k, double new_tokens,
                               double held_blocks)
{
    double block_tokens = node_router_block_tokens(&r->replicas[k]);
    struct crdt_index_ring ring = node_router_ring(r, k);
    return node_belief_displaced(&r->replicas[k].belief, &ring, &r->decay,
                                 new_tokens / block_tokens, held_blocks, r->generations[k]) *
           block_tokens;
}

struct node_holding node_router_holding(const struct node_router *r, unsigned k,
                                        const struct node_request *request,
                                        const struct node_size *size)
{
    const struct node_replica *replica = &r->replicas[k];
    struct grip grip = grip_of(r, k, request->chain);
    struct node_holding h = {
        .blocks = grip.blocks,
        .matched_tokens = matched_tokens(r, k, request->chain, &grip, size),
    };
    /* Events leave no doubt about the cached part. */
    double share = node_router_has_events(r, k) ? 1 : replica->cache.evidence.share;
    h.cached_tokens =
        share * node_replica_whole_tokens(replica, size->prompt_tokens, h.matched_tokens);
    h.tier_tokens = h.cached_tokens * (1 - node_belief_near(&replica->belief, r->generations[k]));
    h.displaced_tokens = displaced_tokens(
        r, k, size->prompt_tokens - h.cached_tokens + size->output_tokens, h.blocks);
    return h;
}

/* Takes the answer's number of cached tokens as the position where the prompt left the cached path,
 * if the number lies between the checkpoints on both sides. Otherwise something else ended the
 * cached part. */
static void fork_measured(struct node_router *r, const struct node_replica *replica,
                          const struct node_work *work, const struct node_usage *usage)
{
    const struct node_ruler_mark *m = node_ruler_at(r->ruler, work->fork.id);
    double block = node_replica_block_tokens(replica), cached = (double)usage->cached_tokens;
    if (m != NULL && m->answer > 0 && cached + block > m->tokens) {
        node_ruler_found(r->ruler, m, cached, block);
        return;
    }
    double tokens_per_block =
        (double)usage->prompt_tokens * CHECKPOINT_BLOCK_BYTES / (double)work->prompt_bytes;
    if (cached + block > work->fork.after * tokens_per_block &&
        cached < work->fork.before * tokens_per_block)
        node_ruler_note(r->ruler,
                        &(struct node_ruler_mark){.id = work->fork.id, .tokens = (uint32_t)cached});
}

void node_router_measured(struct node_router *r, const struct node_work *work,
                          const struct node_usage *usage, bool complete)
{
    if (work->chunks || work->prompt_id == 0 || work->prompt_bytes == 0)
        return;
    if (work->fork.id != 0 && usage->cached_tokens > 0)
        fork_measured(r, &r->replicas[work->replica], work, usage);
    /* If the checkpoint is a known fork, the end of another prompt adds little. */
    const struct node_ruler_mark *m = node_ruler_at(r->ruler, work->prompt_id);
    bool is_fork = m != NULL && m->answer == 0;
    if (complete && usage->completion_tokens > 0 && !is_fork && !work->several)
        node_ruler_note(r->ruler, &(struct node_ruler_mark){
                                      .id = work->prompt_id,
                                      .tail_bytes = work->tail_bytes,
                                      .tokens = (uint32_t)usage->prompt_tokens,
                                      .answer = (uint32_t)usage->completion_tokens,
                                  });
}

/* --- recording ------------------------------------------------------------------------------- */

/* Finds the checkpoint at which the prompt leaves the recorded path. If the next part was recorded
 * and then evicted, the position does not show where the texts differ. */
static void fork_find(const struct node_router *r, const struct chain *chain,
                      struct node_work *work)
{
    unsigned k = work->replica, length = r->lengths[k];
    uint32_t generation;
    if (length == 0 || chain->chunks ||
        (length < chain->length && recorded(r, chain, length, k, &generation)))
        return;
    const struct chain_point *held = &chain->points[length - 1];
    work->fork.id = held->id;
    work->fork.after = length > 1 ? held[-1].blocks : 0;
    work->fork.before = length < chain->length ? held[1].blocks : UINT32_MAX;
}

void node_router_record(struct node_router *r, const struct chain *chain,
                        const struct node_size *size, struct node_work *work)
{
    unsigned k = work->replica;
    /* Not for a replica with events, which say what is evicted. The marks from events change times
     * of use, so neither depths nor answers would show the cache size. */
    if (work->prompt_tokens > 0 && !chain->chunks && !node_router_has_events(r, k))
        reach_find(r, k, chain, size->mean_block_tokens, &work->reach);
    fork_find(r, chain, work);
    uint64_t before = crdt_index_blocks_total(r->index, k);
    /* A full index counts the loss, and the request goes on. */
    DISCARD(crdt_state_observe(r->crdt, chain, k));
    uint64_t after = crdt_index_blocks_total(r->index, k);
    node_belief_moved(&r->replicas[k].belief);
    work->fresh_blocks = after > before ? (uint32_t)(after - before) : 0;
    const struct chain_point *last = &chain->points[chain->length - 1];
    uint64_t covered = (uint64_t)last->blocks * CHECKPOINT_BLOCK_BYTES;
    uint64_t tail = chain->bytes > covered ? chain->bytes - covered : 0;
    work->prompt_id = last->id;
    work->tail_bytes = tail < UINT32_MAX ? (uint32_t)tail : UINT32_MAX;
    work->chunks = chain->chunks;
    node_router_late_sent(r, &work->rendered, k);
    node_renderings_sent(r->renderings, &work->rendered, k);
}

void node_router_recorded_end(struct node_router *r, const struct node_work *work, bool computed)
{
    struct node_replica *replica = &r->replicas[work->replica];
    if (work->prompt_id == 0)
        return;
    if (!computed && !LEFT_OUT(VOIDS)) {
        node_renderings_void(r->renderings, &work->rendered);
        node_replica_void(replica, work);
    } else {
        node_belief_void_end(&replica->belief, work->prompt_id);
    }
}

/* If a cache turns over within a generation, the index is too coarse to date recent uses. */
void node_router_evictions_take(struct node_router *r, unsigned k, uint64_t now_ms)
{
    struct node_replica *replica = &r->replicas[k];
    double after_s = node_replica_evicted_after(replica);
    double generation_ms = r->common->generation_ms;
    double generations = after_s * 1000 / generation_ms;
    if (generations < 1 || LEFT_OUT(SIZE_READ))
        return;
    struct crdt_index_ring ring = node_router_ring(r, k);
    uint64_t cluster_ms = node_state_cluster_ms(r->state, now_ms);
    double begun = (double)(cluster_ms % r->common->generation_ms) / generation_ms;
    double blocks = node_belief_within(&replica->belief, &ring, generations, begun);
    if (blocks > 0)
        node_replica_size_shown(replica, blocks / reported_blocks(r, replica));
}
