#include "http/prompt.h"

#include <string.h>

#include "base/check.h"
#include "base/checkpoint.h"
#include "http/chunk_cut.h"
#include "http/content.h"

/* Told apart from text by what they mix into the state. */
enum {
    ATOM_TAG = 0x61746f6d,
    SEPARATOR_TAG = 0x73657061,
    IDS_TAG = 0x696473,
    CHUNK_TAG = 0x63686e
};

static const uint16_t points_max[HTTP_PROMPT_SEGMENTS] = {
    [HTTP_PROMPT_TOOLS] = HTTP_PROMPT_POINTS_SHORT,
    [HTTP_PROMPT_SYSTEM] = HTTP_PROMPT_POINTS_SHORT,
    [HTTP_PROMPT_TEXT] = HTTP_PROMPT_POINTS_TEXT,
};
_Static_assert(HTTP_PROMPT_POINTS_TEXT + 2 * HTTP_PROMPT_POINTS_SHORT + 2 <= CHAIN_POINTS_MAX,
               "every segment has room for its points, and two for an end point");
_Static_assert((unsigned)HTTP_PROMPT_POINTS_TEXT <= CHECKPOINT_MAX, "so many checkpoints exist");

_Static_assert((unsigned)HTTP_CHUNK_BYTES_MAX <= HTTP_PROMPT_STAGE, "a full stage has a cut");

static const struct http_prompt_mark start_mark = {.bytes = 0};

void http_prompt_init(struct http_prompt *p, const struct hash_secret *secret)
{
    p->secret = secret;
    memset(p->parts, 0, sizeof p->parts);
    p->open = -1;
    p->by_chunks = false;
    p->chain.bytes = 0;
    p->chain.length = 0;
    p->chain.token_ids = p->chain.chunks = false;
    p->chain.content = (struct chain_content){0};
}

void http_prompt_by_chunks(struct http_prompt *p)
{
    p->by_chunks = p->chain.chunks = true;
}

/* Checkpoint in bytes from the start of the segment. */
static uint64_t next_checkpoint(const struct http_prompt *p)
{
    return (uint64_t)checkpoint_blocks(p->now.points) * CHECKPOINT_BLOCK_BYTES;
}

static void add_point(struct http_prompt *p, uint64_t id, uint32_t blocks, uint8_t code)
{
    CHECK(p->chain.length < CHAIN_POINTS_MAX);
    struct chain_point *point = &p->chain.points[p->chain.length++];
    point->id = id;
    point->blocks = blocks;
    point->code = code;
    point->media = (uint16_t)chain_media(&p->now.content);
}

/* Reads the state at every checkpoint up to the position. */
static void read_points(struct http_prompt *p)
{
    while (p->now.points < points_max[p->open] && next_checkpoint(p) <= p->now.bytes) {
        unsigned ordinal = p->now.points++;
        add_point(p, p->now.state.low, checkpoint_blocks(ordinal), checkpoint_code(ordinal));
    }
}

/* The largest code whose weight is not above `blocks`, which is at least 1. */
static uint8_t code_within(uint64_t blocks)
{
    uint8_t code = 0;
    while (code < CHECKPOINT_CODE_MAX && checkpoint_weight((uint8_t)(code + 1)) <= blocks)
        code++;
    return code;
}

/* The code whose weight is nearest. */
static uint8_t code_near(uint64_t blocks)
{
    uint8_t code = code_within(blocks);
    uint64_t less = blocks - checkpoint_weight(code);
    bool next =
        code < CHECKPOINT_CODE_MAX && checkpoint_weight((uint8_t)(code + 1)) - blocks < less;
    return (uint8_t)(code + next);
}

/* The chunk that ends here. */
static void add_chunk(struct http_prompt *p, uint64_t id, uint64_t bytes)
{
    uint64_t blocks = (bytes + CHECKPOINT_BLOCK_BYTES / 2) / CHECKPOINT_BLOCK_BYTES;
    if (blocks == 0 || p->now.points == points_max[p->open])
        return;
    uint32_t before = p->now.points == 0 ? 0 : p->chain.points[p->chain.length - 1].blocks;
    uint8_t code = code_near(blocks);
    p->now.points++;
    add_point(p, id, before + checkpoint_weight(code), code);
}

/* Bytes that are hashed in one go: up to the next checkpoint, or a stage full; or a chunk. More
 * than there are if it has no end yet. */
static uint32_t unit_bytes(const struct http_prompt *p, uint32_t from)
{
    if (p->by_chunks) {
        size_t cut = http_chunk_cut(p->stage + sizeof p->now.state + from, p->used - from);
        return cut > 0 ? (uint32_t)cut : UINT32_MAX;
    }
    if (p->now.points == points_max[p->open])
        return HTTP_PROMPT_STAGE;
    uint64_t left = next_checkpoint(p) - p->now.bytes;
    return left < HTTP_PROMPT_STAGE ? (uint32_t)left : HTTP_PROMPT_STAGE;
}

