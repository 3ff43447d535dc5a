/* The blocks of a tree, shared by five files. tree.c applies events, and tree_groups.c handles
 * models with several groups of layers. tree_ask.c answers questions, tree_found.c applies facts
 * from answers, and tree_keep.c saves the tree over a restart. */
#ifndef NODE_KV_TREE_INTERNAL_H
#define NODE_KV_TREE_INTERNAL_H

#include "base/hash.h"
#include "node/kv/tree.h"

enum {
    KV_NONE = UINT32_MAX,
    COPIES_MAX = UINT8_MAX, /* a block with this count stays unsure until the cache is cleared */
};

/* The bounds of a block's number of copies. */
struct kv_copies {
    uint8_t least, most;
};

struct kv_block {
    uint64_t hash;  /* the engine's hash of the block */
    uint64_t chain; /* if not `chained`, the digest of the block's tokens; 0: unknown */
    uint32_t parent, child, next,
        previous;               /* KV_NONE: none; `next` links siblings, and free blocks */
    uint32_t by_hash, by_chain; /* the next block in the same slot of a table */
    /* Number of blocks up to this block; 0: unknown. Without a parent, a depth above 1 comes from
     * an answer: the blocks before are not in the tree, and count as present as long as this block
     * is. */
    uint32_t depth;
    uint32_t since; /* last time that the block surely came to the GPU, or lost a copy; in ms,
                     * wraps */
    struct kv_copies gpu, host;
    bool disk : 1; /* stored on disk; engines never report removals from there */
    bool chained : 1;
    bool listed : 1;   /* in the table of chains */
    bool in_use : 1;   /* false: this is a free place */
    uint8_t reach : 2; /* enum kv_reach, judged by this group alone */
    /* Set in the main group of a model with several groups (tree_groups.c). `serves` says if a
     * prompt up to this block is cached, and `alive` if any prompt with this block is cached. */
    uint8_t serves : 2, alive : 2;
    uint8_t group : 4;
    struct kv_copies run; /* in other groups: length of the run of present blocks up to here */
};

struct kv_group {
    bool seen;
    enum kv_kind kind;
    uint32_t block_tokens, window;
};

struct kv_tree {
    const struct kv_tree_user *user; /* may be NULL */
    const struct hash_secret *secret;
    uint64_t salt;      /* secret, so that an engine cannot choose hashes of a single slot */
    uint32_t max, used; /* size of the array, and number of places ever used */
    uint32_t free;      /* the first of the list of free places */
    uint32_t count;
    uint32_t main_group; /* the group with chains; KV_GROUPS_MAX: none so far */
    bool several;        /* several groups count */
    bool settled;        /* a newly stored block is the only copy (kv_tree_settle()) */
    bool has_tiers;      /* some blocks were stored elsewhere than on the GPU */
    bool has_pool;       /* the engine shares a pool; not reset when the tree is cleared */
    uint64_t steps;      /* steps left (kv_tree_allow()) */
    uint32_t now_ms;     /* time of the current events; wraps */
    struct kv_tree_stats stats;
    struct kv_group groups[KV_GROUPS_MAX];
    uint32_t *by_hash, *by_chain; /* `max` places each */
    struct kv_block *blocks;
    struct {
        uint64_t hashes[KV_AHEAD];
        unsigned next;
    } ahead; /* the last blocks announced by kv_tree_ahead() */
};

/* --- tables --- */

static inline uint32_t kv_tree_place_of(const struct kv_tree *t, uint64_t key)
{
    return (uint32_t)(((hash_mix(key ^ t->salt) >> 32) * t->max) >> 32);
}

static inline uint32_t *kv_tree_hash_place(const struct kv_tree *t, unsigned group, uint64_t hash)
{
    return &t->by_hash[kv_tree_place_of(t, hash + group)];
}

static inline uint32_t kv_tree_find_block(const struct kv_tree *t, unsigned group, uint64_t hash)
{
    uint32_t at = *kv_tree_hash_place(t, group, hash);
    while (at != KV_NONE && (t->blocks[at].hash != hash || t->blocks[at].group != group))
        at = t->blocks[at].by_hash;
    return at;
}

static inline uint32_t kv_tree_find_chain(const struct kv_tree *t, uint64_t chain)
{
    uint32_t at = t->by_chain[kv_tree_place_of(t, chain)];
    while (at != KV_NONE && (t->blocks[at].chain != chain || !t->blocks[at].chained))
        at = t->blocks[at].by_chain;
    return at;
}

