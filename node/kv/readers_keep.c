/* Saves the feeds' state for a restart of the router, and loads it afterwards. */
#include "base/wire.h"
#include "node/kv/readers_internal.h"

enum { KEPT_FEED_HEAD = 4 + 4 + 8 };

int kv_readers_keep_paths(const struct kv_readers *rs, struct kv_keep *k, struct buf *out)
{
    return kv_sizes_keep(&rs->sizes, &k->size, &k->point, out);
}

static int feed_keep(const struct kv_readers_feed *f, struct buf *out)
{
    uint8_t head[KEPT_FEED_HEAD];
    struct wire_writer w = wire_writer_of(head, sizeof head);
    size_t before = out->len;
    wire_write_u32(&w, f->rkey);
    wire_write_u32(&w, f->blocks);
    wire_write_u64(&w, f->address);
    int err = buf_append(out, head, sizeof head);
    int more = err == ERR_OK ? kv_reader_keep(f->reader, out) : err;
    if (more != 1)
        out->len = before;
    return more;
}

int kv_readers_keep_feed(const struct kv_readers *rs, struct kv_keep *k, struct buf *out)
{
    int more = 0;
    while (more == 0 && k->feed < KV_READERS_MAX) {
        const struct kv_readers_feed *f = &rs->feeds[k->feed++];
        more = f->reader != NULL ? feed_keep(f, out) : 0;
    }
    return more;
}

bool kv_readers_recall_paths(struct kv_readers *rs, struct slice kept)
{
    return kv_sizes_open(&rs->sizes, KV_POINTS_MAX) == ERR_OK && kv_sizes_recall(&rs->sizes, kept);
}

void kv_readers_recall_feed(struct kv_readers *rs, struct slice kept)
{
    struct wire_reader r = wire_reader_of(kept.at, kept.len);
    struct kv_kept_feed k = {.rkey = wire_read_u32(&r)};
    k.blocks = wire_read_u32(&r);
    k.address = wire_read_u64(&r);
    if (!r.bad && k.blocks >= KV_BLOCKS_MIN && k.blocks <= KV_BLOCKS_MAX)
        kv_kept_add(&rs->kept, &k, slice_skip(kept, KEPT_FEED_HEAD));
}
