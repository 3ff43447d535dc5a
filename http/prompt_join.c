/* Joins the segments of a prompt to a chain, as an engine sees them (base/rendering.h). */
#include <string.h>

#include "base/check.h"
#include "base/checkpoint.h"
#include "http/content.h"
#include "http/prompt_internal.h"

enum {
    IDS_TAG = 0x696473,
    ARGUMENTS_TAG = 0x61726773,
    CHUNK_TAG = 0x63686e,
    LATE_TAG = 0x6c617465
};

static uint64_t prefix_id(const struct hash_secret *secret, const struct chain_point *point,
                          const struct hash128 *before, uint64_t form)
{
    const uint64_t words[] = {point->id, before->low, before->high, form, point->blocks};
    return hash64(secret, words, sizeof words);
}

/* The id of a chunk, which is the same in every segment and at every position. */
static uint64_t chunk_id(const struct hash_secret *secret, uint64_t id, const struct hash128 *space)
{
    const uint64_t words[] = {id, space->low, space->high, CHUNK_TAG};
    return hash64(secret, words, sizeof words);
}

static uint64_t bytes_of(const struct http_prompt_form *form, unsigned segments)
{
    uint64_t bytes = 0;
    for (; segments != 0; segments &= segments - 1)
        bytes += form->parts[__builtin_ctz(segments)].end.bytes;
    return bytes;
}

/* The segments in the prompt, a bit each. A leading text counts in any rendering if less than a
 * block follows, not counting the tools: then the text is the prompt itself. */
static unsigned segments_in(const struct http_prompt_form *form, struct rendering rendering)
{
    bool has_system = http_prompt_has_system(form);
    unsigned header = rendering.counts_header ? 0 : 1u << HTTP_PROMPT_HEADER, out = header;
    unsigned lead = (1u << HTTP_PROMPT_TEXT_LINE) - 1; /* the segments allowed to lead */
    if (!has_system)
        lead = ~lead;
    if (rendering.lead != RENDERING_LEAD_ALL)
        out |= HTTP_PROMPT_LINES & lead;
    if (rendering.lead == RENDERING_LEAD_NO_BLOCK)
        out |= HTTP_PROMPT_BLOCKS & lead;
    unsigned behind = form->filled & ~(out | 1u << HTTP_PROMPT_TOOLS);
    bool is_all = bytes_of(form, behind) < CHECKPOINT_BLOCK_BYTES;
    return form->filled & ~(is_all ? header : out);
}

uint64_t http_prompt_before_late(const struct http_prompt_form *form,
                                 enum http_prompt_segment segment)
{
    if (segment < HTTP_PROMPT_TEXT_LINE || (form->is_led && segment < HTTP_PROMPT_TEXT))
        return UINT64_MAX;
    return form->is_led ? form->said_from : 0;
}

unsigned http_prompt_order(const struct http_prompt_form *form, struct rendering rendering,
                           uint8_t out[HTTP_PROMPT_SEGMENTS])
{
    const unsigned tools = 1u << HTTP_PROMPT_TOOLS;
    unsigned count = 0;
    unsigned in = segments_in(form, rendering), left = in & ~tools;
    unsigned behind = HTTP_PROMPT_TOOLS; /* the last segment before the tools */
    if (rendering.tools_after)
        behind = http_prompt_has_system(form) ? HTTP_PROMPT_SYSTEM : HTTP_PROMPT_TEXT_BLOCK;
    unsigned before = left & ((2u << behind) - 1);
    for (; before != 0; before &= before - 1)
        out[count++] = (uint8_t)__builtin_ctz(before);
    if ((in & tools) != 0)
        out[count++] = HTTP_PROMPT_TOOLS;
    for (left &= ~((2u << behind) - 1); left != 0; left &= left - 1)
        out[count++] = (uint8_t)__builtin_ctz(left);
    return count;
}

struct hash128 http_prompt_digest(const struct http_prompt_form *form, struct rendering rendering,
                                  enum http_prompt_segment segment)
{
    bool sorted = segment == HTTP_PROMPT_TOOLS && rendering.tools_sorted;
    return sorted ? form->tools_set : form->parts[segment].end.state;
}

/* Puts the points of the segments in `order` behind each other. Only the tools may move to a later
 * place: the points now before the tools move down. */
