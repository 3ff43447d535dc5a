#include "node/kv/tree_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

_Static_assert(sizeof(struct kv_block) + 2 * sizeof(uint32_t) <= KV_TREE_BLOCK_BYTES,
               "as promised");

uint64_t kv_chain(const struct hash_secret *secret, uint64_t chain, uint64_t digest)
{
    const uint64_t words[] = {chain, digest};
    uint64_t next = hash64(secret, words, sizeof words);
    return next != 0 ? next : 1;
}

uint64_t kv_chain_root(const struct hash_secret *secret, uint32_t block_tokens, uint64_t space)
{
    return kv_chain(secret, block_tokens, space);
}

/* --- tables ---------------------------------------------------------------------------------- */

/* Removes a block from the table of chains. Many blocks may share a slot, as an engine may report
 * many with the same tokens. */
static void chain_drop(struct kv_tree *t, uint32_t at)
{
    if (!t->blocks[at].listed)
        return;
    uint32_t *from = &t->by_chain[kv_tree_place_of(t, t->blocks[at].chain)];
    for (; *from != at; from = &t->blocks[*from].by_chain)
        (void)kv_tree_step(t);
    *from = t->blocks[at].by_chain;
    t->blocks[at].listed = false;
}

/* Lists a block by the chain, or by the tokens' digest while the chain is unknown. */
static void chain_list(struct kv_tree *t, uint32_t at)
{
    uint32_t *place = &t->by_chain[kv_tree_place_of(t, t->blocks[at].chain)];
    t->blocks[at].by_chain = *place;
    t->blocks[at].listed = true;
    *place = at;
}

void kv_tree_chain(struct kv_tree *t, uint32_t at, uint64_t chain)
{
    chain_drop(t, at);
    t->blocks[at].chain = chain;
    t->blocks[at].chained = true;
    chain_list(t, at);
}

/* Prefetches in three steps, KV_AHEAD / 2 blocks apart. Each step reads the memory prefetched by
 * the step before. */
void kv_tree_ahead(struct kv_tree *t, uint64_t hash)
{
    unsigned group = t->main_group < KV_GROUPS_MAX ? t->main_group : 0;
    unsigned oldest = t->ahead.next++ % KV_AHEAD, middle = (oldest + KV_AHEAD / 2) % KV_AHEAD;
    __builtin_prefetch(kv_tree_hash_place(t, group, hash));
    uint32_t at = *kv_tree_hash_place(t, group, t->ahead.hashes[middle]);
    if (at != KV_NONE) {
        __builtin_prefetch(&t->blocks[at]);
        __builtin_prefetch((const char *)(&t->blocks[at] + 1) - 1); /* the block may lie across two
                                                                       cache lines */
    }
    at = *kv_tree_hash_place(t, group, t->ahead.hashes[oldest]);
    if (at != KV_NONE)
        __builtin_prefetch(&t->by_chain[kv_tree_place_of(t, t->blocks[at].chain)]);
    t->ahead.hashes[oldest] = hash;
}

/* --- blocks ---------------------------------------------------------------------------------- */

static void attach(struct kv_tree *t, uint32_t at, uint32_t parent)
{
    struct kv_block *b = &t->blocks[at];
    b->parent = parent;
    b->previous = KV_NONE;
    b->next = t->blocks[parent].child;
    if (b->next != KV_NONE)
        t->blocks[b->next].previous = at;
    t->blocks[parent].child = at;
}

static uint32_t add(struct kv_tree *t, unsigned group, uint64_t hash)
{
    uint32_t at = t->free, *place = kv_tree_hash_place(t, group, hash);
    if (at != KV_NONE)
        t->free = t->blocks[at].next;
    else if (t->used < t->max)
        at = t->used++;
    else
        return KV_NONE;
    t->blocks[at] = (struct kv_block){.hash = hash,
                                      .parent = KV_NONE,
                                      .child = KV_NONE,
                                      .next = KV_NONE,
                                      .previous = KV_NONE,
                                      .by_hash = *place,
                                      .group = (uint8_t)group,
                                      .in_use = true};
    *place = at;
    t->count++;
    return at;
}

/* Frees the block unless it is cached or other blocks come after. Then frees in the same way the
 * blocks before, which stayed only for this block. */
