#include "node/kv/tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

enum {
    NONE = UINT32_MAX,
    COPIES_MAX = UINT8_MAX, /* counted so high, a block stays unsure until all is cleared */
};

/* Between two bounds. */
struct copies {
    uint8_t least, most;
};

struct block {
    uint64_t hash;  /* the engine's */
    uint64_t chain; /* if it is `chained`; else the digest of its tokens; 0: not known */
    uint32_t parent, child, next,
        previous;               /* NONE: there is none; `next` of siblings and of free ones */
    uint32_t by_hash, by_chain; /* the next one in the same place of a table */
    uint32_t depth;             /* blocks up to this one; 0: not known */
    uint8_t group;
    struct copies gpu, host;
    bool disk; /* disks tell what they store, never what they remove */
    bool chained;
    bool in_use;   /* else it is free */
    uint8_t reach; /* enum kv_reach */
};

struct group {
    bool seen;
    enum kv_kind kind;
    uint32_t block_tokens, window;
};

struct kv_tree {
    const struct kv_tree_user *user; /* or NULL */
    const struct hash_secret *secret;
    uint32_t max, used; /* blocks of the array; those that were ever used */
    uint32_t free;      /* the first of a list */
    uint32_t count;
    uint32_t main_group; /* whose blocks have chains; KV_GROUPS_MAX: none was seen */
    bool settled;        /* a block that is new is the only copy */
    bool has_tiers;      /* some blocks were stored elsewhere than on the GPU */
    uint64_t steps;      /* that it may still take */
    struct kv_tree_stats stats;
    struct group groups[KV_GROUPS_MAX];
    uint32_t *by_hash, *by_chain; /* `max` places each */
    struct block *blocks;
};

_Static_assert(sizeof(struct block) + 2 * sizeof(uint32_t) <= KV_TREE_BLOCK_BYTES, "as promised");

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

static uint32_t place_of(const struct kv_tree *t, uint64_t key)
{
    return (uint32_t)(((hash_mix(key) >> 32) * t->max) >> 32);
}

static uint32_t *hash_place(const struct kv_tree *t, unsigned group, uint64_t hash)
{
    return &t->by_hash[place_of(t, hash + group)];
}

static uint32_t find(const struct kv_tree *t, unsigned group, uint64_t hash)
{
    uint32_t at = *hash_place(t, group, hash);
    while (at != NONE && (t->blocks[at].hash != hash || t->blocks[at].group != group))
        at = t->blocks[at].by_hash;
    return at;
}

static uint32_t find_chain(const struct kv_tree *t, uint64_t chain)
{
    uint32_t at = t->by_chain[place_of(t, chain)];
    while (at != NONE && t->blocks[at].chain != chain)
        at = t->blocks[at].by_chain;
    return at;
}

static void chain_set(struct kv_tree *t, uint32_t at, uint64_t chain)
{
    uint32_t *place = &t->by_chain[place_of(t, chain)];
    t->blocks[at].chain = chain;
    t->blocks[at].chained = true;
    t->blocks[at].by_chain = *place;
    *place = at;
}

static void chain_drop(struct kv_tree *t, uint32_t at)
{
    if (!t->blocks[at].chained)
        return;
    uint32_t *from = &t->by_chain[place_of(t, t->blocks[at].chain)];
    while (*from != at)
        from = &t->blocks[*from].by_chain;
    *from = t->blocks[at].by_chain;
}

/* --- blocks ---------------------------------------------------------------------------------- */

/* One step from block to block. False: it was the last one. */
static bool step(struct kv_tree *t)
{
    t->steps -= t->steps > 0;
    return t->steps > 0;
}

static bool is_kept(const struct block *b)
{
    return b->gpu.most > 0 || b->host.most > 0 || b->disk;
}

static void attach(struct kv_tree *t, uint32_t at, uint32_t parent)
{
    struct block *b = &t->blocks[at];
    b->parent = parent;
    b->previous = NONE;
    b->next = t->blocks[parent].child;
    if (b->next != NONE)
        t->blocks[b->next].previous = at;
    t->blocks[parent].child = at;
}

