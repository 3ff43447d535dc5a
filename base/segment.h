/* Pooled pieces of memory for the bodies of requests and answers (base/body.h).
 *
 * A body of unknown size grows by segments instead of by copying; libuv reads straight into the
 * last segment. Three sizes keep a thousand small requests small. Freed segments are kept for reuse
 * up to a bound. All bytes handed out count against a limit (`bytes_max`); beyond it, allocation
 * returns NULL and the caller must reject the request.
 */
#ifndef BASE_SEGMENT_H
#define BASE_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

enum { SEGMENT_CLASSES = 3 }; /* 4 KiB, 16 KiB, 64 KiB of data */

struct segment {
    struct segment *next;
    uint32_t len; /* bytes in use */
    uint32_t cap;
    uint8_t class;
    char data[];
};

struct segment_pool {
    struct segment *free[SEGMENT_CLASSES];
    unsigned free_count[SEGMENT_CLASSES];
    uint64_t bytes;     /* bytes handed out */
    uint64_t bytes_max; /* limit of `bytes` */
    uint64_t refused;   /* allocations refused because of bytes_max */
};

void segment_pool_init(struct segment_pool *pool, uint64_t bytes_max);
void segment_pool_free(struct segment_pool *pool);

/* Returns a segment of the smallest class with room for `hint` bytes, at most 64 KiB. NULL:
 * bytes_max is reached, or there is no memory. */
struct segment *segment_new(struct segment_pool *pool, size_t hint);
void segment_release(struct segment_pool *pool, struct segment *s);

/* Counts `bytes` of a body's memory outside of segments against bytes_max. False: bytes_max would
 * be exceeded, and nothing is counted. */
bool segment_pool_charge(struct segment_pool *pool, uint64_t bytes);
void segment_pool_discharge(struct segment_pool *pool, uint64_t bytes);

#endif
