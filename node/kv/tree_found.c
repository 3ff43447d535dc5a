/* Applies facts from answers to a tree: which blocks are surely present, and their places. */
#include "node/kv/tree_internal.h"

/* Notes a block as surely on the GPU, because an answer shows so. */
static void found_at(struct kv_tree *t, struct kv_block *b)
{
    t->stats.held += b->gpu.least == 0;
    b->gpu.least = b->gpu.least > 0 ? b->gpu.least : 1;
    b->gpu.most = b->gpu.most > 0 ? b->gpu.most : 1;
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
        found_at(t, b);
        kv_tree_follow(t, at);
    }
    return known;
}

/* A second store of a prompt's first blocks raises only the upper bound of their copies. So for
 * these blocks a doubt is removed only if there was no second store. */
void kv_tree_computed(struct kv_tree *t, struct kv_tree_place place, uint32_t depth,
                      uint64_t since_ms)
{
    for (uint32_t at = place.depth > 0 ? place.at : KV_NONE;
         at != KV_NONE && t->blocks[at].depth > depth; at = t->blocks[at].parent) {
        struct kv_block *b = &t->blocks[at];
        bool once = b->gpu.least == 1 && (depth > 0 || (!t->settled && b->gpu.most == 2));
        if (once && !kv_tree_is_since(b, since_ms))
            b->gpu.most = 1;
    }
}

/* Returns true if nothing is known of the block except the blocks after it. */
static bool is_empty_place(const struct kv_block *b)
{
    return b->parent == KV_NONE && b->depth == 0 && b->chain == 0;
}

/* Returns true if the prompt may have continued with the block, which arrived since `since_ms` and
 * has no place. */
static bool may_be(const struct kv_block *b, const struct kv_front *front, uint64_t since_ms)
{
    return !b->chained && b->chain == front->digest && !kv_tree_is_since(b, since_ms);
}

/* Goes from `from` towards the root up to an unknown block, sets *top to this block, and returns
 * the answer's front there; NULL: none. */
static const struct kv_front *front_above(struct kv_tree *t, const struct kv_fronts *fronts,
                                          uint32_t from, uint32_t *top)
{
    uint32_t child = from, depth = fronts->at[0].blocks;
    *top = t->blocks[from].parent;
    for (; *top != KV_NONE && t->blocks[*top].parent != KV_NONE && depth > 0 && kv_tree_step(t);
         depth--) {
        child = *top;
        *top = t->blocks[child].parent;
    }
    if (*top == KV_NONE || !is_empty_place(&t->blocks[*top]))
        return NULL;
    for (unsigned i = 0; i < fronts->count; i++) {
        const struct kv_front *f = &fronts->at[i];
        if (f->blocks == depth && depth > 0 && f->digest == t->blocks[child].chain)
            return f;
    }
    return NULL;
}

bool kv_tree_fronts(struct kv_tree *t, const struct kv_fronts *fronts, uint64_t since_ms)
{
    const struct kv_front *first = &fronts->at[0];
    if (t->main_group == KV_GROUPS_MAX || fronts->count == 0)
        return false;
    if (kv_tree_find_chain(t, kv_chain(t->secret, first->chain, first->digest)) != KV_NONE)
        return true;
    const struct kv_front *front = NULL;
    uint32_t top, at = t->by_chain[kv_tree_place_of(t, first->digest)];
    bool came = false;
    for (; at != KV_NONE && front == NULL && kv_tree_step(t); at = t->blocks[at].by_chain) {
        if (!may_be(&t->blocks[at], first, since_ms))
            continue;
        came = true;
        front = t->several ? NULL : front_above(t, fronts, at, &top);
    }
    if (front == NULL || kv_tree_find_chain(t, front->chain) != KV_NONE)
        return came;
    struct kv_block *b = &t->blocks[top];
    b->depth = front->blocks;
    b->since = t->now_ms;
    kv_tree_chain(t, top, front->chain);
    found_at(t, b);
    for (uint32_t child = b->child; child != KV_NONE; child = t->blocks[child].next)
        kv_tree_place(t, child, front->blocks, false, front->chain);
    kv_tree_follow(t, top);
    return true;
}
