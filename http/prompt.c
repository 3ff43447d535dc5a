#include "http/prompt.h"

#include <string.h>

#include "base/check.h"
#include "base/checkpoint.h"
#include "http/chunk_cut.h"
#include "http/content.h"
#include "http/prompt_internal.h"

/* Tags to distinguish atoms and separators from text in the hash state. */
enum {
    ATOM_TAG = 0x61746f6d,
    SEPARATOR_TAG = 0x73657061,
};

static const uint16_t points_max[HTTP_PROMPT_SEGMENTS] = {
    [HTTP_PROMPT_TOOLS] = HTTP_PROMPT_POINTS_SHORT,
    [HTTP_PROMPT_HEADER] = HTTP_PROMPT_POINTS_HEADER,
    [HTTP_PROMPT_SYSTEM_LINE] = HTTP_PROMPT_POINTS_LINE,
    [HTTP_PROMPT_SYSTEM_BLOCK] = HTTP_PROMPT_POINTS_BLOCK,
    [HTTP_PROMPT_SYSTEM] = HTTP_PROMPT_POINTS_SHORT,
    [HTTP_PROMPT_TEXT_LINE] = HTTP_PROMPT_POINTS_LINE,
    [HTTP_PROMPT_TEXT_BLOCK] = HTTP_PROMPT_POINTS_BLOCK,
    [HTTP_PROMPT_TEXT] = HTTP_PROMPT_POINTS_TEXT,
};
_Static_assert(HTTP_PROMPT_POINTS_TEXT + 2 * HTTP_PROMPT_POINTS_SHORT +
                       2 * HTTP_PROMPT_POINTS_BLOCK + 2 * HTTP_PROMPT_POINTS_LINE +
                       HTTP_PROMPT_POINTS_HEADER + HTTP_PROMPT_SEGMENTS - 1 <=
                   CHAIN_POINTS_MAX,
               "every segment has room for its points, and all but the last for an end point");
_Static_assert((unsigned)HTTP_PROMPT_LINE_MAX < (unsigned)HTTP_PROMPT_STAGE,
               "a line that is sought is in the stage");
_Static_assert((unsigned)HTTP_PROMPT_SEGMENTS <= 8, "a bit of form.filled each");
_Static_assert((unsigned)HTTP_PROMPT_POINTS_TEXT <= CHECKPOINT_MAX, "so many checkpoints exist");

_Static_assert((unsigned)HTTP_CHUNK_BYTES_MAX <= HTTP_PROMPT_STAGE, "a full stage has a cut");

static const struct http_prompt_mark start_mark = {.bytes = 0};

/* Resets what http_prompt_said() recorded about the messages. */
static void forget_said(struct http_prompt *p)
{
    p->form.opening = p->form.said_from = p->form.late_bytes = 0;
    p->form.late = start_mark.state;
    p->form.goes_on = p->form.is_led = p->is_opened = false;
}

void http_prompt_init(struct http_prompt *p, const struct hash_secret *secret)
{
    p->secret = secret;
    p->form.filled = 0;
    p->form.tools_set = (struct hash128){.low = 0};
    forget_said(p);
    p->open = -1;
    p->may_be_header = false;
    p->chain.bytes = 0;
    p->chain.length = 0;
    p->chain.token_ids = p->chain.chunks = false;
    p->chain.content = (struct chain_content){0};
}

void http_prompt_by_chunks(struct http_prompt *p)
{
    p->chain.chunks = true;
}

/* The next checkpoint, in bytes from the start of the segment. */
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

/* --- the head ------------------------------------------------------------------------------ */

static void forget_part(struct http_prompt *p, int segment)
{
    p->form.filled &= (uint8_t) ~(1u << segment);
}

/* Opens a segment, whose points begin at index `first`. */
static void open_part(struct http_prompt *p, int segment, unsigned first)
{
    forget_part(p, segment);
    p->form.parts[segment].first = (uint16_t)first;
    p->open = (int8_t)segment;
}

