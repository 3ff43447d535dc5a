#include "base/segment.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"

static const uint32_t class_bytes[SEGMENT_CLASSES] = {4096, 16384, 65536};
static const unsigned class_keep[SEGMENT_CLASSES] = {1024, 256, 256};

void segment_pool_init(struct segment_pool *pool, uint64_t bytes_max)
{
    *pool = (struct segment_pool){.bytes_max = bytes_max};
}

void segment_pool_free(struct segment_pool *pool)
{
    for (int c = 0; c < SEGMENT_CLASSES; c++) {
        while (pool->free[c] != NULL) {
            struct segment *s = pool->free[c];
            pool->free[c] = s->next;
            free(s);
        }
        pool->free_count[c] = 0;
    }
}

struct segment *segment_new(struct segment_pool *pool, size_t hint)
{
    uint8_t class = 0;
    while (class < SEGMENT_CLASSES - 1 && class_bytes[class] < hint)
        class ++;
    uint32_t cap = class_bytes[class];
    if (pool->bytes + cap > pool->bytes_max) {
        pool->refused++;
        return NULL;
    }
    struct segment *s = pool->free[class];
    if (s != NULL) {
        pool->free[class] = s->next;
        pool->free_count[class]--;
    } else {
        s = malloc(sizeof *s + cap);
        if (s == NULL)
            return NULL;
        s->class = class;
        s->cap = cap;
    }
    s->next = NULL;
    s->len = 0;
    pool->bytes += cap;
    return s;
}

bool segment_pool_charge(struct segment_pool *pool, uint64_t bytes)
{
    if (pool->bytes + bytes > pool->bytes_max) {
        pool->refused++;
        return false;
    }
    pool->bytes += bytes;
    return true;
}

void segment_pool_discharge(struct segment_pool *pool, uint64_t bytes)
{
    CHECK(pool->bytes >= bytes);
    pool->bytes -= bytes;
}

void segment_release(struct segment_pool *pool, struct segment *s)
{
    CHECK(pool->bytes >= s->cap);
    pool->bytes -= s->cap;
    if (pool->free_count[s->class] >= class_keep[s->class]) {
        free(s);
        return;
    }
    s->next = pool->free[s->class];
    pool->free[s->class] = s;
    pool->free_count[s->class]++;
}
