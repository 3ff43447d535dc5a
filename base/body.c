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
