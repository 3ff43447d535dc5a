#include "base/body.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

struct body *body_new(void)
{
    struct body *b = calloc(1, sizeof *b);
    if (b != NULL)
        b->refs = 1;
    return b;
}

struct body *body_ref(struct body *b)
{
    b->refs++;
    return b;
}

void body_unref(struct segment_pool *pool, struct body *b)
{
    CHECK(b->refs > 0);
    if (--b->refs > 0)
        return;
    while (b->first != NULL) {
        struct segment *s = b->first;
        b->first = s->next;
        segment_release(pool, s);
    }
    free(b);
}

struct segment *body_room(struct segment_pool *pool, struct body *b, size_t hint)
{
    if (b->last != NULL && b->last->len < b->last->cap)
        return b->last;
    struct segment *s = segment_new(pool, hint);
    if (s == NULL)
        return NULL;
    if (b->last != NULL)
        b->last->next = s;
    else
        b->first = s;
    b->last = s;
    return s;
}

int body_append(struct segment_pool *pool, struct body *b, struct slice bytes, size_t hint)
{
    while (bytes.len > 0) {
        struct segment *s = body_room(pool, b, hint > bytes.len ? hint : bytes.len);
        if (s == NULL)
            return ERR_FULL;
        size_t n = s->cap - s->len;
        if (n > bytes.len)
            n = bytes.len;
        memcpy(s->data + s->len, bytes.at, n);
        s->len += (uint32_t)n;
        b->bytes += n;
        bytes = slice_skip(bytes, n);
    }
    return 0;
}

int body_insert(struct segment_pool *pool, struct body *b, size_t at, struct slice bytes)
{
    struct segment *s = b->first;
    CHECK(b->refs == 1 && s != NULL && at <= s->len);
    if (s->cap - s->len < bytes.len) { /* no room in the first segment: moves the bytes before `at`
                                        * to a new segment */
        struct segment *before = segment_new(pool, at + bytes.len);
        if (before == NULL || before->cap < at + bytes.len) {
            if (before != NULL)
                segment_release(pool, before);
            return ERR_FULL;
        }
        memcpy(before->data, s->data, at);
        memcpy(before->data + at, bytes.at, bytes.len);
        before->len = (uint32_t)(at + bytes.len);
        memmove(s->data, s->data + at, s->len - at);
        s->len -= (uint32_t)at;
        before->next = s;
        b->first = before;
    } else {
        memmove(s->data + at + bytes.len, s->data + at, s->len - at);
        memcpy(s->data + at, bytes.at, bytes.len);
        s->len += (uint32_t)bytes.len;
    }
    b->bytes += bytes.len;
    return ERR_OK;
}

/* Removes the first `n` bytes after segment `s`. */
static void behind_drop(struct segment_pool *pool, struct body *b, struct segment *s, size_t n)
{
    while (n > 0) {
        struct segment *next = s->next;
        CHECK(next != NULL);
        size_t cut = n < next->len ? n : next->len;
        memmove(next->data, next->data + cut, next->len - cut);
        next->len -= (uint32_t)cut;
        n -= cut;
        if (next->len > 0)
            continue;
        s->next = next->next;
        b->last = b->last == next ? s : b->last;
        segment_release(pool, next);
    }
}

/* Replaces the end of a segment, from `at` on, by `bytes` and the segment's last `rest` bytes. The
 * segment has no room for both, so a part moves to a new segment, which is returned. NULL: no
 * memory. */
static struct segment *end_split(struct segment_pool *pool, struct segment *s, size_t at,
                                 struct slice bytes, size_t rest)
{
    bool stays = s->cap - at >= bytes.len;
    struct segment *after = segment_new(pool, rest + (stays ? 0 : bytes.len));
    if (after == NULL)
        return NULL;
    CHECK(after->cap >= rest + (stays ? 0 : bytes.len));
    char *to = stays ? s->data + at : after->data;
    memcpy(after->data + (stays ? 0 : bytes.len), s->data + s->len - rest, rest);
    memcpy(to, bytes.at, bytes.len);
    after->len = (uint32_t)(rest + (stays ? 0 : bytes.len));
    s->len = (uint32_t)(at + (stays ? bytes.len : 0));
    after->next = s->next;
    s->next = after;
    return after;
}

int body_replace(struct segment_pool *pool, struct body *b, uint64_t at, size_t gone,
                 struct slice bytes)
{
    struct segment *s = b->first;
    CHECK(b->refs == 1 && at + gone <= b->bytes);
    for (; s != NULL && at >= s->len; s = s->next)
        at -= s->len;
    CHECK(s != NULL);
    size_t cut = gone < s->len - at ? gone : (size_t)(s->len - at);
    size_t rest = s->len - (size_t)at - cut;
    if (at + bytes.len + rest <= s->cap) {
        memmove(s->data + at + bytes.len, s->data + at + cut, rest);
        memcpy(s->data + at, bytes.at, bytes.len);
        s->len = (uint32_t)(at + bytes.len + rest);
    } else {
        struct segment *after = end_split(pool, s, (size_t)at, bytes, rest);
        if (after == NULL)
            return ERR_FULL;
        b->last = b->last == s ? after : b->last;
        s = after;
    }
    behind_drop(pool, b, s, gone - cut);
    b->bytes += bytes.len;
    b->bytes -= gone;
    return ERR_OK;
}