/* Hashes `len` bytes of the stage from `from` on. The state is put before them, over bytes that
 * were hashed already. */
static void hash_unit(struct http_prompt *p, uint32_t from, uint32_t len)
{
    if (p->by_chunks)
        p->now.state = start_mark.state;
    memcpy(p->stage + from, &p->now.state, sizeof p->now.state);
    p->now.state = hash128(p->secret, p->stage + from, sizeof p->now.state + len);
    p->now.bytes += len;
    if (p->by_chunks)
        add_chunk(p, p->now.state.low, len);
    else
        read_points(p);
}

/* Hashes the whole units in the stage and moves the rest to its front. */
static void drain(struct http_prompt *p)
{
    uint32_t from = 0;
    uint32_t unit;
    while ((unit = unit_bytes(p, from)) <= p->used - from) {
        hash_unit(p, from, unit);
        from += unit;
    }
    p->used -= from;
    memmove(p->stage + sizeof p->now.state, p->stage + sizeof p->now.state + from, p->used);
}

/* Hashes all of the stage. */
static void flush(struct http_prompt *p)
{
    drain(p);
    if (p->used > 0)
        hash_unit(p, 0, p->used);
    p->used = 0;
}

void http_prompt_open(struct http_prompt *p, enum http_prompt_segment segment)
{
    CHECK(p->open < 0);
    struct http_prompt_piece *part = &p->parts[segment];
    if (part->count > 0) {
        uint16_t behind = (uint16_t)(part->first + part->count);
        memmove(&p->chain.points[part->first], &p->chain.points[behind],
                (size_t)(p->chain.length - behind) * sizeof p->chain.points[0]);
        p->chain.length = (uint16_t)(p->chain.length - part->count);
        for (int i = 0; i < HTTP_PROMPT_SEGMENTS; i++)
            if (p->parts[i].first >= behind)
                p->parts[i].first = (uint16_t)(p->parts[i].first - part->count);
    }
    p->used = 0;
    *part = (struct http_prompt_piece){.first = p->chain.length};
    p->open = (int8_t)segment;
    p->now = start_mark;
}

void http_prompt_close(struct http_prompt *p)
{
    CHECK(p->open >= 0);
    flush(p);
    struct http_prompt_piece *part = &p->parts[p->open];
    /* Whether another segment follows is known at the end only: http_prompt_finish() drops it. */
    uint32_t last = p->now.points == 0 ? 0 : checkpoint_blocks(p->now.points - 1u);
    uint64_t beyond = p->now.bytes / CHECKPOINT_BLOCK_BYTES - last;
    if (beyond > 0 && p->open != HTTP_PROMPT_TEXT && !p->by_chunks) {
        uint8_t code = code_within(beyond);
        add_point(p, p->now.state.low, last + checkpoint_weight(code), code);
        part->has_end_point = true;
    }
    part->end = p->now;
    part->count = (uint16_t)(p->chain.length - part->first);
    p->open = -1;
}

void http_prompt_commit(struct http_prompt *p, size_t len)
{
    CHECK(len <= http_prompt_room(p));
    if (!p->now.has_ids)
        http_content_count(&p->now.content, http_prompt_at(p), len);
    p->used += (uint32_t)len;
    p->now.has_other |= len > 0;
    if (p->used == HTTP_PROMPT_STAGE)
        drain(p);
}

void http_prompt_token_id(struct http_prompt *p, uint32_t id)
{
    const unsigned char bytes[sizeof id] = {(unsigned char)id, (unsigned char)(id >> 8),
                                            (unsigned char)(id >> 16), (unsigned char)(id >> 24)};
    p->now.has_ids = true;
    memcpy(http_prompt_at(p), bytes, sizeof bytes); /* may reach into the slack */
    p->used += (uint32_t)sizeof bytes;
    if (p->used >= HTTP_PROMPT_STAGE)
        drain(p);
}

static void absorb(struct http_prompt *p, uint64_t tag, struct hash128 digest, uint64_t weight)
{
    flush(p);
    const uint64_t words[] = {
        p->now.state.low, p->now.state.high, tag, digest.low, digest.high, weight,
    };
    p->now.bytes += weight;
    p->now.has_other = true;
    if (p->by_chunks) {
        add_chunk(p, hash64(p->secret, &words[2], sizeof words - 2 * sizeof words[0]), weight);
        return;
    }
    p->now.state = hash128(p->secret, words, sizeof words);
    read_points(p);
}

