#include "node/kv/sizes.h"

int kv_sizes_open(struct kv_sizes *s, uint32_t points_max)
{
    return s->of[0] == NULL ? kv_paths_create(&s->of[0], points_max) : ERR_OK;
}

void kv_sizes_close(struct kv_sizes *s)
{
    for (unsigned i = 0; i < KV_SIZES_MAX; i++)
        kv_paths_destroy(s->of[i]);
    *s = (struct kv_sizes){0};
}

bool kv_sizes_is_open(const struct kv_sizes *s)
{
    return s->of[0] != NULL;
}

/* Finds the table with this size, or a table without a size yet. If there is none, copies the first
 * table, or takes over a table without readers. */
struct kv_paths *kv_sizes_find(struct kv_sizes *s, uint32_t block_tokens, uint64_t now_ms)
{
    struct kv_paths *unused = NULL;
    for (unsigned i = 0; i < KV_SIZES_MAX && s->of[0] != NULL; i++) {
        if (s->of[i] == NULL && kv_paths_copy(&s->of[i], s->of[0]) != ERR_OK)
            break;
        uint32_t size = kv_paths_size(s->of[i]);
        if (size == 0)
            kv_paths_choose(s->of[i], block_tokens);
        if (size == 0 || size == block_tokens)
            return s->of[i];
        if (!kv_paths_is_used(s->of[i]))
            unused = s->of[i];
    }
    if (unused == NULL || now_ms < s->take_ms)
        return NULL;
    s->take_ms = now_ms + KV_SIZE_TAKE_MS;
    kv_paths_choose(unused, block_tokens);
    return unused;
}

void kv_sizes_join(struct kv_sizes *s, uint64_t parent, const uint64_t *ids, const uint8_t *codes,
                   unsigned count)
{
    for (unsigned i = 0; i < KV_SIZES_MAX && s->of[i] != NULL; i++)
        (void)kv_paths_join(s->of[i], parent, ids, codes, count);
}

/* Returns KV_WANT_SURE if any table does, and else KV_WANT_NONE if a table has an anchor at the
 * prompt's end: an engine with the table's block size has answered the prompt. Otherwise
 * KV_WANT_MAYBE. */
enum kv_want kv_sizes_want(const struct kv_sizes *s, const uint64_t *ids, unsigned count)
{
    enum kv_want all = KV_WANT_MAYBE;
    for (unsigned i = 0; i < KV_SIZES_MAX && s->of[i] != NULL; i++) {
        enum kv_want want = kv_paths_want(s->of[i], ids, count);
        if (want == KV_WANT_SURE)
            return want;
        all = want == KV_WANT_NONE ? want : all;
    }
    return all;
}

struct kv_paths_stats kv_sizes_stats(const struct kv_sizes *s)
{
    struct kv_paths_stats all = {0};
    if (s->of[0] != NULL)
        all = kv_paths_stats(s->of[0]);
    for (unsigned i = 1; i < KV_SIZES_MAX && s->of[i] != NULL; i++) {
        struct kv_paths_stats one = kv_paths_stats(s->of[i]);
        all.points += one.points;
        all.anchors += one.anchors;
        all.places += one.places;
        all.dropped += one.dropped;
        all.moved += one.moved;
    }
    return all;
}

int kv_sizes_keep(const struct kv_sizes *s, unsigned *size, uint32_t *cursor, struct buf *out)
{
    int more = 0;
    while (more == 0 && *size < KV_SIZES_MAX && s->of[*size] != NULL) {
        more = kv_paths_keep(s->of[*size], cursor, out);
        if (more == 0) {
            ++*size;
            *cursor = 0;
        }
    }
    return more;
}

bool kv_sizes_recall(struct kv_sizes *s, struct slice kept)
{
    uint32_t size = kv_paths_kept_size(kept);
    struct kv_paths *p = size > 0 ? kv_sizes_find(s, size, 0) : s->of[0];
    return p != NULL && kv_paths_recall(p, kept);
}
