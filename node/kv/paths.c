#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/checkpoint.h"
#include "base/hash.h"
#include "node/kv/paths_internal.h"

_Static_assert(sizeof(struct kv_point) + 2 * sizeof(uint32_t) <= KV_PATH_POINT_BYTES,
               "as promised");

/* --- tables ---------------------------------------------------------------------------------- */

static uint32_t *place_of(const struct kv_paths *p, uint32_t *table, uint64_t key)
{
    return &table[(uint32_t)(((hash_mix(key) >> 32) * p->max) >> 32)];
}

uint32_t kv_points_find(const struct kv_paths *p, uint64_t id)
{
    uint32_t at = *place_of(p, p->by_id, id);
    while (at != KV_NO_POINT && p->points[at].id != id)
        at = p->points[at].by_id;
    return at;
}

static void anchor_drop(struct kv_paths *p, uint32_t at)
{
    if (p->points[at].chain == 0)
        return;
    uint32_t *from = place_of(p, p->by_chain, p->points[at].chain);
    while (*from != at)
        from = &p->points[*from].by_chain;
    *from = p->points[at].by_chain;
    p->points[at].chain = 0;
    p->stats.anchors--;
}

void kv_points_anchor(struct kv_paths *p, uint32_t at, uint64_t chain, uint32_t depth)
{
    struct kv_point *b = &p->points[at];
    anchor_drop(p, at);
    b->depth = depth;
    if (chain == 0)
        return;
    uint32_t *place = place_of(p, p->by_chain, chain);
    b->chain = chain;
    b->by_chain = *place;
    *place = at;
    p->stats.anchors++;
}

/* --- checkpoints ----------------------------------------------------------------------------- */

static void drop(struct kv_paths *p, uint32_t at)
{
    struct kv_point *b = &p->points[at];
    uint32_t *from = place_of(p, p->by_id, b->id);
    CHECK(b->child == KV_NO_POINT);
    anchor_drop(p, at);
    while (*from != at)
        from = &p->points[*from].by_id;
    *from = b->by_id;
    if (b->previous != KV_NO_POINT)
        p->points[b->previous].next = b->next;
    else if (b->parent != KV_NO_POINT)
        p->points[b->parent].child = b->next;
    if (b->next != KV_NO_POINT)
        p->points[b->next].previous = b->previous;
    *b = (struct kv_point){.next = p->free};
    p->free = at;
    p->stats.points--;
    p->stats.dropped++;
}

/* Makes room: drops the next checkpoint at a prompt's end without any use since the clock hand last
 * passed. `keep` must stay. */
static void make_room(struct kv_paths *p, uint32_t keep)
{
    for (uint32_t step = 0; step < 2 * p->max; step++) {
        uint32_t at = p->hand;
        struct kv_point *b = &p->points[at];
        p->hand = at + 1 < p->ever ? at + 1 : 0;
        if (!b->in_use || b->child != KV_NO_POINT || at == keep)
            continue;
        if (!b->used) {
            drop(p, at);
            return;
        }
        b->used = false;
    }
}

uint32_t kv_points_add(struct kv_paths *p, uint64_t id, uint8_t code, uint32_t parent)
{
    if (p->free == KV_NO_POINT && p->ever == p->max)
        make_room(p, parent);
    uint32_t at = p->free, *place = place_of(p, p->by_id, id);
    if (at != KV_NO_POINT)
        p->free = p->points[at].next;
    else if (p->ever < p->max)
        at = p->ever++;
    else
        return KV_NO_POINT;
    uint32_t before = parent != KV_NO_POINT ? p->points[parent].at : 0;
    struct kv_point *b = &p->points[at];
    *b = (struct kv_point){.id = id,
                           .parent = parent,
                           .child = KV_NO_POINT,
                           .next = KV_NO_POINT,
                           .previous = KV_NO_POINT,
                           .by_id = *place,
                           .at = before + checkpoint_weight(code),
                           .code = code,
                           .used = true,
                           .in_use = true};
    *place = at;
    if (parent != KV_NO_POINT) {
        b->next = p->points[parent].child;
        if (b->next != KV_NO_POINT)
            p->points[b->next].previous = at;
        p->points[parent].child = at;
    }
    p->stats.points++;
    p->stats.joined++;
    return at;
}

