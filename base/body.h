/* A body on its way through: a reference-counted list of segments. It grows at its end and may be
 * let go from its front.
 */
#ifndef BASE_BODY_H
#define BASE_BODY_H

#include "base/err.h"
#include "base/segment.h"
#include "base/slice.h"

/* The exchange holds one reference and a write in flight another, so that an exchange that ends
 * early never frees bytes that the kernel still has to read. */
struct body {
    unsigned refs;
    struct segment *first;
    struct segment *last;
    uint64_t bytes; /* received so far, those already dropped from the front too */
    bool complete;
};

/* The first reference is the caller's. NULL: no memory. */
struct body *body_new(void);
struct body *body_ref(struct body *b);
void body_unref(struct segment_pool *pool, struct body *b);

/* Room for reading into, at least 1 byte; `hint` is how much is expected. NULL at the limit. */
struct segment *body_room(struct segment_pool *pool, struct body *b, size_t hint);
/* Copies bytes in. ERR_FULL at the limit. */
MUST_USE int body_append(struct segment_pool *pool, struct body *b, struct slice bytes,
                         size_t hint);
/* Puts bytes behind the first `at` bytes of a body of which nothing was let go and nothing is being
 * written; `at` is at most the length of its first segment. ERR_FULL at the limit. */
MUST_USE int body_insert(struct segment_pool *pool, struct body *b, size_t at, struct slice bytes);
/* Puts `bytes`, less than a segment holds, in place of the `gone` bytes at `at`, of such a body.
 * What stands before them is not moved. ERR_FULL at the limit: nothing has changed. */
MUST_USE int body_replace(struct segment_pool *pool, struct body *b, uint64_t at, size_t gone,
                          struct slice bytes);

#endif
