#include <string.h>

#include "base/check.h"
#include "base/checkpoint.h"
#include "base/wire.h"
#include "node/kv/paths_internal.h"

int kv_paths_copy(struct kv_paths **out, const struct kv_paths *from)
{
    struct kv_paths *p;
    int err = kv_paths_create(&p, from->max);
    if (err != ERR_OK)
        return err;
    memcpy(p->points, from->points, from->ever * sizeof *p->points);
    memcpy(p->by_id, from->by_id, from->max * sizeof *p->by_id);
    for (uint32_t at = 0; at < from->ever; at++) {
        p->points[at].chain = 0;
        p->points[at].untied = false;
    }
    p->ever = from->ever;
    p->free = from->free;
    p->hand = from->hand;
    p->stats.points = from->stats.points;
    *out = p;
    return ERR_OK;
}

enum { KEPT_POINTS = 4096, KEPT_POINT_BYTES = 6 + 6 + 1 + 8 + 4 + 4 + 4 };

int kv_paths_keep(const struct kv_paths *p, uint32_t *cursor, struct buf *out)
{
    if (*cursor >= p->ever)
        return 0;
    size_t room = 4 + (size_t)KEPT_POINTS * KEPT_POINT_BYTES;
    int err = buf_reserve(out, room);
    if (err != ERR_OK)
        return err;
    struct wire_writer w = wire_writer_of(out->at + out->len, room);
    wire_write_u32(&w, p->block_tokens);
    for (uint32_t i = 0; i < KEPT_POINTS && *cursor < p->ever; i++) {
        const struct kv_point *b = &p->points[(*cursor)++];
        if (!b->in_use)
            continue;
        wire_write_u48(&w, b->id);
        wire_write_u48(&w, b->parent != KV_NO_POINT ? p->points[b->parent].id : 0);
        wire_write_u8(&w, b->code);
        wire_write_u64(&w, b->chain);
        wire_write_u32(&w, b->depth);
        wire_write_u32(&w, b->tokens);
        wire_write_u32(&w, b->surely);
    }
    CHECK(!w.bad);
    out->len += wire_written(&w);
    return 1;
}

static bool point_recall(struct kv_paths *p, struct wire_reader *r, uint32_t block_tokens)
{
    uint64_t id = wire_read_u48(r), parent = wire_read_u48(r);
    uint8_t code = wire_read_u8(r);
    uint64_t chain = wire_read_u64(r);
    uint32_t depth = wire_read_u32(r), tokens = wire_read_u32(r), surely = wire_read_u32(r);
    uint32_t before = parent != 0 ? kv_points_find(p, parent) : KV_NO_POINT,
             at = kv_points_find(p, id);
    bool is_new = at == KV_NO_POINT;
    if (r->bad || code > CHECKPOINT_CODE_MAX || id == 0 || (parent != 0 && before == KV_NO_POINT) ||
        (is_new && p->stats.points == p->max))
        return false;
    if (is_new)
        at = kv_points_add(p, id, code, before);
    if (at == KV_NO_POINT)
        return false;
    if (chain != 0 && p->points[at].chain == 0 && block_tokens > 0 &&
        block_tokens == p->block_tokens && surely <= tokens) {
        p->points[at].tokens = tokens;
        p->points[at].surely = surely;
        kv_points_anchor(p, at, chain, depth);
    }
    return is_new;
}

uint32_t kv_paths_kept_size(struct slice kept)
{
    struct wire_reader r = wire_reader_of(kept.at, kept.len);
    uint32_t block_tokens = wire_read_u32(&r);
    return r.bad ? 0 : block_tokens;
}

bool kv_paths_recall(struct kv_paths *p, struct slice kept)
{
    struct wire_reader r = wire_reader_of(kept.at, kept.len);
    uint32_t block_tokens = wire_read_u32(&r);
    bool any = false;
    if (p->block_tokens == 0)
        p->block_tokens = block_tokens;
    while (wire_left(&r) > 0)
        any |= point_recall(p, &r, block_tokens);
    return any;
}