/* Assigns the text of the open segment to another segment. */
static void relabel(struct http_prompt *p, enum http_prompt_segment segment)
{
    open_part(p, segment, p->form.parts[p->open].first);
}

/* Adds a point for every checkpoint up to the position, with the state as its id. A block that
 * reaches a block's maximum of points is too long for the head: its text then belongs to the
 * segment behind the head. */
static void read_points(struct http_prompt *p)
{
    while (p->now.points < points_max[p->open] && next_checkpoint(p) <= p->now.bytes) {
        unsigned ordinal = p->now.points++;
        add_point(p, p->now.state.low, checkpoint_blocks(ordinal), checkpoint_code(ordinal));
        if (http_prompt_is_block(p->open) && p->now.points == points_max[p->open])
            relabel(p, http_prompt_whole_of(p->open));
    }
}

/* The largest code with a weight of at most `blocks`. `blocks` is at least 1. */
static uint8_t code_within(uint64_t blocks)
{
    uint8_t code = 0;
    while (code < CHECKPOINT_CODE_MAX && checkpoint_weight((uint8_t)(code + 1)) <= blocks)
        code++;
    return code;
}

/* The code with the weight nearest to `blocks`. */
static uint8_t code_near(uint64_t blocks)
{
    uint8_t code = code_within(blocks);
    uint64_t less = blocks - checkpoint_weight(code);
    bool next =
        code < CHECKPOINT_CODE_MAX && checkpoint_weight((uint8_t)(code + 1)) - blocks < less;
    return (uint8_t)(code + next);
}

/* Adds the chunk that ends here. */
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

/* Bytes of the next unit: up to the next checkpoint or a full stage, or, with chunks, up to the
 * next cut. UINT32_MAX: the stage has no cut. */
static uint32_t unit_bytes(const struct http_prompt *p, uint32_t from)
{
    if (p->chain.chunks) {
        size_t cut = http_chunk_cut(p->stage + sizeof p->now.state + from, p->used - from);
        return cut > 0 ? (uint32_t)cut : UINT32_MAX;
    }
    if (p->now.points == points_max[p->open])
        return HTTP_PROMPT_STAGE;
    uint64_t left = next_checkpoint(p) - p->now.bytes;
    return left < HTTP_PROMPT_STAGE ? (uint32_t)left : HTTP_PROMPT_STAGE;
}

/* Hashes `len` bytes of the stage from `from` on. The state is written in front of them, over bytes
 * already hashed. */
static void hash_unit(struct http_prompt *p, uint32_t from, uint32_t len)
{
    if (p->chain.chunks)
        p->now.state = start_mark.state;
    memcpy(p->stage + from, &p->now.state, sizeof p->now.state);
    p->now.state = hash128(p->secret, p->stage + from, sizeof p->now.state + len);
    p->now.bytes += len;
    if (p->chain.chunks)
        add_chunk(p, p->now.state.low, len);
    else
        read_points(p);
}

/* Hashes the whole units in the stage and moves the rest to the front. */
static void drain(struct http_prompt *p)
{
    uint32_t from = 0;
    uint32_t unit;
    while ((unit = unit_bytes(p, from)) <= p->used - from) {
        hash_unit(p, from, unit);
        from += unit;
    }
    p->used -= from;
    if (from > 0 && p->used > 0)
        memmove(p->stage + sizeof p->now.state, p->stage + sizeof p->now.state + from, p->used);
}

/* Hashes all of the stage. */
static void flush(struct http_prompt *p)
{
    if (p->used == 0)
        return;
    drain(p);
    if (p->used > 0)
        hash_unit(p, 0, p->used);
    p->used = 0;
}

static void drop(struct http_prompt *p, int segment)
{
    if (!http_prompt_fills(&p->form, segment))
        return;
    const struct http_prompt_piece *part = &p->form.parts[segment];
    uint16_t behind = (uint16_t)(part->first + part->count);
    memmove(&p->chain.points[part->first], &p->chain.points[behind],
            (size_t)(p->chain.length - behind) * sizeof p->chain.points[0]);
    p->chain.length = (uint16_t)(p->chain.length - part->count);
    forget_part(p, segment);
    for (unsigned left = p->form.filled; left != 0; left &= left - 1) {
        struct http_prompt_piece *other = &p->form.parts[__builtin_ctz(left)];
        if (other->first >= behind)
            other->first = (uint16_t)(other->first - part->count);
    }
}