static void release(struct kv_tree *t, uint32_t at)
{
    while (at != KV_NONE && !kv_tree_is_kept(&t->blocks[at]) && t->blocks[at].child == KV_NONE) {
        struct kv_block *b = &t->blocks[at];
        uint32_t parent = b->parent, *from = kv_tree_hash_place(t, b->group, b->hash);
        while (*from != at)
            from = &t->blocks[*from].by_hash;
        *from = b->by_hash;
        chain_drop(t, at);
        kv_tree_detach(t, at);
        *b = (struct kv_block){.next = t->free};
        t->free = at;
        t->count--;
        at = parent;
    }
}

/* --- reach ----------------------------------------------------------------------------------- */

static uint8_t reach_of(const struct kv_tree *t, const struct kv_block *b)
{
    uint8_t before = b->depth > 0 ? KV_THERE : KV_GONE;
    if (b->depth > 1 && b->parent != KV_NONE)
        before = t->blocks[b->parent].reach;
    uint8_t own = kv_tree_is_sure(b) ? KV_THERE : kv_tree_is_kept(b) ? KV_UNSURE : KV_GONE;
    return own < before ? own : before;
}

void kv_tree_follow(struct kv_tree *t, uint32_t top)
{
    bool tells = t->user != NULL && !t->several;
    if (t->blocks[top].group != t->main_group) {
        kv_tree_run(t, top);
        return;
    }
    for (uint32_t at = top; at != KV_NONE;) {
        struct kv_block *b = &t->blocks[at];
        uint8_t reach = reach_of(t, b);
        bool changed = reach != b->reach;
        b->reach = reach;
        if (changed && tells && b->chained)
            t->user->reached(t->user->context, b->chain, reach);
        if (changed && t->several)
            kv_tree_serve(t, at);
        if (at != top && !kv_tree_step(t))
            return;
        at = changed && b->child != KV_NONE ? b->child : kv_tree_beyond(t, at, top);
    }
}

/* Computes the reach of all blocks, after many changed. */
static void reach_anew(struct kv_tree *t)
{
    for (uint32_t at = 0; at < t->used; at++) {
        if (kv_tree_is_first(t, at))
            kv_tree_follow(t, at);
    }
}

/* --- events ---------------------------------------------------------------------------------- */

/* Counts a stored copy. `surely`: the event is not a repeated announcement. */
static void copy_stored(const struct kv_tree *t, struct kv_copies *c, bool surely)
{
    if (c->most == 0) {
        *c = (struct kv_copies){1, t->settled ? 1 : 2};
        return;
    }
    c->most += c->most < COPIES_MAX;
    if (c->least == 0)
        c->least = 1;
    else if (surely)
        c->least += c->least < c->most;
}

static void copy_removed(struct kv_copies *c)
{
    c->least -= c->least > 0;
    c->most -= c->most > 0 && c->most < COPIES_MAX;
}

/* Updates the number of blocks surely on the GPU, after a block changed. */
static void held_note(struct kv_tree *t, bool before, const struct kv_block *b)
{
    t->stats.held += (b->gpu.least > 0) - before;
}

/* Applies a store event to a block. vLLM repeats announcements from the beginning of a prompt,
 * never from the middle. */
static void stored_at(struct kv_tree *t, struct kv_block *b, const struct kv_event *e)
{
    enum kv_medium medium = e->medium;
    if (medium == KV_GPU && b->gpu.least == 0)
        b->since = t->now_ms;
    bool held = b->gpu.least > 0;
    if (medium == KV_GPU)
        copy_stored(t, &b->gpu, e->has_parent);
    else if (medium == KV_HOST)
        copy_stored(t, &b->host, false);
    else
        b->disk = true;
    t->has_tiers |= medium != KV_GPU;
    held_note(t, held, b);
}

static void removed_at(struct kv_tree *t, struct kv_block *b, enum kv_medium medium)
{
    bool held = b->gpu.least > 0;
    if (medium == KV_GPU)
        copy_removed(&b->gpu);
    else if (medium == KV_HOST)
        copy_removed(&b->host);
    else
        b->disk = false;
    b->since = t->now_ms;
    held_note(t, held, b);
}

static struct kv_group *group_of(struct kv_tree *t, const struct kv_event *e, unsigned *number)
{
    *number = e->group == KV_GROUP_NONE ? 0 : e->group;
    if (*number >= KV_GROUPS_MAX) {
        t->stats.unknown += e->count;
        return NULL;
    }
    return &t->groups[*number];
}

