#include "tests/lib/kv_held.h"

#include "node/kv/tree_internal.h"

static enum kv_medium medium_of(const struct kv_block *b)
{
    return b->gpu.least > 0 ? KV_GPU : b->host.least > 0 ? KV_HOST : KV_DISK;
}

static bool has(const struct kv_tree *t, uint32_t at, bool surely)
{
    const struct kv_block *b = at != KV_NONE ? &t->blocks[at] : NULL;
    return b != NULL && (surely ? kv_tree_is_sure(b) : kv_tree_is_kept(b));
}

/* A group's longest usable prefix of at most `blocks`, on the way from `at` to the root. */
static uint32_t served(const struct kv_tree *t, unsigned group, uint32_t at, uint32_t blocks,
                       bool surely)
{
    const struct kv_group *g = &t->groups[group];
    uint32_t size = t->groups[t->main_group].block_tokens;
    uint32_t window = kv_group_window_blocks(g), run = 0, end = blocks;
    if (g->block_tokens != size) /* the group's blocks have another size */
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
    if (at == KV_NONE || blocks == 0) /* the caller asks separately about the blocks before the
                                       * last */
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
