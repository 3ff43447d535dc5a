#include "node/kv/told.h"

#include "base/check.h"
#include "base/checkpoint.h"

enum { POINT_BYTES = 7, WELL = 1, ASKED = 2, FRONTS = 4 };
static const uint64_t ms_max = UINT64_MAX >> 1; /* largest time, and largest duration */

unsigned kv_path_write(const struct kv_path *path, unsigned from, struct wire_writer *w)
{
    enum { HEAD = 6 + 2 };
    _Static_assert(KV_PATH_POINTS_MAX < 1 << 14, "a count has two bytes");
    CHECK(from <= path->count && path->count <= KV_PATH_POINTS_MAX);
    size_t room = wire_room(w) > HEAD ? (wire_room(w) - HEAD) / POINT_BYTES : 0;
    unsigned count = path->count - from < room ? path->count - from : (unsigned)room;
    if (count == 0)
        return 0;
    wire_write_u48(w, from > 0 ? path->ids[from - 1] : path->parent);
    wire_write_varint(w, count);
    for (unsigned i = from; i < from + count; i++) {
        wire_write_u48(w, path->ids[i]);
        wire_write_u8(w, path->codes[i]);
    }
    return count;
}

int kv_path_read(struct slice body, struct kv_path *out)
{
    struct wire_reader r = wire_reader_of(body.at, body.len);
    out->parent = wire_read_u48(&r);
    out->count = (unsigned)wire_read_varint_max(&r, KV_PATH_POINTS_MAX);
    for (unsigned i = 0; i < out->count; i++) {
        out->ids[i] = wire_read_u48(&r);
        out->codes[i] = wire_read_u8(&r);
        r.bad = r.bad || out->codes[i] > CHECKPOINT_CODE_MAX;
    }
    return r.bad || out->count == 0 ? ERR_SYNTAX : ERR_OK;
}

static void write_tokens(struct wire_writer *w, uint32_t tokens)
{
    wire_write_varint(w, tokens == KV_UNTOLD ? 0 : (uint64_t)tokens + 1);
}

static uint32_t read_tokens(struct wire_reader *r)
{
    uint64_t value = wire_read_varint_max(r, KV_UNTOLD);
    return value == 0 ? KV_UNTOLD : (uint32_t)value - 1;
}

static void write_fronts(struct wire_writer *w, const struct kv_fronts *fronts)
{
    wire_write_varint(w, fronts->count);
    for (unsigned i = 0; i < fronts->count; i++) {
        wire_write_varint(w, fronts->at[i].blocks);
        wire_write_u64(w, fronts->at[i].chain);
        wire_write_u64(w, fronts->at[i].digest);
    }
}

static void read_fronts(struct wire_reader *r, struct kv_fronts *out)
{
    out->count = (unsigned)wire_read_varint_max(r, KV_FRONTS_MAX);
    for (unsigned i = 0; i < out->count; i++) {
        out->at[i].blocks = (uint32_t)wire_read_varint_max(r, KV_FRONT_BLOCKS_MAX - 1);
        out->at[i].chain = wire_read_u64(r);
        out->at[i].digest = wire_read_u64(r);
    }
}

void kv_told_write(const struct kv_told *told, uint32_t rkey, struct wire_writer *w)
{
    CHECK(told->ended_ms >= told->sent_ms &&
          (told->first_ms == 0 || told->first_ms >= told->sent_ms));
    wire_write_u32(w, rkey);
    wire_write_u48(w, told->end);
    wire_write_varint(w, told->tail_bytes);
    wire_write_u64(w, told->sent_ms);
    wire_write_varint(w, told->first_ms == 0 ? 0 : told->first_ms - told->sent_ms + 1);
    wire_write_varint(w, told->ended_ms - told->sent_ms);
    write_tokens(w, told->prompt_tokens);
    write_tokens(w, told->cached_tokens);
    write_tokens(w, told->output_tokens);
    bool has_fronts = told->asked_block > 0 && told->fronts.count > 0;
    wire_write_u8(w, (told->well ? WELL : 0) | (told->asked_block > 0 ? ASKED : 0) |
                         (has_fronts ? FRONTS : 0));
    if (told->asked_block > 0) {
        wire_write_varint(w, told->asked_block);
        wire_write_u64(w, told->asked_chain);
    }
    if (has_fronts)
        write_fronts(w, &told->fronts);
}

int kv_told_read(struct slice body, uint32_t *rkey, struct kv_told *out)
{
    struct wire_reader r = wire_reader_of(body.at, body.len);
    *rkey = wire_read_u32(&r);
    *out = (struct kv_told){.end = wire_read_u48(&r)};
    out->tail_bytes = (uint32_t)wire_read_varint_max(&r, UINT32_MAX);
    out->sent_ms = wire_read_u64(&r);
    uint64_t first = wire_read_varint_max(&r, ms_max);
    uint64_t took = wire_read_varint_max(&r, ms_max);
    out->first_ms = first == 0 ? 0 : out->sent_ms + first - 1;
    out->ended_ms = out->sent_ms + took;
    out->prompt_tokens = read_tokens(&r);
    out->cached_tokens = read_tokens(&r);
    out->output_tokens = read_tokens(&r);
    uint8_t flags = wire_read_u8(&r);
    out->well = (flags & WELL) != 0;
    if ((flags & ASKED) != 0) {
        out->asked_block = (uint32_t)wire_read_varint_max(&r, UINT32_MAX);
        out->asked_chain = wire_read_u64(&r);
    }
    if ((flags & FRONTS) != 0)
        read_fronts(&r, &out->fronts);
    return r.bad || out->sent_ms > ms_max ? ERR_SYNTAX : ERR_OK;
}