bool kv_paths_join(struct kv_paths *p, uint64_t parent, const uint64_t *ids, const uint8_t *codes,
                   unsigned count)
{
    uint32_t before = parent != 0 ? kv_points_find(p, parent) : KV_NO_POINT;
    if (parent != 0 && before == KV_NO_POINT) {
        p->stats.orphans++;
        return false;
    }
    for (unsigned i = 0; i < count; i++) {
        uint32_t at = kv_points_find(p, ids[i]);
        if (at == KV_NO_POINT)
            at = kv_points_add(p, ids[i], codes[i], before);
        if (at == KV_NO_POINT)
            break;
        p->points[at].used = true;
        before = at;
    }
    return true;
}

void kv_paths_listen(struct kv_paths *p, struct kv_anchor_user *user)
{
    user->next = p->listeners;
    user->number = ++p->numbers;
    p->listeners = user;
}

void kv_paths_unlisten(struct kv_paths *p, struct kv_anchor_user *user)
{
    struct kv_anchor_user **from = &p->listeners;
    while (*from != user)
        from = &(*from)->next;
    *from = user->next;
}

/* --- ties ------------------------------------------------------------------------------------ */

/* The checkpoints of a prompt, from the last to the first. */
struct path {
    uint32_t at[KV_PATH_LENGTH_MAX];
    unsigned length;
};

static bool path_of(const struct kv_paths *p, uint64_t end, struct path *out)
{
    out->length = 0;
    for (uint32_t at = kv_points_find(p, end); at != KV_NO_POINT; at = p->points[at].parent) {
        if (out->length == KV_PATH_LENGTH_MAX)
            return false;
        out->at[out->length++] = at;
    }
    return out->length > 0;
}

/* Returns the number of blocks that two prompts have in common. */
static uint32_t common_depth(const struct kv_tree *tree, struct kv_tree_place a,
                             struct kv_tree_place b)
{
    while (a.depth > 0 && b.depth > 0 && a.at != b.at) {
        uint32_t depth = a.depth != b.depth ? (a.depth < b.depth ? a.depth : b.depth) : a.depth - 1;
        if (depth == 0)
            return 0;
        a = kv_tree_up(tree, a, depth);
        b = kv_tree_up(tree, b, depth);
    }
    return a.depth > 0 && b.depth > 0 ? a.depth : 0;
}

/* A known position: in bytes of text, and in tokens as an estimate and a lower bound. */
struct mark {
    double bytes, tokens, surely;
};

static double bytes_at(const struct kv_paths *p, uint32_t at)
{
    return (double)p->points[at].at * CHECKPOINT_BLOCK_BYTES;
}

struct tie {
    struct kv_paths *p;
    uint32_t by;
    const struct kv_tree *tree;
    struct kv_tree_place place; /* block of the last anchor that was set; anchors are set from the
                                 * prompt's end towards the beginning */
    uint32_t block_tokens;
    uint32_t whole; /* number of first blocks shared by all prompts with this last checkpoint */
    int anchored;
};

static void agreed(struct kv_point *b, uint32_t by)
{
    b->by = b->by == by ? by : 0;
}

/* Sets the anchor of a checkpoint that is `tokens` tokens and `depth` blocks from the prompt's
 * beginning. `surely`: a lower bound of `tokens`. */