static void detach(struct kv_tree *t, uint32_t at)
{
    struct block *b = &t->blocks[at];
    if (b->parent == NONE)
        return;
    if (b->previous != NONE)
        t->blocks[b->previous].next = b->next;
    else
        t->blocks[b->parent].child = b->next;
    if (b->next != NONE)
        t->blocks[b->next].previous = b->previous;
}

static uint32_t add(struct kv_tree *t, unsigned group, uint64_t hash)
{
    uint32_t at = t->free, *place = hash_place(t, group, hash);
    if (at != NONE)
        t->free = t->blocks[at].next;
    else if (t->used < t->max)
        at = t->used++;
    else
        return NONE;
    t->blocks[at] = (struct block){.hash = hash,
                                   .parent = NONE,
                                   .child = NONE,
                                   .next = NONE,
                                   .previous = NONE,
                                   .by_hash = *place,
                                   .group = (uint8_t)group,
                                   .in_use = true};
    *place = at;
    t->count++;
    return at;
}

/* Frees it, and those above it that only it kept. */
static void release(struct kv_tree *t, uint32_t at)
{
    while (at != NONE && !is_kept(&t->blocks[at]) && t->blocks[at].child == NONE) {
        struct block *b = &t->blocks[at];
        uint32_t parent = b->parent, *from = hash_place(t, b->group, b->hash);
        while (*from != at)
            from = &t->blocks[*from].by_hash;
        *from = b->by_hash;
        chain_drop(t, at);
        detach(t, at);
        *b = (struct block){.next = t->free};
        t->free = at;
        t->count--;
        at = parent;
    }
}

/* The block after `at` in the subtree of `top`, parents first; NONE: it was the last one. */
static uint32_t after(const struct kv_tree *t, uint32_t at, uint32_t top)
{
    if (t->blocks[at].child != NONE)
        return t->blocks[at].child;
    while (at != top && t->blocks[at].next == NONE)
        at = t->blocks[at].parent;
    return at != top ? t->blocks[at].next : NONE;
}

/* --- reach ----------------------------------------------------------------------------------- */

static bool is_sure(const struct block *b)
{
    return b->gpu.least > 0 || b->host.least > 0;
}

static uint8_t reach_of(const struct kv_tree *t, const struct block *b)
{
    uint8_t before = b->depth == 1 ? KV_THERE : KV_GONE;
    if (b->depth > 1 && b->parent != NONE)
        before = t->blocks[b->parent].reach;
    uint8_t own = is_sure(b) ? KV_THERE : is_kept(b) ? KV_UNSURE : KV_GONE;
    return own < before ? own : before;
}

static bool has_one_group(const struct kv_tree *t)
{
    for (unsigned i = 0; i < KV_GROUPS_MAX; i++) {
        if (i != t->main_group && t->groups[i].seen && t->groups[i].kind != KV_IGNORED)
            return false;
    }
    return true;
}

/* The block after `at` in the subtree of `top`, but for what stands behind `at`. */
static uint32_t beyond(const struct kv_tree *t, uint32_t at, uint32_t top)
{
    while (at != top && t->blocks[at].next == NONE)
        at = t->blocks[at].parent;
    return at != top ? t->blocks[at].next : NONE;
}

/* The block changed: what stands behind it follows. */
static void reach_follow(struct kv_tree *t, uint32_t top)
{
    bool tells = t->user != NULL && has_one_group(t);
    if (t->blocks[top].group != t->main_group)
        return;
    for (uint32_t at = top; at != NONE;) {
        struct block *b = &t->blocks[at];
        uint8_t reach = reach_of(t, b);
        bool changed = reach != b->reach;
        b->reach = reach;
        if (changed && tells && b->chained)
            t->user->reached(t->user->context, b->chain, reach);
        if (at != top)
            (void)step(t);
        at = changed && b->child != NONE ? b->child : beyond(t, at, top);
    }
}

