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
    if (s->cap - s->len < bytes.len) { /* no room in there: what stands before moves to a new one */
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