void http_prompt_atom(struct http_prompt *p, struct hash128 digest, uint64_t weight)
{
    absorb(p, ATOM_TAG, digest, weight);
}

void http_prompt_media(struct http_prompt *p, const struct chain_content *media)
{
    flush(p);
    http_content_add(&p->now.content, media);
}

void http_prompt_separate(struct http_prompt *p)
{
    bool has_other = p->now.has_other; /* lists of token ids stay token ids */
    absorb(p, SEPARATOR_TAG, (struct hash128){.low = 0}, 0);
    p->now.has_other = has_other;
}

struct http_prompt_mark http_prompt_mark(struct http_prompt *p)
{
    flush(p);
    return p->now;
}

void http_prompt_rewind(struct http_prompt *p, const struct http_prompt_mark *mark)
{
    p->chain.length = (uint16_t)(p->chain.length - (p->now.points - mark->points));
    p->now = *mark;
    p->used = 0;
}

void http_prompt_tint(struct http_prompt *p, const struct http_prompt_mark *mark, uint64_t salt)
{
    flush(p);
    for (unsigned i = mark->points; i < p->now.points && !p->by_chunks; i++) {
        struct chain_point *point = &p->chain.points[p->parts[p->open].first + i];
        point->id = hash_mix(point->id ^ salt);
    }
}

/* --- the end --------------------------------------------------------------- */

static void reverse(struct chain_point *points, unsigned from, unsigned to)
{
    while (from + 1 < to) {
        struct chain_point point = points[from];
        points[from++] = points[--to];
        points[to] = point;
    }
}

/* Brings the points, which stand in the order of arrival, into the order of segments. */
static void order_points(struct http_prompt *p)
{
    unsigned at = 0;
    for (int i = 0; i < HTTP_PROMPT_SEGMENTS; i++) {
        struct http_prompt_piece *part = &p->parts[i];
        if (part->count == 0)
            continue;
        if (part->first != at) { /* rotate it to the front of those that are left */
            reverse(p->chain.points, at, part->first);
            reverse(p->chain.points, part->first, part->first + part->count);
            reverse(p->chain.points, at, part->first + part->count);
            for (int k = i + 1; k < HTTP_PROMPT_SEGMENTS; k++)
                if (p->parts[k].first < part->first)
                    p->parts[k].first = (uint16_t)(p->parts[k].first + part->count);
            part->first = (uint16_t)at;
        }
        at += part->count;
    }
}

static uint64_t prefix_id(const struct http_prompt *p, const struct chain_point *point,
                          const struct hash128 *before, uint64_t form)
{
    const uint64_t words[] = {point->id, before->low, before->high, form, point->blocks};
    return hash64(p->secret, words, sizeof words);
}

/* The same in every segment, behind whatever stands there. */
static uint64_t chunk_id(const struct http_prompt *p, uint64_t id, const struct hash128 *space)
{
    const uint64_t words[] = {id, space->low, space->high, CHUNK_TAG};
    return hash64(p->secret, words, sizeof words);
}

void http_prompt_finish(struct http_prompt *p, struct hash128 namespace_digest)
{
    CHECK(p->open < 0);
    order_points(p);
    struct hash128 before = namespace_digest;
    uint32_t blocks_before = 0;
    unsigned at = 0;
    int last = -1;
    for (int i = 0; i < HTTP_PROMPT_SEGMENTS; i++) {
        const struct http_prompt_piece *part = &p->parts[i];
        if (part->end.bytes == 0)
            continue;
        last = i;
        uint64_t form = (uint64_t)i << 32 | (part->end.has_ids ? IDS_TAG : 0);
        for (unsigned end = at + part->count; at < end; at++) {
            struct chain_point *point = &p->chain.points[at];
            point->id = p->by_chunks ? chunk_id(p, point->id, &namespace_digest)
                                     : prefix_id(p, point, &before, form);
            point->blocks += blocks_before;
            point->media = (uint16_t)(point->media + chain_media(&p->chain.content));
        }
        if (at > 0)
            blocks_before = p->chain.points[at - 1].blocks;
        const uint64_t words[] = {
            before.low,           before.high,     part->end.state.low,
            part->end.state.high, part->end.bytes, form,
        };
        before = hash128(p->secret, words, sizeof words);
        p->chain.bytes += part->end.bytes;
        http_content_add(&p->chain.content, &part->end.content);
    }
    CHECK(at == p->chain.length);
    if (last >= 0 && p->parts[last].has_end_point)
        p->chain.length--;
    p->chain.token_ids = last == HTTP_PROMPT_TEXT && p->parts[last].end.has_ids &&
                         !p->parts[last].end.has_other &&
                         p->parts[last].end.bytes == p->chain.bytes;
}
