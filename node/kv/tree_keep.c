/* A tree as bytes, saved over a restart of the router. */
#include <string.h>

#include "base/check.h"
#include "node/kv/tree_internal.h"

/* The layout is as in memory, because the file stays on this machine. The file's version must
 * change with these members (node/cluster/keep.h). */
struct kept_head {
    uint32_t used, main_group;
    uint8_t settled, has_tiers, whole, has_pool, spare[4];
    struct {
        uint32_t kind, block_tokens, window, seen;
    } groups[KV_GROUPS_MAX];
};

struct kept_block {
    uint64_t hash, chain;
    uint32_t parent, depth;
    uint8_t group;
    struct kv_copies gpu, host;
    uint8_t disk, chained, in_use;
};
_Static_assert(sizeof(struct kept_block) == 32, "no padding, so that no byte is left to chance");
_Static_assert(sizeof(struct kept_head) == 16 + 16 * KV_GROUPS_MAX, "the same");

int kv_tree_keep(const struct kv_tree *t, struct buf *out)
{
    struct kept_head head = {.used = t->used,
                             .main_group = t->main_group,
                             .settled = t->settled,
                             .has_tiers = t->has_tiers,
                             .has_pool = t->has_pool,
                             .whole = t->stats.whole};
    int err = buf_reserve(out, sizeof head + t->used * sizeof(struct kept_block));
    if (err != ERR_OK)
        return err;
    for (unsigned i = 0; i < KV_GROUPS_MAX; i++) {
        const struct kv_group *g = &t->groups[i];
        head.groups[i].kind = (uint32_t)g->kind;
        head.groups[i].block_tokens = g->block_tokens;
        head.groups[i].window = g->window;
        head.groups[i].seen = g->seen;
    }
    CHECK(buf_append(out, &head, sizeof head) == ERR_OK);
    for (uint32_t at = 0; at < t->used; at++) {
        const struct kv_block *b = &t->blocks[at];
        struct kept_block kept = {.parent = KV_NONE};
        if (b->in_use)
            kept = (struct kept_block){.hash = b->hash,
                                       .chain = b->chain,
                                       .parent = b->parent,
                                       .depth = b->depth,
                                       .group = b->group,
                                       .gpu = b->gpu,
                                       .host = b->host,
                                       .disk = b->disk,
                                       .chained = b->chained,
                                       .in_use = 1};
        memcpy(out->at + out->len, &kept, sizeof kept);
        out->len += sizeof kept;
    }
    return ERR_OK;
}

/* --- loading --------------------------------------------------------------------------------- */

static bool head_recall(struct kv_tree *t, struct slice kept)
{
    struct kept_head head;
    if (kept.len < sizeof head)
        return false;
    memcpy(&head, kept.at, sizeof head);
    if (head.used > t->max || head.main_group > KV_GROUPS_MAX ||
        kept.len != sizeof head + head.used * sizeof(struct kept_block))
        return false;
    for (unsigned i = 0; i < KV_GROUPS_MAX; i++) {
        if (head.groups[i].kind > KV_IGNORED)
            return false;
        t->groups[i] =
            (struct kv_group){head.groups[i].seen != 0, (enum kv_kind)head.groups[i].kind,
                              head.groups[i].block_tokens, head.groups[i].window};
    }
    t->used = head.used;
    t->main_group = head.main_group;
    t->settled = head.settled != 0;
    t->has_tiers = head.has_tiers != 0;
    t->has_pool = head.has_pool != 0;
    t->stats.whole = head.whole != 0;
    return true;
}

static bool copies_good(struct kv_copies c)
{
    return c.least <= c.most;
}

