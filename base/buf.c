#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf){.max = max};
}

void buf_free(struct buf *b)
{
    free(b->at);
    *b = (struct buf){.max = b->max};
}

void buf_free_wiped(struct buf *b)
{
    if (b->at != NULL)
        explicit_bzero(b->at, b->cap);
    buf_free(b);
}

int buf_reserve(struct buf *b, size_t more)
{
    if (more <= b->cap - b->len)
        return 0;
    if (more > SIZE_MAX / 4 - b->len)
        return ERR_LIMIT;
    size_t need = b->len + more;
    if (b->max != 0 && need > b->max)
        return ERR_LIMIT;
    size_t cap = b->cap < 64 ? 64 : b->cap * 2;
    if (cap < need)
        cap = need;
    if (b->max != 0 && cap > b->max)
        cap = b->max;
    char *at = realloc(b->at, cap);
    if (at == NULL)
        return ERR_NOMEM;
    b->at = at;
    b->cap = cap;
    return 0;
}

int buf_append(struct buf *b, const void *bytes, size_t len)
{
    int err = buf_reserve(b, len);
    if (err != 0)
        return err;
    if (len > 0)
        memcpy(b->at + b->len, bytes, len);
    b->len += len;
    return 0;
}

int buf_append_slice(struct buf *b, struct slice s)
{
    return buf_append(b, s.at, s.len);
}

int buf_append_cstr(struct buf *b, const char *text)
{
    return buf_append(b, text, strlen(text));
}

int buf_append_char(struct buf *b, char c)
{
    return buf_append(b, &c, 1);
}

int buf_printf(struct buf *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    CHECK(n >= 0);
    int err = buf_reserve(b, (size_t)n + 1); /* vsnprintf also writes a NUL */
    if (err != 0)
        return err;
    va_start(args, format);
    (void)vsnprintf(b->at + b->len, (size_t)n + 1, format, args);
    va_end(args);
    b->len += (size_t)n;
    return 0;
}

void buf_consume(struct buf *b, size_t n)
{
    CHECK(n <= b->len);
    if (n == 0)
        return;
    memmove(b->at, b->at + n, b->len - n);
    b->len -= n;
}

void buf_clear(struct buf *b)
{
    b->len = 0;
}