static void anchor_at(struct tie *t, uint32_t at, double tokens, double surely, uint32_t depth)
{
    struct kv_point *b = &t->p->points[at];
    if (depth > t->place.depth)
        depth = t->place.depth;
    b->tokens = (uint32_t)tokens;
    b->surely = surely < b->tokens ? (uint32_t)surely : b->tokens;
    b->used = true;
    b->untied = false;
    if (depth == 0) {
        kv_points_anchor(t->p, at, 0, 0);
        return;
    }
    t->place = kv_tree_up(t->tree, t->place, depth);
    if (t->place.chain == b->chain)
        agreed(b, t->by);
    if (t->place.chain == 0 || t->place.chain == b->chain)
        return;
    b->by = t->by;
    kv_points_anchor(t->p, at, t->place.chain, depth);
    t->anchored++;
    for (struct kv_anchor_user *u = t->p->listeners; u != NULL; u = u->next)
        u->anchored(u->context, b->id, b->code, b->chain);
}

/* Sets the anchors of the checkpoints path.at[from .. to - 1], which are between the marks `low`
 * and `high`. A token has at least 1 byte. Whatever continues a prompt after the last checkpoint
 * continues the whole prompt. So the last checkpoint counts as present if the whole prompt is. */
static void anchor_between(struct tie *t, const struct path *path, unsigned from, unsigned to,
                           struct mark low, struct mark high)
{
    double slope =
        high.bytes > low.bytes ? (high.tokens - low.tokens) / (high.bytes - low.bytes) : 0;
    for (unsigned i = from; i < to; i++) {
        double bytes = bytes_at(t->p, path->at[i]);
        double tokens = low.tokens + slope * (bytes - low.bytes);
        double surely = high.surely - (high.bytes - bytes);
        anchor_at(t, path->at[i], tokens, surely > low.surely ? surely : low.surely,
                  i == 0 ? t->whole : (uint32_t)tokens / t->block_tokens);
    }
}

uint32_t kv_paths_size(const struct kv_paths *p)
{
    return p->block_tokens;
}

bool kv_paths_is_used(const struct kv_paths *p)
{
    return p->listeners != NULL;
}

void kv_paths_choose(struct kv_paths *p, uint32_t block_tokens)
{
    if (p->block_tokens == block_tokens)
        return;
    for (uint32_t at = 0; at < p->ever; at++)
        p->points[at].chain = 0;
    memset(p->by_chain, 0xff, p->max * sizeof *p->by_chain);
    p->stats.anchors = 0;
    p->block_tokens = block_tokens;
}

int kv_paths_tie(struct kv_paths *p, const struct kv_anchor_user *by, uint64_t end,
                 uint32_t tail_bytes, uint32_t tokens, uint32_t block_tokens,
                 const struct kv_tree *tree, struct kv_tree_place place)
{
    struct path path;
    struct tie t = {p, by->number, tree, place, block_tokens, place.depth, 0};
    CHECK(block_tokens > 0);
    if (p->block_tokens != 0 && p->block_tokens != block_tokens)
        return ERR_RANGE;
    if (!path_of(p, end, &path))
        return ERR_NOT_FOUND;
    p->block_tokens = block_tokens;
    struct mark high = {bytes_at(p, path.at[0]) + tail_bytes, tokens, tokens}, low = {0};
    /* Finds the last checkpoint with an anchor on this prompt's path. Later checkpoints with other
     * anchors are shared with other prompts, which part from this prompt before those anchors. */
    uint32_t base = 0, parted = UINT32_MAX, limit = UINT32_MAX;
    struct kv_tree_place on = place; /* the prompt's block at the depth of the last anchor compared;
                                      * anchors are compared from the end */
    for (; base < path.length; base++) {
        const struct kv_point *b = &p->points[path.at[base]];
        if (b->chain == 0)
            continue;
        if (b->depth <= on.depth) { /* otherwise the anchor is too deep for this path */
            struct kv_tree_place up = kv_tree_up(tree, on, b->depth);
            on = up.depth > 0 ? up : on;
            if (up.depth == 0 || on.chain == b->chain) /* fits, or the tree cannot tell */
                break;
        }
        p->stats.moved++;
        struct kv_tree_place other = kv_tree_find(tree, b->chain);
        if (parted == UINT32_MAX && other.depth > 0) {
            parted = base;
            limit = (common_depth(tree, place, other) + 1) * block_tokens - 1;
            if (base == 0)
                t.whole = limit / block_tokens;
        }
    }
    if (base < path.length) {
        const struct kv_point *b = &p->points[path.at[base]];
        low = (struct mark){bytes_at(p, path.at[base]), b->tokens, b->surely};
    }
    for (unsigned i = base; i < path.length; i++)
        agreed(&p->points[path.at[i]], t.by);
    if (parted == UINT32_MAX || limit < low.tokens || limit >= p->points[path.at[parted]].tokens ||
        limit > tokens) {
        anchor_between(&t, &path, 0, base, low, high);
        return t.anchored;
    }
    struct mark middle = {bytes_at(p, path.at[parted]), limit, low.surely};
    anchor_between(&t, &path, 0, parted, middle, high);
    anchor_between(&t, &path, parted, base, low, middle);
    return t.anchored;
}

