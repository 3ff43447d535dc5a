#include "node/kv/tree_internal.h"

#include "base/check.h"

enum { RUN_MAX = UINT8_MAX }; /* counted so far: of a longer window the last blocks count */

/* --- runs: of groups without chains ---------------------------------------------------------- */

static struct kv_copies run_of(const struct kv_tree *t, const struct kv_block *b)
{
    struct kv_copies run = {0, 0};
    if (b->parent != KV_NONE)
        run = t->blocks[b->parent].run;
    run.least = kv_tree_is_sure(b) ? run.least + (run.least < RUN_MAX) : 0;
    run.most = kv_tree_is_kept(b) ? run.most + (run.most < RUN_MAX) : 0;
    return run;
}

/* True: it changed. */
static bool run_set(const struct kv_tree *t, struct kv_block *b)
{
    struct kv_copies run = run_of(t, b);
    bool changed = run.least != b->run.least || run.most != b->run.most;
    b->run = run;
    return changed;
}

void kv_tree_run(struct kv_tree *t, uint32_t top)
{
    for (uint32_t at = top; at != KV_NONE;) {
        struct kv_block *b = &t->blocks[at];
        bool changed = run_set(t, b);
        uint32_t place =
            changed && t->several ? kv_tree_find_block(t, t->main_group, b->hash) : KV_NONE;
        if (place != KV_NONE)
            kv_tree_serve(t, place);
        if (at != top)
            (void)kv_tree_step(t);
        at = changed && b->child != KV_NONE ? b->child : kv_tree_beyond(t, at, top);
    }
}

/* --- who serves ------------------------------------------------------------------------------ */

/* So many blocks a group needs that end there. */
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

static uint8_t alive_of(const struct kv_tree *t, const struct kv_block *b)
{
    uint8_t alive = b->serves;
    for (uint32_t at = b->child; at != KV_NONE && alive != KV_THERE; at = t->blocks[at].next)
        alive = t->blocks[at].alive > alive ? t->blocks[at].alive : alive;
    return alive;
}

void kv_tree_serve(struct kv_tree *t, uint32_t at)
{
    t->blocks[at].serves = serves_of(t, at);
    for (; at != KV_NONE; at = t->blocks[at].parent) {
        struct kv_block *b = &t->blocks[at];
        uint8_t alive = alive_of(t, b);
        if (alive == b->alive)
            return;
        b->alive = alive;
        if (t->user != NULL && b->chained)
            t->user->reached(t->user->context, b->chain, (enum kv_reach)alive);
        (void)kv_tree_step(t);
    }
}

/* --- all of them ----------------------------------------------------------------------------- */

void kv_tree_groups_anew(struct kv_tree *t)
{
    bool before = t->several;
    t->several = false;
    for (unsigned i = 0; i < KV_GROUPS_MAX && t->main_group < KV_GROUPS_MAX; i++)
        t->several |= i != t->main_group && kv_group_counts(&t->groups[i]);
    for (uint32_t at = 0; t->several && at < t->used; at++) {
        struct kv_block *b = &t->blocks[at];
        bool is_main = b->group == t->main_group;
        if (is_main && !before)
            b->alive = b->reach;
        for (uint32_t i = at; b->in_use && !is_main && b->parent == KV_NONE && i != KV_NONE;
             i = kv_tree_after(t, i, at))
            (void)run_set(t, &t->blocks[i]);
        (void)kv_tree_step(t);
    }
    for (uint32_t at = 0; t->several && at < t->used; at++) {
        if (t->blocks[at].in_use && t->blocks[at].group == t->main_group)
            kv_tree_serve(t, at);
    }
}

void kv_tree_groups_check(const struct kv_tree *t, uint32_t at)
{
    const struct kv_block *b = &t->blocks[at];
    struct kv_copies run = run_of(t, b);
    if (b->group != t->main_group) {
        CHECK(run.least == b->run.least && run.most == b->run.most);
    } else if (t->several) {
        CHECK(b->serves == serves_of(t, at) && b->alive == alive_of(t, b));
    }
}