static void pick_points(const struct http_prompt_form *form, const uint8_t *order, unsigned count,
                        struct chain *chain)
{
    struct chain_point tools[HTTP_PROMPT_POINTS_SHORT + 1];
    unsigned at = 0;
    unsigned tool_count =
        http_prompt_fills(form, HTTP_PROMPT_TOOLS) ? form->parts[HTTP_PROMPT_TOOLS].count : 0;
    CHECK(tool_count <= ARRAY_LEN(tools));
    bool wait = tool_count > 0 && order[0] != HTTP_PROMPT_TOOLS;
    if (wait)
        memcpy(tools, chain->points, tool_count * sizeof tools[0]);
    for (unsigned i = 0; i < count; i++) {
        const struct http_prompt_piece *part = &form->parts[order[i]];
        const struct chain_point *from = &chain->points[part->first];
        if (order[i] == HTTP_PROMPT_TOOLS && wait)
            from = tools;
        if (part->count > 0 && from != &chain->points[at])
            memmove(&chain->points[at], from, part->count * sizeof *from);
        at += part->count;
    }
    chain->length = (uint16_t)at;
}

static struct hash128 space_of(const struct http_prompt_form *form,
                               const struct hash_secret *secret, struct rendering rendering)
{
    const struct hash128 *ns = &form->namespace, *arguments = &form->arguments;
    if (rendering.no_arguments || (arguments->low | arguments->high) == 0)
        return *ns;
    const uint64_t words[] = {ns->low, ns->high, arguments->low, arguments->high, ARGUMENTS_TAG};
    return hash128(secret, words, sizeof words);
}

/* The prefix digest for messages after late system messages moved to the head. */
static struct hash128 before_late(const struct http_prompt_form *form,
                                  const struct hash_secret *secret, const struct hash128 *before)
{
    const uint64_t words[] = {before->low, before->high, form->late.low, form->late.high, LATE_TAG};
    return hash128(secret, words, sizeof words);
}

void http_prompt_join(const struct http_prompt_form *form, const struct hash_secret *secret,
                      struct rendering rendering, struct chain *chain)
{
    uint8_t order[HTTP_PROMPT_SEGMENTS];
    unsigned count = http_prompt_order(form, rendering, order);
    pick_points(form, order, count, chain);
    const struct hash128 space = space_of(form, secret, rendering);
    struct hash128 before = space;
    uint32_t blocks_before = 0;
    unsigned at = 0;
    bool late_first = rendering.late_first && http_prompt_has_late(form);
    chain->bytes = 0;
    chain->content = (struct chain_content){0};
    for (unsigned i = 0; i < count; i++) {
        const struct http_prompt_piece *part = &form->parts[order[i]];
        bool sorted = order[i] == HTTP_PROMPT_TOOLS && rendering.tools_sorted;
        struct hash128 state = http_prompt_digest(form, rendering, order[i]);
        uint64_t kind = (uint64_t)order[i] << 32 | (part->end.has_ids ? IDS_TAG : 0);
        uint64_t still = late_first ? http_prompt_before_late(form, order[i]) : UINT64_MAX;
        const struct hash128 later =
            still < UINT64_MAX ? before_late(form, secret, &before) : before;
        for (unsigned end = at + part->count; at < end; at++) {
            struct chain_point *point = &chain->points[at];
            bool is_later = (uint64_t)point->blocks * CHECKPOINT_BLOCK_BYTES > still;
            point->id = sorted && !chain->chunks ? state.low : point->id;
            point->id = chain->chunks ? chunk_id(secret, point->id, &space)
                                      : prefix_id(secret, point, is_later ? &later : &before, kind);
            point->blocks += blocks_before;
            point->media = (uint16_t)(point->media + chain_media(&chain->content));
        }
        if (at > 0)
            blocks_before = chain->points[at - 1].blocks;
        const uint64_t words[] = {later.low,  later.high,      state.low,
                                  state.high, part->end.bytes, kind};
        before = hash128(secret, words, sizeof words);
        chain->bytes += part->end.bytes;
        http_content_add(&chain->content, &part->end.content);
    }
    CHECK(at == chain->length);
    const struct http_prompt_piece *last = count > 0 ? &form->parts[order[count - 1]] : NULL;
    if (last != NULL && last->has_end_point)
        chain->length--;
    chain->token_ids = last == &form->parts[HTTP_PROMPT_TEXT] && last->end.has_ids &&
                       !last->end.has_other && last->end.bytes == chain->bytes;
}