static void group_told(struct kv_tree *t, unsigned number, struct kv_group told)
{
    struct kv_group *g = &t->groups[number];
    bool same = g->seen && g->kind == told.kind && g->block_tokens == told.block_tokens &&
                g->window == told.window;
    if (same)
        return;
    *g = told;
    if (t->main_group == KV_GROUPS_MAX && told.kind == KV_ATTENTION) {
        t->main_group = number;
        reach_anew(t);
    }
    kv_tree_groups_anew(t);
}

/* Returns true if `at` may be somewhere before `below`, and so cannot follow it. */
static bool is_above(struct kv_tree *t, uint32_t at, uint32_t below)
{
    if (t->blocks[at].child == KV_NONE)
        return at == below;
    while (below != KV_NONE && below != at && kv_tree_step(t))
        below = t->blocks[below].parent;
    return below != KV_NONE;
}

void kv_tree_place(struct kv_tree *t, uint32_t top, uint32_t depth, bool is_root, uint64_t chain)
{
    for (uint32_t at = top; at != KV_NONE; at = kv_tree_after(t, at, top)) {
        struct kv_block *b = &t->blocks[at];
        if (at != top) {
            const struct kv_block *parent = &t->blocks[b->parent];
            depth = parent->depth;
            chain = parent->chained ? parent->chain : 0;
        }
        if (depth > 0 || (at == top && is_root))
            b->depth = depth + 1;
        if (!b->chained && b->chain != 0 && chain != 0)
            kv_tree_chain(t, at, kv_chain(t->secret, chain, b->chain));
        if (at != top && !kv_tree_step(t))
            return;
    }
}

/* Finds the block before the event's first block. An unknown block is added: once it is stored
 * again, the later blocks get their places. Sets *parent; KV_NONE: the first block begins a prompt.
 * Returns false if the tree is full. */
static bool parent_of(struct kv_tree *t, const struct kv_event *e, unsigned group, uint32_t *parent)
{
    *parent = KV_NONE;
    if (!e->has_parent)
        return true;
    *parent = kv_tree_find_block(t, group, e->parent);
    if (*parent == KV_NONE) {
        t->stats.unplaced += e->count;
        *parent = add(t, group, e->parent);
        if (*parent != KV_NONE)
            kv_tree_run(t, *parent);
    }
    return *parent != KV_NONE;
}

/* Returns true if the block may follow `parent`: the block's depth is unknown, or the chains
 * match. */
static bool fits_behind(const struct kv_tree *t, const struct kv_block *b, uint32_t parent,
                        const uint64_t *digest)
{
    const struct kv_block *p = &t->blocks[parent];
    if (b->depth == 0)
        return true;
    return digest != NULL && b->chained && p->chained && p->depth + 1 == b->depth &&
           kv_chain(t->secret, p->chain, *digest) == b->chain;
}

/* Adds the event's block number `i`, a block of the main group, after `parent`. */
static void put(struct kv_tree *t, const struct kv_event *e, uint32_t i, uint32_t at,
                uint32_t parent)
{
    struct kv_block *b = &t->blocks[at];
    /* A tier which reports only hashes reports no parents either. */
    bool is_root = i == 0 && !e->has_parent && e->block_tokens > 0;
    const uint64_t *digest = e->digests != NULL ? &e->digests[i] : NULL;
    if (!b->chained && !b->listed && digest != NULL)
        b->chain = *digest;
    if (b->parent == KV_NONE && parent != KV_NONE && fits_behind(t, b, parent, digest) &&
        !is_above(t, at, parent))
        attach(t, at, parent);
    if (b->depth > 0 && (b->chained || b->chain == 0))
        return;
    if (b->parent != KV_NONE)
        kv_tree_place(t, at, t->blocks[b->parent].depth, false,
                      t->blocks[b->parent].chained ? t->blocks[b->parent].chain : 0);
    else if (is_root)
        kv_tree_place(t, at, 0, true, kv_chain_root(t->secret, e->block_tokens, e->space));
    if (b->chain != 0 && !b->listed)
        chain_list(t, at);
}

