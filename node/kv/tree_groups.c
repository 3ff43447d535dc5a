#include "node/kv/tree_internal.h"

#include "base/check.h"

enum {
    RUN_MAX = UINT8_MAX
}; /* longest run counted; longer windows are judged by their last blocks */

/* --- runs ------------------------------------------------------------------------------------ */

/* Returns the run of a group at the position of the main group's block `at`. The positions of other
 * groups' blocks follow from their hashes alone, because a sliding window's events may have a
 * parent far before the blocks (seen with vLLM 0.32). */
static struct kv_copies run_of(const struct kv_tree *t, unsigned group, uint32_t at)
{
    uint32_t beside = kv_tree_beside(t, group, at), parent = t->blocks[at].parent;
    struct kv_copies run = {0, 0};
    if (beside == KV_NONE)
        return run;
    uint32_t before = parent != KV_NONE ? kv_tree_beside(t, group, parent) : KV_NONE;
    if (before != KV_NONE)
        run = t->blocks[before].run;
    const struct kv_block *b = &t->blocks[beside];
    run.least = kv_tree_is_sure(b) ? run.least + (run.least < RUN_MAX) : 0;
    run.most = kv_tree_is_kept(b) ? run.most + (run.most < RUN_MAX) : 0;
    return run;
}

/* Updates the block's run. Returns true if the run changed. */
static bool run_set(const struct kv_tree *t, unsigned group, uint32_t at)
{
    uint32_t beside = kv_tree_beside(t, group, at);
    struct kv_copies run = run_of(t, group, at);
    if (beside == KV_NONE)
        return false;
    struct kv_block *b = &t->blocks[beside];
    bool changed = run.least != b->run.least || run.most != b->run.most;
    b->run = run;
    return changed;
}

static void runs_follow(struct kv_tree *t, unsigned group, uint32_t top)
{
    for (uint32_t at = top; at != KV_NONE;) {
        bool changed = run_set(t, group, at);
        uint32_t child = t->blocks[at].child;
        if (changed)
            kv_tree_serve(t, at);
        if (at != top && !kv_tree_step(t))
            return;
        at = changed && child != KV_NONE ? child : kv_tree_beyond(t, at, top);
    }
}

void kv_tree_run(struct kv_tree *t, uint32_t at)
{
    const struct kv_block *b = &t->blocks[at];
    unsigned group = b->group;
    if (!t->several)
        return;
    if (group != t->main_group && (at = kv_tree_find_block(t, t->main_group, b->hash)) == KV_NONE)
        return;
    for (unsigned i = 0; i < KV_GROUPS_MAX; i++) {
        if (i != t->main_group && (group == t->main_group || i == group) &&
            kv_group_counts(&t->groups[i]))
            runs_follow(t, i, at);
    }
}

/* --- blocks from which prompts are served ---------------------------------------------------- */

/* Returns how many of the blocks up to `depth` a group needs. */
static uint32_t needed(const struct kv_group *g, uint32_t depth)
{
    uint32_t window = kv_group_window_blocks(g);
    uint32_t need = g->kind == KV_STATE ? 1 : window > 0 && window < depth ? window : depth;
    return need < RUN_MAX ? need : RUN_MAX;
}

static uint8_t serves_of(const struct kv_tree *t, uint32_t at)
{
    const struct kv_block *b = &t->blocks[at];
    uint8_t serves = b->reach;
    for (unsigned i = 0; i < KV_GROUPS_MAX && serves != KV_GONE; i++) {
        const struct kv_group *g = &t->groups[i];
        if (i == t->main_group || !kv_group_counts(g))
            continue;
        bool alike = g->block_tokens == t->groups[t->main_group].block_tokens;
        uint32_t beside = alike ? kv_tree_beside(t, i, at) : KV_NONE;
        struct kv_copies run = {0, alike ? 0 : RUN_MAX};
        if (beside != KV_NONE)
            run = t->blocks[beside].run;
        uint32_t need = needed(g, b->depth);
        if (run.least < need)
            serves = run.most < need ? KV_GONE : KV_UNSURE;
    }
    return serves;
}

/* Computes `alive`, and adds the work to `steps`. */
static uint8_t alive_of(const struct kv_tree *t, const struct kv_block *b, uint64_t *steps)
{
    uint8_t alive = b->serves;
    for (uint32_t at = b->child; at != KV_NONE && alive != KV_THERE; at = t->blocks[at].next) {
        alive = t->blocks[at].alive > alive ? t->blocks[at].alive : alive;
        (*steps)++;
    }
    return alive;
}

void kv_tree_serve(struct kv_tree *t, uint32_t at)
{
    for (unsigned i = 0; i < KV_GROUPS_MAX; i++)
        (void)(kv_group_counts(&t->groups[i]) && kv_tree_step(t));
    t->blocks[at].serves = serves_of(t, at);
    for (; at != KV_NONE; at = t->blocks[at].parent) {
        struct kv_block *b = &t->blocks[at];
        uint64_t steps = 1;
        uint8_t alive = alive_of(t, b, &steps);
        bool tired = !kv_tree_steps(t, steps);
        if (alive == b->alive)
            return;
        b->alive = alive;
        if (t->user != NULL && b->chained)
            t->user->reached(t->user->context, b->chain, (enum kv_reach)alive);
        if (tired)
            return;
    }
}

/* --- all blocks ------------------------------------------------------------------------------ */

static bool is_main(const struct kv_tree *t, uint32_t at)
{
    return t->blocks[at].in_use && t->blocks[at].group == t->main_group;
}

void kv_tree_groups_anew(struct kv_tree *t)
{
    bool before = t->several;
    t->several = false;
    for (unsigned i = 0; i < KV_GROUPS_MAX && t->main_group < KV_GROUPS_MAX; i++)
        t->several |= i != t->main_group && kv_group_counts(&t->groups[i]);
    for (uint32_t at = 0; t->several && !before && at < t->used; at++)
        t->blocks[at].alive = t->blocks[at].reach;
    for (uint32_t at = 0; t->several && at < t->used; at++) {
        if (!is_main(t, at))
            continue;
        kv_tree_run(t, at);
        kv_tree_serve(t, at);
        if (!kv_tree_step(t))
            return;
    }
}

void kv_tree_groups_check(const struct kv_tree *t, uint32_t at)
{
    const struct kv_block *b = &t->blocks[at];
    uint64_t steps = 0;
    if (!t->several || b->group != t->main_group)
        return;
    CHECK(b->serves == serves_of(t, at) && b->alive == alive_of(t, b, &steps));
    for (unsigned i = 0; i < KV_GROUPS_MAX; i++) {
        uint32_t beside = kv_tree_beside(t, i, at);
        if (i == t->main_group || !kv_group_counts(&t->groups[i]) || beside == KV_NONE)
            continue;
        struct kv_copies run = run_of(t, i, at);
        CHECK(run.least == t->blocks[beside].run.least && run.most == t->blocks[beside].run.most);
    }
}