static void begin(struct http_prompt *p, enum http_prompt_segment segment)
{
    p->used = 0;
    open_part(p, segment, p->chain.length);
    p->now = start_mark;
}

void http_prompt_open(struct http_prompt *p, enum http_prompt_segment segment)
{
    CHECK(p->open < 0);
    for (int i = 0; i < HTTP_PROMPT_SEGMENTS; i++) {
        if (http_prompt_whole_of(i) == segment)
            drop(p, i);
    }
    if (segment == HTTP_PROMPT_TOOLS)
        p->form.tools_set = start_mark.state;
    if (segment == HTTP_PROMPT_TEXT)
        forget_said(p);
    begin(p, segment);
}

void http_prompt_open_head(struct http_prompt *p, enum http_prompt_segment segment, bool blocks)
{
    http_prompt_open(p, segment);
    if (p->chain.chunks)
        return;
    p->may_be_header = blocks && segment == HTTP_PROMPT_SYSTEM;
    begin(p, segment == HTTP_PROMPT_SYSTEM ? HTTP_PROMPT_SYSTEM_LINE : HTTP_PROMPT_TEXT_LINE);
}

void http_prompt_close(struct http_prompt *p)
{
    CHECK(p->open >= 0);
    flush(p);
    struct http_prompt_piece *part = &p->form.parts[p->open];
    /* The end point is added before the next segment, if any, is known: if no segment follows,
     * http_prompt_join() drops the point. */
    uint32_t last = p->now.points == 0 ? 0 : checkpoint_blocks(p->now.points - 1u);
    uint64_t beyond = p->now.bytes / CHECKPOINT_BLOCK_BYTES - last;
    part->has_end_point = beyond > 0 && p->open != HTTP_PROMPT_TEXT && !p->chain.chunks;
    if (part->has_end_point) {
        uint8_t code = code_within(beyond);
        add_point(p, p->now.state.low, last + checkpoint_weight(code), code);
    }
    part->end = p->now;
    part->count = (uint16_t)(p->chain.length - part->first);
    CHECK(part->count == 0 || part->end.bytes > 0);
    if (part->end.bytes > 0)
        p->form.filled |= (uint8_t)(1u << p->open);
    p->open = -1;
}

/* True if the text in the stage, which is all of the head so far, is Claude Code's header. */
static bool is_header(const struct http_prompt *p, size_t len)
{
    static const char text[] = HTTP_PROMPT_HEADER_TEXT;
    return p->may_be_header && len >= sizeof text - 1 &&
           memcmp(p->stage + sizeof p->now.state, text, sizeof text - 1) == 0;
}

/* Closes the open part of the head and continues with `segment`. */
static void go_on(struct http_prompt *p, enum http_prompt_segment segment)
{
    http_prompt_close(p);
    begin(p, segment);
}

static void leave_head(struct http_prompt *p)
{
    if (!http_prompt_is_head(p->open))
        return;
    enum http_prompt_segment whole = http_prompt_whole_of(p->open);
    flush(p); /* the bytes in the stage may make the text too long for a block */
    if (http_prompt_is_head(p->open))
        go_on(p, whole);
}

void http_prompt_text_end(struct http_prompt *p)
{
    if (http_prompt_is_line(p->open) && p->used == 0)
        return;
    if (http_prompt_is_line(p->open) && is_header(p, p->used))
        relabel(p, HTTP_PROMPT_HEADER);
    if (p->open == HTTP_PROMPT_HEADER) {
        p->may_be_header = false;
        go_on(p, HTTP_PROMPT_SYSTEM_LINE);
        return;
    }
    leave_head(p);
}