static void stored(struct kv_tree *t, const struct kv_event *e)
{
    unsigned number;
    uint32_t parent = KV_NONE, i = 0;
    struct kv_group *g = group_of(t, e, &number);
    if (g == NULL || e->count == 0)
        return;
    if (e->medium == KV_GPU || !g->seen) /* other tiers report only hashes */
        group_told(t, number, (struct kv_group){true, e->kind, e->block_tokens, e->window});
    bool is_main = number == t->main_group;
    bool room = !is_main || parent_of(t, e, number, &parent);
    for (; room && i < e->count && !kv_tree_is_tired(t); i++) {
        uint32_t at = kv_tree_find_block(t, number, e->hashes[i]);
        if (at == KV_NONE && (at = add(t, number, e->hashes[i])) == KV_NONE)
            break;
        if (is_main)
            put(t, e, i, at, parent);
        stored_at(t, &t->blocks[at], e);
        if (is_main)
            kv_tree_follow(t, at);
        kv_tree_run(t, at);
        parent = is_main ? at : KV_NONE;
    }
    if (i < e->count) { /* the other blocks are cached but not in the tree */
        t->stats.full += e->count - i;
        t->stats.whole = false;
    }
    if (i == 0 && parent != KV_NONE)
        release(t, parent);
}

static void removed(struct kv_tree *t, const struct kv_event *e)
{
    unsigned number;
    if (group_of(t, e, &number) == NULL)
        return;
    for (uint32_t i = 0; i < e->count && !kv_tree_is_tired(t); i++) {
        uint32_t at = kv_tree_find_block(t, number, e->hashes[i]);
        if (at == KV_NONE) {
            t->stats.unknown++;
            continue;
        }
        removed_at(t, &t->blocks[at], e->medium);
        kv_tree_follow(t, at);
        release(t, at);
    }
}

/* Called when nothing is left on the GPU. No event reports the blocks still in other tiers. */
static void cleared(struct kv_tree *t)
{
    if (!t->has_tiers) {
        kv_tree_clear(t);
        return;
    }
    kv_tree_spend(t, t->used / 4); /* in memory order, 4 blocks cost 1 step */
    for (uint32_t at = 0; at < t->used; at++) {
        t->blocks[at].gpu = (struct kv_copies){0, 0};
        t->blocks[at].host.least = 0;
        t->blocks[at].since = t->now_ms;
    }
    t->stats.held = 0;
    reach_anew(t);
    kv_tree_groups_anew(t);
    for (uint32_t at = 0; at < t->used; at++) {
        if (t->blocks[at].in_use)
            release(t, at);
    }
    t->settled = true;
}

void kv_tree_clock(struct kv_tree *t, uint64_t now_ms)
{
    t->now_ms = (uint32_t)now_ms;
}

void kv_tree_apply(struct kv_tree *t, const struct kv_event *event)
{
    if (event->change != KV_CLEARED && event->remote)
        t->has_pool = true;
    else if (event->change == KV_STORED)
        stored(t, event);
    else if (event->change == KV_REMOVED)
        removed(t, event);
    else
        cleared(t);
}

static uint8_t unsure(uint8_t reach)
{
    return reach == KV_THERE ? KV_UNSURE : reach;
}

void kv_tree_doubt(struct kv_tree *t)
{
    for (uint32_t at = 0; at < t->used; at++) {
        struct kv_block *b = &t->blocks[at];
        b->gpu.least = b->host.least = 0;
        b->gpu.most += b->gpu.most > 0 && b->gpu.most < COPIES_MAX;
        b->run.least = 0;
        b->reach = unsure(b->reach);
        b->serves = unsure(b->serves);
        b->alive = unsure(b->alive);
    }
    t->stats.held = 0;
    t->stats.whole = false;
    t->settled = false;
}

void kv_tree_settle(struct kv_tree *t)
{
    t->settled = true;
}

/* Returns true if the block can be dropped without loss while unknown blocks may be cached. */
static bool is_nothing(const struct kv_block *b)
{
    return b->in_use && b->child == KV_NONE && b->gpu.least == 0 && b->host.most == 0 && !b->disk;
}

/* Goes backwards, because most blocks were stored after their parents. */
uint32_t kv_tree_make_room(struct kv_tree *t)
{
    uint32_t before = t->count;
    uint32_t at = t->stats.whole || t->several ? 0 : t->used;
    while (at > 0) {
        if (!is_nothing(&t->blocks[--at]))
            continue;
        t->blocks[at].gpu.most = 0;
        release(t, at);
    }
    return before - t->count;
}

void kv_tree_allow(struct kv_tree *t, uint64_t steps)
{
    t->steps = steps;
}

void kv_tree_spend(struct kv_tree *t, uint64_t steps)
{
    (void)kv_tree_steps(t, steps);
}