static bool block_recall(struct kv_tree *t, uint32_t at, struct slice kept)
{
    struct kept_block k;
    memcpy(&k, kept.at + sizeof(struct kept_head) + at * sizeof k, sizeof k);
    t->blocks[at] = (struct kv_block){.hash = k.hash,
                                      .chain = k.chain,
                                      .parent = k.parent,
                                      .child = KV_NONE,
                                      .next = KV_NONE,
                                      .previous = KV_NONE,
                                      .depth = k.depth,
                                      .group = k.group & (KV_GROUPS_MAX - 1),
                                      .gpu = k.gpu,
                                      .host = k.host,
                                      .disk = k.disk != 0,
                                      .chained = k.chained != 0,
                                      .in_use = k.in_use != 0};
    return k.in_use == 0 ||
           (k.group < KV_GROUPS_MAX && copies_good(k.gpu) && copies_good(k.host) &&
            k.depth < KV_NONE &&
            (k.chained == 0 || (k.depth > 0 && k.group == t->main_group && k.chain != 0)));
}

/* Links a block to the parent. A known depth grows from parent to child, so links form no circle.
 * If the depth is unknown, the parent must come first in the array. Otherwise the link is left out,
 * and the next store restores it. */
static bool link_recall(struct kv_tree *t, uint32_t at)
{
    struct kv_block *b = &t->blocks[at];
    uint32_t parent = b->parent;
    if (parent == KV_NONE)
        return true;
    if (parent >= t->used || !t->blocks[parent].in_use || t->blocks[parent].group != b->group)
        return false;
    if (b->depth != (t->blocks[parent].depth > 0 ? t->blocks[parent].depth + 1 : 0))
        return false;
    if (b->depth == 0 && parent >= at) {
        b->parent = KV_NONE;
        return true;
    }
    b->next = t->blocks[parent].child;
    if (b->next != KV_NONE)
        t->blocks[b->next].previous = at;
    t->blocks[parent].child = at;
    return true;
}

/* An uncached block must have blocks after it. If there are none, returns false; but if the depth
 * is unknown too, drops the block and returns true. */
static bool is_needed(struct kv_tree *t, uint32_t at)
{
    struct kv_block *b = &t->blocks[at];
    if (kv_tree_is_kept(b) || b->child != KV_NONE)
        return true;
    if (b->depth > 0)
        return false;
    kv_tree_detach(t, at);
    b->in_use = false;
    return true;
}

static bool table_recall(struct kv_tree *t, uint32_t at)
{
    struct kv_block *b = &t->blocks[at];
    if (!b->in_use) {
        *b = (struct kv_block){.next = t->free};
        t->free = at;
        return true;
    }
    if (kv_tree_find_block(t, b->group, b->hash) != KV_NONE)
        return false;
    uint32_t *place = kv_tree_hash_place(t, b->group, b->hash);
    b->by_hash = *place;
    *place = at;
    if (b->chain != 0) {
        b->listed = true;
        place = &t->by_chain[kv_tree_place_of(t, b->chain)];
        b->by_chain = *place;
        *place = at;
    }
    t->count++;
    return true;
}

static bool blocks_recall(struct kv_tree *t, struct slice kept)
{
    bool good = head_recall(t, kept);
    for (uint32_t at = 0; good && at < t->used; at++)
        good = block_recall(t, at, kept);
    for (uint32_t at = 0; good && at < t->used; at++)
        good = !t->blocks[at].in_use || link_recall(t, at);
    for (uint32_t at = t->used; good && at-- > 0;)
        good = !t->blocks[at].in_use || is_needed(t, at);
    for (uint32_t at = 0; good && at < t->used; at++)
        good = table_recall(t, at);
    return good;
}

bool kv_tree_recall(struct kv_tree *t, struct slice kept)
{
    kv_tree_clear(t);
    if (!blocks_recall(t, kept)) {
        kv_tree_clear(t);
        kv_tree_doubt(t);
        return false;
    }
    const struct kv_tree_user *user = t->user;
    uint64_t steps = t->steps;
    t->user = NULL;
    t->steps = UINT64_MAX; /* no limit, because this router wrote the bytes */
    for (uint32_t at = 0; at < t->used; at++) {
        if (kv_tree_is_first(t, at))
            kv_tree_follow(t, at);
        t->stats.held += t->blocks[at].in_use && t->blocks[at].gpu.least > 0;
    }
    kv_tree_groups_anew(t);
    t->user = user;
    t->steps = steps;
    return true;
}