/* --- events ---------------------------------------------------------------------------------- */

/* `surely`: it is no announcement of what was there. */
static void copy_stored(const struct kv_tree *t, struct copies *c, bool surely)
{
    if (c->most == 0) {
        *c = (struct copies){1, t->settled ? 1 : 2};
        return;
    }
    c->most += c->most < COPIES_MAX;
    if (c->least == 0)
        c->least = 1;
    else if (surely)
        c->least += c->least < c->most;
}

static void copy_removed(struct copies *c)
{
    c->least -= c->least > 0;
    c->most -= c->most > 0 && c->most < COPIES_MAX;
}

/* vLLM announces again from the beginning of a prompt on, never from its middle. */
static void stored_at(struct kv_tree *t, struct block *b, const struct kv_event *e)
{
    enum kv_medium medium = e->medium;
    if (medium == KV_GPU)
        copy_stored(t, &b->gpu, e->has_parent);
    else if (medium == KV_HOST)
        copy_stored(t, &b->host, false);
    else
        b->disk = true;
    t->has_tiers |= medium != KV_GPU;
}

static void removed_at(struct block *b, enum kv_medium medium)
{
    if (medium == KV_GPU)
        copy_removed(&b->gpu);
    else if (medium == KV_HOST)
        copy_removed(&b->host);
    else
        b->disk = false;
}

static struct group *group_of(struct kv_tree *t, const struct kv_event *e, unsigned *number)
{
    *number = e->group == KV_GROUP_NONE ? 0 : e->group;
    if (*number >= KV_GROUPS_MAX) {
        t->stats.unknown += e->count;
        return NULL;
    }
    return &t->groups[*number];
}

/* Whether `at` may stand somewhere in front of `below`: then it cannot stand behind it. */
static bool is_above(struct kv_tree *t, uint32_t at, uint32_t below)
{
    if (t->blocks[at].child == NONE)
        return at == below;
    while (below != NONE && below != at && step(t))
        below = t->blocks[below].parent;
    return below != NONE;
}

/* Gives depth and chain, where they follow from what is in front, to `top` and all behind it.
 * `depth` and `chain` are those in front of `top`; 0: not known. */
static void place(struct kv_tree *t, uint32_t top, uint32_t depth, bool is_root, uint64_t chain)
{
    for (uint32_t at = top; at != NONE; at = after(t, at, top)) {
        struct block *b = &t->blocks[at];
        if (at != top) {
            const struct block *parent = &t->blocks[b->parent];
            depth = parent->depth;
            chain = parent->chained ? parent->chain : 0;
        }
        if (depth > 0 || (at == top && is_root))
            b->depth = depth + 1;
        if (!b->chained && b->chain != 0 && chain != 0)
            chain_set(t, at, kv_chain(t->secret, chain, b->chain));
        if (at != top)
            (void)step(t);
    }
}

/* The block in front of the event's first one; made if it is not known, so that what comes behind
 * it has a place if it returns. NONE: the first one begins a prompt. */
static bool parent_of(struct kv_tree *t, const struct kv_event *e, unsigned group, uint32_t *parent)
{
    *parent = NONE;
    if (!e->has_parent)
        return true;
    *parent = find(t, group, e->parent);
    if (*parent == NONE) {
        t->stats.unplaced += e->count;
        *parent = add(t, group, e->parent);
    }
    return *parent != NONE;
}

