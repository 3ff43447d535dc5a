#include "node/kv/kept.h"

#include "base/err.h"

void kv_kept_add(struct kv_kept *k, const struct kv_kept_feed *feed, struct slice reader)
{
    if (k->count == KV_KEPT_MAX)
        return;
    struct kv_kept_feed *f = &k->feeds[k->count];
    *f = *feed;
    f->reader = (struct buf){0};
    if (buf_append_slice(&f->reader, reader) == ERR_OK)
        k->count++;
    else
        buf_free(&f->reader);
}

struct kv_kept_feed *kv_kept_find(struct kv_kept *k, uint32_t rkey, uint64_t address)
{
    for (unsigned i = 0; i < k->count; i++) {
        struct kv_kept_feed *f = &k->feeds[i];
        if (f->reader.len > 0 && f->rkey == rkey && f->address == address)
            return f;
    }
    return NULL;
}

void kv_kept_forget(struct kv_kept *k)
{
    for (unsigned i = 0; i < k->count; i++)
        buf_free(&k->feeds[i].reader);
    k->count = 0;
}

void kv_kept_tick(struct kv_kept *k, uint64_t now_ms)
{
    if (k->until_ms == 0)
        k->until_ms = now_ms + KV_KEPT_MS;
    if (k->count > 0 && now_ms >= k->until_ms)
        kv_kept_forget(k);
}
