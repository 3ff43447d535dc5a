/* A body that passes through: a reference-counted list of segments. A body grows at its end, and
 * its front may be dropped.
 */
#ifndef BASE_BODY_H
#define BASE_BODY_H

#include "base/err.h"
#include "base/segment.h"
#include "base/slice.h"

/* The exchange (a request and its answer) holds one reference, and a write in flight another. So an
 * exchange that ends early never frees bytes that the kernel still has to read. */
struct body {
    unsigned refs;
    struct segment *first;
    struct segment *last;
    uint64_t bytes; /* bytes received so far, including those already dropped from the front */
    bool complete;
};

/* Returns a body with one reference, the caller's. NULL: no memory. */
struct body *body_new(void);
struct body *body_ref(struct body *b);
void body_unref(struct segment_pool *pool, struct body *b);

/* Returns the last segment, with room for at least 1 byte to read into. `hint`: expected bytes.
 * NULL: the pool is at its limit. */
struct segment *body_room(struct segment_pool *pool, struct body *b, size_t hint);
/* Appends a copy of the bytes. ERR_FULL: the pool is at its limit. */
MUST_USE int body_append(struct segment_pool *pool, struct body *b, struct slice bytes,
                         size_t hint);
/* Inserts bytes after the first `at` bytes, at most the first segment's length. Nothing of the body
 * may have been dropped, and no write may be in flight. ERR_FULL: the pool is at its limit. */
MUST_USE int body_insert(struct segment_pool *pool, struct body *b, size_t at, struct slice bytes);
/* Replaces the `gone` bytes at `at` by `bytes`, which fit a segment. The conditions of
 * body_insert() apply. Bytes before `at` are not moved. ERR_FULL: the pool is at its limit, nothing
 * changed. */
MUST_USE int body_replace(struct segment_pool *pool, struct body *b, uint64_t at, size_t gone,
                          struct slice bytes);

#endif