static void stored(struct kv_tree *t, const struct kv_event *e)
{
    unsigned number;
    uint32_t parent, i = 0;
    struct group *g = group_of(t, e, &number);
    if (g == NULL || e->count == 0)
        return;
    if (e->medium == KV_GPU || !g->seen) /* other tiers tell hashes alone */
        *g = (struct group){true, e->kind, e->block_tokens, e->window};
    if (t->main_group == KV_GROUPS_MAX && e->kind == KV_ATTENTION)
        t->main_group = number;
    bool has_chains = e->digests != NULL && number == t->main_group;
    /* A tier that tells hashes alone tells no parents either. */
    bool is_root = !e->has_parent && e->block_tokens > 0;
    bool room = parent_of(t, e, number, &parent);
    for (; room && i < e->count; i++) {
        uint32_t at = find(t, number, e->hashes[i]);
        if (at == NONE && (at = add(t, number, e->hashes[i])) == NONE)
            break;
        struct block *b = &t->blocks[at];
        if (!b->chained && has_chains)
            b->chain = e->digests[i];
        if (b->parent == NONE && parent != NONE && b->depth == 0 && !is_above(t, at, parent))
            attach(t, at, parent);
        bool is_placed = b->depth > 0 && (b->chained || b->chain == 0);
        if (!is_placed && b->parent != NONE)
            place(t, at, t->blocks[b->parent].depth, false,
                  t->blocks[b->parent].chained ? t->blocks[b->parent].chain : 0);
        else if (!is_placed && i == 0 && is_root)
            place(t, at, 0, true, kv_chain_root(t->secret, e->block_tokens, e->space));
        stored_at(t, b, e);
        reach_follow(t, at);
        parent = at;
    }
    if (i < e->count) { /* they are held, and not known */
        t->stats.full += e->count - i;
        t->stats.whole = false;
    }
    if (i == 0 && parent != NONE)
        release(t, parent);
}

static void removed(struct kv_tree *t, const struct kv_event *e)
{
    unsigned number;
    if (group_of(t, e, &number) == NULL)
        return;
    for (uint32_t i = 0; i < e->count; i++) {
        uint32_t at = find(t, number, e->hashes[i]);
        if (at == NONE) {
            t->stats.unknown++;
            continue;
        }
        removed_at(&t->blocks[at], e->medium);
        reach_follow(t, at);
        release(t, at);
    }
}

/* Of all blocks, after many changed. */
static void reach_anew(struct kv_tree *t)
{
    for (uint32_t at = 0; at < t->used; at++) {
        if (t->blocks[at].in_use && t->blocks[at].depth == 1)
            reach_follow(t, at);
    }
}

/* Nothing is on the GPU. Nobody tells what becomes of other tiers. */
static void cleared(struct kv_tree *t)
{
    if (!t->has_tiers) {
        kv_tree_clear(t);
        return;
    }
    for (uint32_t at = 0; at < t->used; at++) {
        t->blocks[at].gpu = (struct copies){0, 0};
        t->blocks[at].host.least = 0;
    }
    reach_anew(t);
    for (uint32_t at = 0; at < t->used; at++) {
        if (t->blocks[at].in_use)
            release(t, at);
    }
    t->settled = true;
}

void kv_tree_apply(struct kv_tree *t, const struct kv_event *event)
{
    if (event->change == KV_STORED)
        stored(t, event);
    else if (event->change == KV_REMOVED)
        removed(t, event);
    else
        cleared(t);
}

void kv_tree_doubt(struct kv_tree *t)
{
    for (uint32_t at = 0; at < t->used; at++) {
        struct block *b = &t->blocks[at];
        b->gpu.least = b->host.least = 0;
        b->gpu.most += b->gpu.most > 0 && b->gpu.most < COPIES_MAX;
        if (b->reach == KV_THERE)
            b->reach = KV_UNSURE;
    }
    t->stats.whole = false;
    t->settled = false;
}

void kv_tree_settle(struct kv_tree *t)
{
    t->settled = true;
}

void kv_tree_allow(struct kv_tree *t, uint64_t steps)
{
    t->steps = steps;
}

bool kv_tree_is_tired(const struct kv_tree *t)
{
    return t->steps == 0;
}

/* --- questions ------------------------------------------------------------------------------- */

static enum kv_medium medium_of(const struct block *b)
{
    return b->gpu.least > 0 ? KV_GPU : b->host.least > 0 ? KV_HOST : KV_DISK;
}