static void add_text(struct http_prompt *p, size_t len);

/* Adds text while looking for the end of the first line. The line ends within the first
 * HTTP_PROMPT_LINE_MAX bytes, which all fit into the stage, or is too long to be a segment. */
static void add_to_line(struct http_prompt *p, size_t len)
{
    size_t sought = HTTP_PROMPT_LINE_MAX - p->used;
    const char *at = http_prompt_at(p);
    const char *end = memchr(at, '\n', len < sought ? len : sought);
    if (end == NULL && len < sought) {
        add_text(p, len);
        return;
    }
    if (is_header(p, p->used + len)) {
        relabel(p, HTTP_PROMPT_HEADER);
        add_text(p, len);
        return;
    }
    enum http_prompt_segment block =
        p->open == HTTP_PROMPT_SYSTEM_LINE ? HTTP_PROMPT_SYSTEM_BLOCK : HTTP_PROMPT_TEXT_BLOCK;
    if (end == NULL) {
        relabel(p, block);
        add_text(p, len);
        return;
    }
    size_t head = (size_t)(end - at) + 1;
    add_text(p, head);
    go_on(p, block);
    memmove(http_prompt_at(p), at + head, len - head);
    add_text(p, len - head);
}

void http_prompt_commit(struct http_prompt *p, size_t len)
{
    CHECK(len <= http_prompt_room(p));
    if (http_prompt_is_line(p->open) && len > 0)
        add_to_line(p, len);
    else
        add_text(p, len);
}

static void add_text(struct http_prompt *p, size_t len)
{
    if (!p->now.has_ids)
        http_content_count(&p->now.content, http_prompt_at(p), len);
    p->used += (uint32_t)len;
    p->now.has_other |= len > 0;
    if (p->used == HTTP_PROMPT_STAGE)
        drain(p);
}

void http_prompt_token_id(struct http_prompt *p, uint32_t id)
{
    leave_head(p);
    const unsigned char bytes[sizeof id] = {(unsigned char)id, (unsigned char)(id >> 8),
                                            (unsigned char)(id >> 16), (unsigned char)(id >> 24)};
    p->now.has_ids = true;
    memcpy(http_prompt_at(p), bytes, sizeof bytes); /* may write into the slack after the stage */
    p->used += (uint32_t)sizeof bytes;
    if (p->used >= HTTP_PROMPT_STAGE)
        drain(p);
}

static void absorb(struct http_prompt *p, uint64_t tag, struct hash128 digest, uint64_t weight)
{
    leave_head(p);
    flush(p);
    const uint64_t words[] = {
        p->now.state.low, p->now.state.high, tag, digest.low, digest.high, weight,
    };
    p->now.bytes += weight;
    p->now.has_other = true;
    if (p->chain.chunks) {
        add_chunk(p, hash64(p->secret, &words[2], sizeof words - 2 * sizeof words[0]), weight);
        return;
    }
    p->now.state = hash128(p->secret, words, sizeof words);
    read_points(p);
}

void http_prompt_atom(struct http_prompt *p, struct hash128 digest, uint64_t weight)
{
    absorb(p, ATOM_TAG, digest, weight);
    if (p->open == HTTP_PROMPT_TOOLS) {
        p->form.tools_set.low += digest.low;
        p->form.tools_set.high += digest.high;
    }
}

void http_prompt_media(struct http_prompt *p, const struct chain_content *media)
{
    if (chain_media(media) == 0)
        return;
    leave_head(p);
    flush(p);
    http_content_add(&p->now.content, media);
}

void http_prompt_separate(struct http_prompt *p)
{
    if (http_prompt_is_line(p->open) && p->used == 0) /* the head begins the segment, so there is
                                                       * nothing to separate */
        return;
    leave_head(p);
    bool has_other = p->now.has_other; /* a separator does not make a prompt of token ids mixed */
    absorb(p, SEPARATOR_TAG, (struct hash128){.low = 0}, 0);
    p->now.has_other = has_other;
}

