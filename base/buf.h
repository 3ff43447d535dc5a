/* A byte buffer that grows, up to a limit chosen by the owner.
 *
 *      at                         at+len               at+cap
 *       | bytes in use             | room               |
 *
 * Invariants: len <= cap; cap <= max unless max is 0 (no limit); at is NULL only while cap is 0. An
 * error leaves the buffer as it was. ERR_NOMEM: out of memory. ERR_LIMIT: beyond `max`.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/err.h"
#include "base/slice.h"

struct buf {
    char *at;
    size_t len;
    size_t cap;
    size_t max; /* bytes; 0 = no limit */
};

/* Makes the buffer empty. A zeroed struct is an empty buffer with no limit. */
void buf_init(struct buf *b, size_t max);
void buf_free(struct buf *b);
/* Wipes the memory and frees it, for secrets. */
void buf_free_wiped(struct buf *b);

/* Makes room for `more` bytes after the bytes in use. */
MUST_USE int buf_reserve(struct buf *b, size_t more);
MUST_USE int buf_append(struct buf *b, const void *bytes, size_t len);
MUST_USE int buf_append_slice(struct buf *b, struct slice s);
MUST_USE int buf_append_cstr(struct buf *b, const char *text);
MUST_USE int buf_append_char(struct buf *b, char c);
MUST_USE int buf_printf(struct buf *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Drops `n` bytes (at most len) from the front. */
void buf_consume(struct buf *b, size_t n);
void buf_clear(struct buf *b);

static inline struct slice buf_slice(const struct buf *b)
{
    return slice_of(b->at, b->len);
}

#endif
