#include "node/replica/print.h"

#include <string.h>

#include "base/check.h"
#include "base/checkpoint.h"

void node_print_set(struct node_print *print, const struct http_prompt_form *form,
                    const struct chain *chain)
{
    print->form = *form;
    print->length = 0;
    for (unsigned left = form->filled; left != 0; left &= left - 1) {
        struct http_prompt_piece *part = &print->form.parts[__builtin_ctz(left)];
        unsigned room = NODE_PRINT_POINTS_MAX - print->length;
        const struct chain_point *from = &chain->points[part->first];
        part->has_end_point = part->has_end_point && part->count <= room;
        part->count = (uint16_t)(part->count < room ? part->count : room);
        part->first = print->length;
        memcpy(&print->points[part->first], from, part->count * sizeof *from);
        print->length = (uint16_t)(print->length + part->count);
    }
}

void node_print_check(const struct node_print *print)
{
    unsigned points = 0;
    for (unsigned left = print->form.filled; left != 0; left &= left - 1)
        points += print->form.parts[__builtin_ctz(left)].count;
    CHECK(points == print->length && print->length <= NODE_PRINT_POINTS_MAX);
}

static bool same(struct hash128 a, struct hash128 b)
{
    return a.low == b.low && a.high == b.high;
}

bool node_print_same_head(const struct node_print *a, const struct node_print *b)
{
    bool has_system = http_prompt_has_system(&a->form);
    unsigned heads = (1U << (has_system ? HTTP_PROMPT_TEXT_LINE : HTTP_PROMPT_TEXT)) - 1;
    if (((a->form.filled ^ b->form.filled) & heads) != 0)
        return false;
    for (unsigned left = a->form.filled & heads; left != 0; left &= left - 1) {
        const struct http_prompt_mark *x = &a->form.parts[__builtin_ctz(left)].end,
                                      *y = &b->form.parts[__builtin_ctz(left)].end;
        if (x->bytes != y->bytes || !same(x->state, y->state))
            return false;
    }
    return same(a->form.arguments, b->form.arguments);
}

struct node_reading node_print_read(const struct node_print *print, struct rendering rendering)
{
    struct node_reading of = {.rendering = rendering};
    of.count = http_prompt_order(&print->form, rendering, of.order);
    for (unsigned i = 0; i < of.count; i++) {
        uint64_t bytes = print->form.parts[of.order[i]].end.bytes;
        uint64_t before = http_prompt_before_late(&print->form, of.order[i]);
        of.all += bytes;
        of.head += before < bytes ? before : bytes;
    }
    return of;
}

/* The bytes that `a` and `b` share at the beginning of a segment in which they differ. `all`: bytes
 * of the whole prompt `a`. */
static struct node_shared shared_within(const struct node_print *a, const struct node_print *b,
                                        enum http_prompt_segment segment, uint64_t all)
{
    const struct http_prompt_piece *x = &a->form.parts[segment], *y = &b->form.parts[segment];
    const struct chain_point *points = &a->points[x->first], *others = &b->points[y->first];
    unsigned n = 0;
    while (n < x->count && n < y->count && points[n].id == others[n].id)
        n++;
    struct node_shared shared = {.to = x->end.bytes};
    if (n > 0)
        shared.from = (uint64_t)points[n - 1].blocks * CHECKPOINT_BLOCK_BYTES;
    /* All of `b` is the beginning of `a`: the answer to `b` may be in the cache too. */
    if (segment == HTTP_PROMPT_TEXT && n == y->count)
        shared.to = all;
    else if (n < x->count)
        shared.to = (uint64_t)points[n].blocks * CHECKPOINT_BLOCK_BYTES;
    return shared;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Bytes of the segment that may be compared: all of them, unless late system messages count first
 * and differ. Then only the bytes in front of the first late message. */
static uint64_t comparable(const struct node_print *a, const struct node_print *b,
                           const struct node_reading *of, enum http_prompt_segment segment)
{
    if (!of->rendering.late_first || same(a->form.late, b->form.late))
        return UINT64_MAX;
    return least(http_prompt_before_late(&a->form, segment),
                 http_prompt_before_late(&b->form, segment));
}

struct node_shared node_print_shared(const struct node_print *a, const struct node_print *b,
                                     const struct node_reading *of)
{
    const struct rendering rendering = of->rendering;
    struct node_shared shared = {0};
    if (!same(a->form.namespace, b->form.namespace) ||
        (!rendering.no_arguments && !same(a->form.arguments, b->form.arguments)))
        return shared;
    uint8_t order[HTTP_PROMPT_SEGMENTS];
    const uint8_t *others = of->order;
    unsigned other_count = of->count;
    if (b->form.filled != a->form.filled) {
        other_count = http_prompt_order(&b->form, rendering, order);
        others = order;
    }
    for (unsigned i = 0; i < of->count; i++) {
        enum http_prompt_segment s = of->order[i];
        const struct http_prompt_piece *x = &a->form.parts[s], *y = &b->form.parts[s];
        if (i >= other_count || others[i] != s)
            break;
        uint64_t most = comparable(a, b, of, s);
        if (most >= x->end.bytes && x->end.bytes == y->end.bytes &&
            same(http_prompt_digest(&a->form, rendering, s),
                 http_prompt_digest(&b->form, rendering, s))) {
            shared.from += x->end.bytes;
            continue;
        }
        if (s == HTTP_PROMPT_TOOLS && rendering.tools_sorted)
            break;
        struct node_shared within = shared_within(a, b, s, of->all);
        if (most < within.to) { /* late messages count as far as both prompts have them */
            uint64_t late = least(a->form.late_bytes, b->form.late_bytes);
            within.from = least(within.from, most);
            within.to = most + late + CHECKPOINT_BLOCK_BYTES;
        }
        shared.to = least(shared.from + within.to, of->all);
        shared.from += within.from;
        return shared;
    }
    shared.to = shared.from + CHECKPOINT_BLOCK_BYTES;
    return shared;
}