bool kv_tree_is_tired(const struct kv_tree *t)
{
    return t->steps == 0;
}

/* --- life ------------------------------------------------------------------------------------ */

/* Clears the tables, with at most as much work as filling them took. */
static void tables_clear(struct kv_tree *t)
{
    if (t->used >= t->max / 16) {
        memset(t->by_hash, 0xff, t->max * sizeof *t->by_hash);
        memset(t->by_chain, 0xff, t->max * sizeof *t->by_chain);
        return;
    }
    for (uint32_t at = 0; at < t->used; at++) {
        const struct kv_block *b = &t->blocks[at];
        if (!b->in_use)
            continue;
        *kv_tree_hash_place(t, b->group, b->hash) = KV_NONE;
        if (b->listed)
            t->by_chain[kv_tree_place_of(t, b->chain)] = KV_NONE;
    }
}

void kv_tree_clear(struct kv_tree *t)
{
    tables_clear(t);
    memset(t->groups, 0, sizeof t->groups);
    t->free = KV_NONE;
    t->used = t->count = t->stats.held = 0;
    t->main_group = KV_GROUPS_MAX;
    t->settled = t->stats.whole = true;
    t->has_tiers = t->several = false;
}

int kv_tree_create(struct kv_tree **out, const struct kv_tree_user *user,
                   const struct hash_secret *secret, uint32_t blocks_max)
{
    struct kv_tree *t = calloc(1, sizeof *t);
    CHECK(blocks_max > 0 && blocks_max < KV_NONE);
    if (t == NULL || (t->by_hash = calloc(blocks_max, sizeof *t->by_hash)) == NULL ||
        (t->by_chain = calloc(blocks_max, sizeof *t->by_chain)) == NULL ||
        (t->blocks = calloc(blocks_max, sizeof *t->blocks)) == NULL) {
        kv_tree_destroy(t);
        return ERR_NOMEM;
    }
    t->steps = UINT64_MAX;
    t->user = user;
    t->secret = secret;
    t->salt = hash64(secret, "blocks", 6);
    t->max = t->used = blocks_max; /* so that kv_tree_clear() sets the whole tables */
    kv_tree_clear(t);
    kv_tree_doubt(t);
    *out = t;
    return ERR_OK;
}

void kv_tree_destroy(struct kv_tree *t)
{
    if (t == NULL)
        return;
    free(t->by_hash);
    free(t->by_chain);
    free(t->blocks);
    free(t);
}

static void tables_check(const struct kv_tree *t)
{
    for (uint32_t i = 0; i < t->max; i++) {
        for (uint32_t at = t->by_hash[i]; at != KV_NONE; at = t->blocks[at].by_hash)
            CHECK(t->blocks[at].in_use);
        for (uint32_t at = t->by_chain[i]; at != KV_NONE; at = t->blocks[at].by_chain)
            CHECK(t->blocks[at].listed && kv_tree_place_of(t, t->blocks[at].chain) == i);
    }
}

void kv_tree_check(const struct kv_tree *t)
{
    uint32_t count = 0, held = 0;
    bool follows = !kv_tree_is_tired(t);
    for (uint32_t at = 0; at < t->used; at++) {
        const struct kv_block *b = &t->blocks[at];
        if (!b->in_use)
            continue;
        count++;
        held += b->gpu.least > 0;
        CHECK(kv_tree_is_kept(b) || b->child != KV_NONE);
        CHECK(b->gpu.least <= b->gpu.most && b->host.least <= b->host.most);
        CHECK(kv_tree_find_block(t, b->group, b->hash) == at);
        CHECK(!b->chained || (b->depth > 0 && b->group == t->main_group && b->listed));
        CHECK(!b->listed || b->chain != 0);
        CHECK(!follows || b->group != t->main_group || b->reach == reach_of(t, b));
        if (follows)
            kv_tree_groups_check(t, at);
        CHECK(b->child == KV_NONE || t->blocks[b->child].parent == at);
        CHECK(b->next == KV_NONE || t->blocks[b->next].previous == at);
        if (b->parent == KV_NONE)
            continue;
        CHECK(t->blocks[b->parent].in_use);
        CHECK(!follows ||
              b->depth == t->blocks[b->parent].depth + (t->blocks[b->parent].depth > 0));
    }
    CHECK(count == t->count && held == t->stats.held);
    tables_check(t);
}