/* Handles a late system message. The state covers all earlier messages too, so a change to any of
 * them changes `late`. */
static void said_late(struct http_prompt *p, const struct http_prompt_mark *from)
{
    flush(p);
    p->form.late = p->now.state;
    p->form.late_bytes += p->now.bytes - from->bytes;
}

void http_prompt_said(struct http_prompt *p, enum http_prompt_by by,
                      const struct http_prompt_mark *from)
{
    if (http_prompt_whole_of(p->open) != HTTP_PROMPT_TEXT)
        return;
    bool is_first = !p->is_opened && !p->form.goes_on;
    if (by == HTTP_PROMPT_BY_SYSTEM) {
        p->form.is_led |= is_first;
        if (!is_first)
            said_late(p, from);
        return;
    }
    if (is_first && p->form.is_led)
        p->form.said_from = from->bytes;
    if (p->is_opened || by == HTTP_PROMPT_BY_OTHER) {
        p->form.goes_on |= by == HTTP_PROMPT_BY_OTHER;
        return;
    }
    flush(p);
    p->is_opened = true;
    /* A message that is only a head so far does not identify the conversation. */
    p->form.opening = p->open == HTTP_PROMPT_TEXT && p->now.bytes > 0 ? p->now.state.low : 0;
}

struct http_prompt_mark http_prompt_mark(struct http_prompt *p)
{
    flush(p);
    struct http_prompt_mark mark = p->now;
    mark.segment = (uint8_t)p->open;
    mark.at = p->chain.length;
    mark.may_be_header = p->may_be_header;
    return mark;
}

void http_prompt_rewind(struct http_prompt *p, const struct http_prompt_mark *mark)
{
    p->chain.length = mark->at;
    for (int i = mark->segment + 1; i <= (int)http_prompt_whole_of(mark->segment); i++)
        forget_part(p, i);
    if (mark->may_be_header)
        forget_part(p, HTTP_PROMPT_HEADER);
    open_part(p, mark->segment, mark->at - mark->points);
    p->may_be_header = mark->may_be_header;
    p->now = *mark;
    p->used = 0;
}

void http_prompt_tint(struct http_prompt *p, const struct http_prompt_mark *mark, uint64_t salt)
{
    flush(p);
    for (unsigned i = mark->at; i < p->chain.length && !p->chain.chunks; i++)
        p->chain.points[i].id = hash_mix(p->chain.points[i].id ^ salt);
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

/* Sorts the points, which are in the order of arrival, into the order of segments. */
static void order_points(struct http_prompt *p)
{
    unsigned at = 0;
    for (unsigned left = p->form.filled; left != 0; left &= left - 1) {
        struct http_prompt_piece *part = &p->form.parts[__builtin_ctz(left)];
        /* Rotates the part to the front of the remaining parts. */
        if (part->count > 0 && part->first != at) {
            reverse(p->chain.points, at, part->first);
            reverse(p->chain.points, part->first, part->first + part->count);
            reverse(p->chain.points, at, part->first + part->count);
            for (unsigned more = left & (left - 1); more != 0; more &= more - 1) {
                struct http_prompt_piece *later = &p->form.parts[__builtin_ctz(more)];
                if (later->first < part->first)
                    later->first = (uint16_t)(later->first + part->count);
            }
            part->first = (uint16_t)at;
        }
        at += part->count;
    }
}

void http_prompt_end(struct http_prompt *p, struct hash128 namespace_digest,
                     struct hash128 arguments)
{
    CHECK(p->open < 0);
    order_points(p);
    if (p->is_opened && http_prompt_has_system(&p->form)) { /* the head counts, too */
        const struct http_prompt_piece *parts = p->form.parts;
        for (int i = HTTP_PROMPT_TEXT_LINE; i < HTTP_PROMPT_TEXT; i++)
            p->form.opening = hash_mix(
                p->form.opening ^ (http_prompt_fills(&p->form, i) ? parts[i].end.state.low : 0));
    }
    p->form.namespace = namespace_digest;
    p->form.arguments = arguments;
}
