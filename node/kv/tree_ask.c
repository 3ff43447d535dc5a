#include "node/kv/tree_internal.h"

#include "base/check.h"

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

struct kv_tree_stats kv_tree_stats(const struct kv_tree *t)
{
    struct kv_tree_stats stats = t->stats;
    stats.blocks = t->count;
    return stats;
}