void kv_paths_disown(struct kv_paths *p, const struct kv_anchor_user *by)
{
    for (uint32_t at = 0; at < p->ever; at++) {
        if (p->points[at].chain != 0 && p->points[at].by == by->number)
            anchor_drop(p, at);
    }
}

bool kv_paths_fits(const struct kv_paths *p, uint64_t end, const struct kv_tree *tree,
                   struct kv_tree_place place)
{
    uint32_t certain = 0; /* a lower bound of this text's tokens, found on the way from the end */
    for (uint32_t at = kv_points_find(p, end); at != KV_NO_POINT; at = p->points[at].parent) {
        const struct kv_point *b = &p->points[at];
        certain = b->chain != 0 && b->surely > certain ? b->surely : certain;
        if (b->chain == 0 || b->depth > place.depth || b->depth * p->block_tokens > certain)
            continue;
        struct kv_tree_place up = kv_tree_up(tree, place, b->depth);
        return up.depth == 0 || up.chain == b->chain;
    }
    return true;
}

uint64_t kv_paths_anchored(const struct kv_paths *p, uint64_t end)
{
    uint32_t at = kv_points_find(p, end);
    while (at != KV_NO_POINT && p->points[at].chain == 0)
        at = p->points[at].parent;
    return at != KV_NO_POINT ? p->points[at].id : 0;
}

enum kv_want kv_paths_want(const struct kv_paths *p, const uint64_t *ids, unsigned count)
{
    for (unsigned i = count; i-- > 0;) {
        uint32_t at = kv_points_find(p, ids[i]);
        if (at != KV_NO_POINT && p->points[at].untied)
            return KV_WANT_SURE;
        if (at != KV_NO_POINT && p->points[at].chain != 0)
            return i + 1 == count ? KV_WANT_NONE : KV_WANT_MAYBE;
    }
    return KV_WANT_MAYBE;
}

void kv_paths_untied(struct kv_paths *p, uint64_t end)
{
    uint32_t at = kv_points_find(p, end);
    if (at != KV_NO_POINT)
        p->points[at].untied = true;
}

struct kv_tree_place kv_paths_known(const struct kv_paths *p, uint64_t end,
                                    const struct kv_tree *tree)
{
    struct kv_tree_place place = {.depth = 0};
    uint32_t certain = 0;
    for (uint32_t at = kv_points_find(p, end); at != KV_NO_POINT && place.depth == 0;
         at = p->points[at].parent) {
        const struct kv_point *b = &p->points[at];
        certain = b->chain != 0 && b->surely > certain ? b->surely : certain;
        if (b->chain != 0 && b->depth * p->block_tokens <= certain)
            place = kv_tree_find(tree, b->chain);
    }
    return place;
}