/* Returns true if the block's place is known, but not from a parent. */
static inline bool kv_tree_is_first(const struct kv_tree *t, uint32_t at)
{
    const struct kv_block *b = &t->blocks[at];
    return b->in_use && b->depth > 0 && b->parent == KV_NONE;
}

/* --- what is there --- */

static inline bool kv_tree_is_kept(const struct kv_block *b)
{
    return b->gpu.most > 0 || b->host.most > 0 || b->disk;
}

static inline bool kv_tree_is_sure(const struct kv_block *b)
{
    return b->gpu.least > 0 || b->host.least > 0;
}

/* Returns true if the block last changed before or at `since_ms`. After 24 days the result may be
 * false anyway. */
static inline bool kv_tree_is_since(const struct kv_block *b, uint64_t since_ms)
{
    return (int32_t)((uint32_t)since_ms - b->since) >= 0;
}

/* Takes this number of steps from block to block. Returns false if none are left. */
static inline bool kv_tree_steps(struct kv_tree *t, uint64_t steps)
{
    t->steps -= steps < t->steps ? steps : t->steps;
    return t->steps > 0;
}

static inline bool kv_tree_step(struct kv_tree *t)
{
    return kv_tree_steps(t, 1);
}

/* Returns the block of `group` at the position of the main group's block `at`: engines give both
 * the same hash. KV_NONE: none. */
static inline uint32_t kv_tree_beside(const struct kv_tree *t, unsigned group, uint32_t at)
{
    return group == t->main_group ? at : kv_tree_find_block(t, group, t->blocks[at].hash);
}

static inline bool kv_group_counts(const struct kv_group *g)
{
    return g->seen && g->kind != KV_IGNORED;
}

static inline uint32_t kv_group_window_blocks(const struct kv_group *g)
{
    return g->kind == KV_WINDOW && g->block_tokens > 0
               ? (g->window + g->block_tokens - 1) / g->block_tokens
               : 0;
}

/* Returns the next block after `at` in the subtree of `top`, skipping the subtree of `at`. KV_NONE:
 * none. */
static inline uint32_t kv_tree_beyond(const struct kv_tree *t, uint32_t at, uint32_t top)
{
    while (at != top && t->blocks[at].next == KV_NONE)
        at = t->blocks[at].parent;
    return at != top ? t->blocks[at].next : KV_NONE;
}

/* Returns the next block after `at` in the subtree of `top`, parents first. KV_NONE: none. */
static inline uint32_t kv_tree_after(const struct kv_tree *t, uint32_t at, uint32_t top)
{
    return t->blocks[at].child != KV_NONE ? t->blocks[at].child : kv_tree_beyond(t, at, top);
}

/* Removes the block from the parent's list. */
static inline void kv_tree_detach(struct kv_tree *t, uint32_t at)
{
    struct kv_block *b = &t->blocks[at];
    if (b->parent == KV_NONE)
        return;
    if (b->previous != KV_NONE)
        t->blocks[b->previous].next = b->next;
    else
        t->blocks[b->parent].child = b->next;
    if (b->next != KV_NONE)
        t->blocks[b->next].previous = b->previous;
}

/* --- tree_groups.c --- */

/* Called when the reach of a block of the main group has changed. */
void kv_tree_serve(struct kv_tree *t, uint32_t at);
/* Called when a block of any group has changed, or got a place. */
void kv_tree_run(struct kv_tree *t, uint32_t at);
/* Called when the set of counting groups has changed, or all blocks have. */
void kv_tree_groups_anew(struct kv_tree *t);
void kv_tree_groups_check(const struct kv_tree *t, uint32_t at);

/* Sets the block's chain, which has become known. */
void kv_tree_chain(struct kv_tree *t, uint32_t at, uint64_t chain);
/* Sets depth and chain of `top` and all blocks after it, as far as they follow from the blocks
 * before. `depth` and `chain` are of the block before `top`; 0: unknown. */
void kv_tree_place(struct kv_tree *t, uint32_t top, uint32_t depth, bool is_root, uint64_t chain);
/* Called when a block has changed: updates the reach of the block and the blocks after it. */
void kv_tree_follow(struct kv_tree *t, uint32_t top);

#endif