/* The block of a group that stands where that one of the first group stands: engines give both the
 * same hash. */
static const struct block *beside(const struct kv_tree *t, unsigned group, uint32_t at)
{
    if (group != t->main_group)
        at = find(t, group, t->blocks[at].hash);
    return at != NONE ? &t->blocks[at] : NULL;
}

static bool has(const struct block *b, bool surely)
{
    return b != NULL && (surely ? is_sure(b) : is_kept(b));
}

/* The longest prefix of at most `blocks`, on the way from `at` to the root, that a group serves. */
static uint32_t served(const struct kv_tree *t, unsigned group, uint32_t at, uint32_t blocks,
                       bool surely)
{
    const struct group *g = &t->groups[group];
    uint32_t size = t->groups[t->main_group].block_tokens;
    uint32_t window = g->kind == KV_WINDOW && size > 0 ? (g->window + size - 1) / size : 0;
    uint32_t run = 0, end = blocks;
    if (g->block_tokens != size) /* its blocks are others */
        return surely ? 0 : blocks;
    for (; at != NONE; at = t->blocks[at].parent) {
        uint32_t depth = t->blocks[at].depth;
        if (depth > blocks)
            continue;
        bool there = has(beside(t, group, at), surely);
        run = there ? run + 1 : 0;
        if (!there)
            end = depth - 1;
        else if (g->kind == KV_STATE || (window > 0 && run == window))
            return end;
    }
    return end;
}

static bool may_ignore(const struct group *g)
{
    return !g->seen || g->kind == KV_IGNORED;
}

static uint32_t served_by_all(const struct kv_tree *t, uint32_t at, uint32_t blocks, bool surely)
{
    uint32_t before;
    do {
        before = blocks;
        for (unsigned i = 0; i < KV_GROUPS_MAX && blocks > 0; i++) {
            if (!may_ignore(&t->groups[i]))
                blocks = served(t, i, at, blocks, surely);
        }
    } while (blocks < before);
    return blocks;
}

struct kv_held kv_tree_held(const struct kv_tree *t, uint64_t chain, uint32_t blocks)
{
    uint32_t at = find_chain(t, chain);
    if (at == NONE || blocks == 0) /* of those in front of the last one the caller asks apart */
        return (struct kv_held){0, t->stats.whole && blocks > 0 ? blocks - 1 : blocks, KV_GPU};
    blocks = t->blocks[at].depth;
    struct kv_held held = {.perhaps = served_by_all(t, at, blocks, false)};
    held.surely = served_by_all(t, at, held.perhaps, true);
    for (; at != NONE; at = t->blocks[at].parent) {
        enum kv_medium where = medium_of(&t->blocks[at]);
        if (t->blocks[at].depth <= held.surely && where > held.slowest)
            held.slowest = where;
    }
    return held;
}

/* --- places ---------------------------------------------------------------------------------- */

static struct kv_tree_place place_at(const struct kv_tree *t, uint32_t at)
{
    if (at == NONE || !t->blocks[at].chained)
        return (struct kv_tree_place){.at = NONE};
    return (struct kv_tree_place){at, t->blocks[at].depth, t->blocks[at].chain};
}

struct kv_tree_place kv_tree_find(const struct kv_tree *t, uint64_t chain)
{
    return place_at(t, find_chain(t, chain));
}

struct kv_tree_place kv_tree_find_hash(const struct kv_tree *t, uint64_t hash)
{
    return place_at(t, t->main_group < KV_GROUPS_MAX ? find(t, t->main_group, hash) : NONE);
}

struct kv_tree_place kv_tree_up(const struct kv_tree *t, struct kv_tree_place from, uint32_t depth)
{
    uint32_t at = from.depth >= depth ? from.at : NONE;
    while (at != NONE && t->blocks[at].depth > depth)
        at = t->blocks[at].parent;
    return place_at(t, at);
}

uint32_t kv_tree_block_tokens(const struct kv_tree *t)
{
    return t->main_group < KV_GROUPS_MAX ? t->groups[t->main_group].block_tokens : 0;
}