/* --- questions ------------------------------------------------------------------------------- */

void kv_paths_at(const struct kv_paths *p, uint64_t chain, const struct kv_anchor_user *user)
{
    for (uint32_t at = *place_of(p, p->by_chain, chain); at != KV_NO_POINT;
         at = p->points[at].by_chain) {
        const struct kv_point *b = &p->points[at];
        if (b->chain == chain)
            user->anchored(user->context, b->id, b->code, chain);
    }
}

static void at_next(const struct kv_paths *p, struct kv_paths_later *l,
                    const struct kv_anchor_user *user)
{
    l->count--;
    kv_paths_at(p, l->chains[l->first++ % KV_AHEAD], user);
}

void kv_paths_at_later(const struct kv_paths *p, struct kv_paths_later *l, uint64_t chain,
                       const struct kv_anchor_user *user)
{
    __builtin_prefetch(place_of(p, p->by_chain, chain));
    if (l->count == KV_AHEAD)
        at_next(p, l, user);
    l->chains[(l->first + l->count++) % KV_AHEAD] = chain;
}

void kv_paths_at_last(const struct kv_paths *p, struct kv_paths_later *l,
                      const struct kv_anchor_user *user)
{
    while (l->count > 0)
        at_next(p, l, user);
}

void kv_paths_walk(const struct kv_paths *p, uint32_t *cursor, uint32_t count,
                   const struct kv_anchor_user *user)
{
    for (uint32_t i = 0; i < count && i < p->ever; i++) {
        *cursor = *cursor < p->ever ? *cursor : 0;
        const struct kv_point *b = &p->points[(*cursor)++];
        if (b->in_use && b->chain != 0)
            user->anchored(user->context, b->id, b->code, b->chain);
    }
}

struct kv_paths_stats kv_paths_stats(const struct kv_paths *p)
{
    struct kv_paths_stats stats = p->stats;
    stats.places = p->ever;
    return stats;
}

/* --- life ------------------------------------------------------------------------------------ */

int kv_paths_create(struct kv_paths **out, uint32_t points_max)
{
    struct kv_paths *p = calloc(1, sizeof *p);
    CHECK(points_max > KV_PATH_LENGTH_MAX && points_max < KV_NO_POINT);
    if (p == NULL || (p->by_id = malloc(points_max * sizeof *p->by_id)) == NULL ||
        (p->by_chain = malloc(points_max * sizeof *p->by_chain)) == NULL ||
        (p->points = calloc(points_max, sizeof *p->points)) == NULL) {
        kv_paths_destroy(p);
        return ERR_NOMEM;
    }
    memset(p->by_id, 0xff, points_max * sizeof *p->by_id);
    memset(p->by_chain, 0xff, points_max * sizeof *p->by_chain);
    p->max = points_max;
    p->free = KV_NO_POINT;
    *out = p;
    return ERR_OK;
}

void kv_paths_destroy(struct kv_paths *p)
{
    if (p == NULL)
        return;
    free(p->by_id);
    free(p->by_chain);
    free(p->points);
    free(p);
}

void kv_paths_check(const struct kv_paths *p)
{
    uint32_t points = 0, anchors = 0;
    for (uint32_t at = 0; at < p->ever; at++) {
        const struct kv_point *b = &p->points[at];
        if (!b->in_use)
            continue;
        points++;
        anchors += b->chain != 0;
        CHECK(kv_points_find(p, b->id) == at);
        CHECK(b->child == KV_NO_POINT || p->points[b->child].parent == at);
        CHECK(b->next == KV_NO_POINT || p->points[b->next].previous == at);
        CHECK(b->surely <= b->tokens);
        if (b->parent == KV_NO_POINT)
            continue;
        CHECK(p->points[b->parent].in_use);
        CHECK(b->at == p->points[b->parent].at + checkpoint_weight(b->code));
    }
    CHECK(points == p->stats.points && anchors == p->stats.anchors);
}
