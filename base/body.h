/* A request or answer body on the way through the router: a reference-counted list of segments.
 * Bytes are added at the end and may be dropped from the front.
 */
#ifndef BASE_BODY_H
#define BASE_BODY_H

#include "base/err.h"
#include "base/segment.h"
#include "base/slice.h"

/* The exchange (a request and the answer to it) holds a reference, and a write in flight holds
 * another. So if an exchange ends early, bytes that the kernel still has to read are not freed. */
struct body {
    unsigned refs;
    struct segment *first;
    struct segment *last;
    uint64_t bytes; /* bytes received so far, including those already dropped from the front */
    bool complete;
};

/* Returns a body with one reference, which the caller owns. NULL: no memory. */
struct body *body_new(void);
struct body *body_ref(struct body *b);
void body_unref(struct segment_pool *pool, struct body *b);

/* Returns the last segment, with room for at least 1 byte. Adds a segment if the last segment is
 * full. `hint`: bytes expected to follow. NULL: the pool's limit is reached, or there is no
 * memory. */
struct segment *body_room(struct segment_pool *pool, struct body *b, size_t hint);
/* Appends a copy of the bytes. ERR_FULL: no further segment; the first of the bytes may already be
 * appended. */
MUST_USE int body_append(struct segment_pool *pool, struct body *b, struct slice bytes,
                         size_t hint);
/* Inserts `bytes` after the first `at` bytes of a body that is not empty. `at` is at most the first
 * segment's length. No byte of the body may have been dropped, and no write may be in flight.
 * ERR_FULL: the pool's limit is reached, or a segment has no room for `at` bytes and `bytes`
 * together. */
MUST_USE int body_insert(struct segment_pool *pool, struct body *b, size_t at, struct slice bytes);
/* Replaces the `gone` bytes at `at` by `bytes`, which fit a segment. The conditions of
 * body_insert() apply. Bytes before `at` are not moved. ERR_FULL: the pool's limit is reached, and
 * the body is unchanged. */
MUST_USE int body_replace(struct segment_pool *pool, struct body *b, uint64_t at, size_t gone,
                          struct slice bytes);

#endif
