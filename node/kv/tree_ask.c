#include "node/kv/tree_internal.h"

#include "base/check.h"

/* --- questions ------------------------------------------------------------------------------- */

static enum kv_medium medium_of(const struct kv_block *b)
{
    return b->gpu.least > 0 ? KV_GPU : b->host.least > 0 ? KV_HOST : KV_DISK;
}

static bool has(const struct kv_tree *t, uint32_t at, bool surely)
{
    const struct kv_block *b = at != KV_NONE ? &t->blocks[at] : NULL;
    return b != NULL && (surely ? kv_tree_is_sure(b) : kv_tree_is_kept(b));
}

/* The longest prefix of at most `blocks`, on the way from `at` to the root, that a group serves. */
static uint32_t served(const struct kv_tree *t, unsigned group, uint32_t at, uint32_t blocks,
                       bool surely)
{
    const struct kv_group *g = &t->groups[group];
    uint32_t size = t->groups[t->main_group].block_tokens;
    uint32_t window = kv_group_window_blocks(g), run = 0, end = blocks;
    if (g->block_tokens != size) /* its blocks are others */
        return surely ? 0 : blocks;
    for (; at != KV_NONE; at = t->blocks[at].parent) {
        uint32_t depth = t->blocks[at].depth;
        if (depth > blocks)
            continue;
        bool there = has(t, kv_tree_beside(t, group, at), surely);
        run = there ? run + 1 : 0;
        if (!there)
            end = depth - 1;
        else if (g->kind == KV_STATE || (window > 0 && run == window))
            return end;
    }
    return end;
}

static uint32_t served_by_all(const struct kv_tree *t, uint32_t at, uint32_t blocks, bool surely)
{
    uint32_t before;
    do {
        before = blocks;
        for (unsigned i = 0; i < KV_GROUPS_MAX && blocks > 0; i++) {
            if (kv_group_counts(&t->groups[i]))
                blocks = served(t, i, at, blocks, surely);
        }
    } while (blocks < before);
    return blocks;
}

struct kv_held kv_tree_held(const struct kv_tree *t, uint64_t chain, uint32_t blocks)
{
    uint32_t at = kv_tree_find_chain(t, chain);
    if (at == KV_NONE || blocks == 0) /* of those in front of the last one the caller asks apart */
        return (struct kv_held){0, t->stats.whole && blocks > 0 ? blocks - 1 : blocks, KV_GPU};
    blocks = t->blocks[at].depth;
    struct kv_held held = {.perhaps = served_by_all(t, at, blocks, false)};
    held.surely = served_by_all(t, at, held.perhaps, true);
    for (; at != KV_NONE; at = t->blocks[at].parent) {
        enum kv_medium where = medium_of(&t->blocks[at]);
        if (t->blocks[at].depth <= held.surely && where > held.slowest)
            held.slowest = where;
    }
    return held;
}

/* --- places ---------------------------------------------------------------------------------- */

static struct kv_tree_place place_at(const struct kv_tree *t, uint32_t at)
{
    if (at == KV_NONE || !t->blocks[at].chained)
        return (struct kv_tree_place){.at = KV_NONE};
    return (struct kv_tree_place){at, t->blocks[at].depth, t->blocks[at].chain};
}

struct kv_tree_place kv_tree_find(const struct kv_tree *t, uint64_t chain)
{
    return place_at(t, kv_tree_find_chain(t, chain));
}

struct kv_tree_place kv_tree_find_hash(const struct kv_tree *t, uint64_t hash)
{
    return place_at(t, t->main_group < KV_GROUPS_MAX ? kv_tree_find_block(t, t->main_group, hash)
                                                     : KV_NONE);
}

struct kv_tree_place kv_tree_up(const struct kv_tree *t, struct kv_tree_place from, uint32_t depth)
{
    uint32_t at = from.depth >= depth ? from.at : KV_NONE;
    while (at != KV_NONE && t->blocks[at].depth > depth)
        at = t->blocks[at].parent;
    return place_at(t, at);
}

bool kv_tree_has_tiers(const struct kv_tree *t)
{
    return t->has_tiers;
}

bool kv_tree_has_pool(const struct kv_tree *t)
{
    return t->has_pool;
}

uint32_t kv_tree_block_tokens(const struct kv_tree *t)
{
    return t->main_group < KV_GROUPS_MAX ? t->groups[t->main_group].block_tokens : 0;
}

bool kv_tree_is_whole(const struct kv_tree *t)
{
    return t->stats.whole;
}

bool kv_tree_is_main(const struct kv_tree *t, const struct kv_event *event)
{
    return (event->group == KV_GROUP_NONE ? 0 : event->group) == t->main_group;
}

enum kv_reach kv_tree_reach(const struct kv_tree *t, uint64_t chain)
{
    uint32_t at = kv_tree_find_chain(t, chain);
    if (at == KV_NONE)
        return t->stats.whole ? KV_GONE : KV_UNSURE;
    return (enum kv_reach)(t->several ? t->blocks[at].alive : t->blocks[at].reach);
}

uint32_t kv_tree_stood(const struct kv_tree *t, struct kv_tree_place place, uint64_t since_ms)
{
    uint32_t stood = !t->several ? place.depth : 0;
    for (uint32_t at = stood > 0 ? place.at : KV_NONE; at != KV_NONE; at = t->blocks[at].parent) {
        const struct kv_block *b = &t->blocks[at];
        if (b->gpu.least == 0 || !kv_tree_is_since(b, since_ms))
            stood = b->depth - 1;
    }
    return stood;
}

bool kv_tree_found(struct kv_tree *t, struct kv_tree_place place, uint32_t blocks,
                   uint64_t since_ms)
{
    bool known = true;
    for (uint32_t at = place.depth > 0 ? place.at : KV_NONE; at != KV_NONE;
         at = t->blocks[at].parent) {
        struct kv_block *b = &t->blocks[at];
        if (b->depth > blocks || kv_tree_is_sure(b) || !kv_tree_is_since(b, since_ms))
            continue;
        if (!kv_tree_is_kept(b) && t->stats.whole) {
            known = false;
            continue;
        }
        b->gpu.least = 1;
        t->stats.held++;
        b->gpu.most = b->gpu.most > 0 ? b->gpu.most : 1;
        kv_tree_follow(t, at);
    }
    return known;
}

struct kv_tree_stats kv_tree_stats(const struct kv_tree *t)
{
    struct kv_tree_stats stats = t->stats;
    stats.blocks = t->count;
    return stats;
}