bool kv_tree_is_main(const struct kv_tree *t, const struct kv_event *event)
{
    return (event->group == KV_GROUP_NONE ? 0 : event->group) == t->main_group;
}

enum kv_reach kv_tree_reach(const struct kv_tree *t, uint64_t chain)
{
    uint32_t at = find_chain(t, chain);
    if (!has_one_group(t))
        return KV_UNSURE;
    if (at == NONE)
        return t->stats.whole ? KV_GONE : KV_UNSURE;
    return (enum kv_reach)t->blocks[at].reach;
}

bool kv_tree_found(struct kv_tree *t, uint64_t chain, uint32_t blocks)
{
    bool known = true;
    uint32_t top = NONE; /* the first block that changed */
    for (uint32_t at = find_chain(t, chain); at != NONE; at = t->blocks[at].parent) {
        struct block *b = &t->blocks[at];
        if (b->depth > blocks || is_sure(b))
            continue;
        known &= is_kept(b);
        b->gpu.least = 1;
        b->gpu.most = b->gpu.most > 0 ? b->gpu.most : 1;
        top = at;
    }
    if (top != NONE)
        reach_follow(t, top);
    return known;
}

struct kv_tree_stats kv_tree_stats(const struct kv_tree *t)
{
    struct kv_tree_stats stats = t->stats;
    stats.blocks = t->count;
    stats.held = 0;
    for (uint32_t at = 0; at < t->used; at++)
        stats.held += t->blocks[at].gpu.least > 0;
    return stats;
}

/* --- life ------------------------------------------------------------------------------------ */

void kv_tree_clear(struct kv_tree *t)
{
    memset(t->by_hash, 0xff, t->max * sizeof *t->by_hash);
    memset(t->by_chain, 0xff, t->max * sizeof *t->by_chain);
    memset(t->groups, 0, sizeof t->groups);
    t->free = NONE;
    t->used = t->count = 0;
    t->main_group = KV_GROUPS_MAX;
    t->settled = t->stats.whole = true;
    t->has_tiers = false;
}

int kv_tree_create(struct kv_tree **out, const struct kv_tree_user *user,
                   const struct hash_secret *secret, uint32_t blocks_max)
{
    struct kv_tree *t = calloc(1, sizeof *t);
    CHECK(blocks_max > 0 && blocks_max < NONE);
    if (t == NULL || (t->by_hash = calloc(blocks_max, sizeof *t->by_hash)) == NULL ||
        (t->by_chain = calloc(blocks_max, sizeof *t->by_chain)) == NULL ||
        (t->blocks = calloc(blocks_max, sizeof *t->blocks)) == NULL) {
        kv_tree_destroy(t);
        return ERR_NOMEM;
    }
    t->steps = UINT64_MAX;
    t->user = user;
    t->secret = secret;
    t->max = blocks_max;
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

void kv_tree_check(const struct kv_tree *t)
{
    uint32_t count = 0;
    for (uint32_t at = 0; at < t->used; at++) {
        const struct block *b = &t->blocks[at];
        if (!b->in_use)
            continue;
        count++;
        CHECK(is_kept(b) || b->child != NONE);
        CHECK(b->gpu.least <= b->gpu.most && b->host.least <= b->host.most);
        CHECK(find(t, b->group, b->hash) == at);
        CHECK(!b->chained || (b->depth > 0 && b->group == t->main_group));
        CHECK(b->group != t->main_group || b->reach == reach_of(t, b));
        CHECK(b->child == NONE || t->blocks[b->child].parent == at);
        CHECK(b->next == NONE || t->blocks[b->next].previous == at);
        if (b->parent == NONE)
            continue;
        CHECK(t->blocks[b->parent].in_use);
        CHECK(t->blocks[b->parent].depth == 0 ? b->depth == 0
                                              : b->depth == t->blocks[b->parent].depth + 1);
    }
    CHECK(count == t->count);
}
