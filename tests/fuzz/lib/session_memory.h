/* Large blocks of memory for the fuzz target of whole sessions, which makes 1 or 2 routers for each
 * input. A router has 60 MB of mostly unused tables. AddressSanitizer writes a shadow of each such
 * block, which took three quarters of an execution. So large blocks are mapped once and used again.
 * They are zeroed each time and end at an inaccessible page. Free blocks are inaccessible;
 * session_memory_check() finds leaked ones. The Makefile replaces calloc(), realloc() and free()
 * with these functions. */
#ifndef TESTS_FUZZ_LIB_SESSION_MEMORY_H
#define TESTS_FUZZ_LIB_SESSION_MEMORY_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/check.h"

enum { BLOCKS_MAX = 64, BLOCK_PAGE = 4096, BLOCK_ALIGN = 64 };
enum { BLOCK_LEAST = 256 * 1024 }; /* AddressSanitizer maps larger blocks */

static struct block {
    char *base; /* start of the mapping; the page after `bytes` is inaccessible */
    size_t bytes, asked;
    char *at; /* the address returned */
    bool used;
} blocks[BLOCKS_MAX];

void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *at, size_t size);
void __real_free(void *at);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *at, size_t size);
void __wrap_free(void *at);

static struct block *block_of(const void *at)
{
    for (unsigned i = 0; at != NULL && i < BLOCKS_MAX; i++) {
        if (blocks[i].used && blocks[i].at == at)
            return &blocks[i];
    }
    return NULL;
}

/* A free block of this size, or a new block. NULL: all block rows are in use. */
static struct block *block_find(size_t size)
{
    for (unsigned i = 0; i < BLOCKS_MAX; i++) {
        struct block *b = &blocks[i];
        if (b->used || (b->base != NULL && b->asked != size))
            continue;
        if (b->base != NULL)
            return b;
        b->asked = size;
        b->bytes = (size + BLOCK_ALIGN + BLOCK_PAGE - 1) / BLOCK_PAGE * BLOCK_PAGE;
        b->base = mmap(NULL, b->bytes + BLOCK_PAGE, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        CHECK(b->base != MAP_FAILED);
        b->at = b->base + b->bytes - (size + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;
        return b;
    }
    return NULL;
}

void *__wrap_calloc(size_t count, size_t size)
{
    size_t bytes;
    struct block *b = NULL;
    if (!__builtin_mul_overflow(count, size, &bytes) && bytes >= BLOCK_LEAST)
        b = block_find(bytes);
    if (b == NULL)
        return __real_calloc(count, size);
    CHECK(mprotect(b->base, b->bytes, PROT_READ | PROT_WRITE) == 0);
    b->used = true;
    return b->at;
}

void __wrap_free(void *at)
{
    struct block *b = block_of(at);
    if (b == NULL) {
        __real_free(at);
        return;
    }
    b->used = false;
    CHECK(madvise(b->base, b->bytes, MADV_DONTNEED) == 0);
    CHECK(mprotect(b->base, b->bytes, PROT_NONE) == 0);
}

void *__wrap_realloc(void *at, size_t size)
{
    const struct block *b = block_of(at);
    if (b == NULL)
        return __real_realloc(at, size);
    void *grown = malloc(size);
    if (grown == NULL)
        return NULL;
    memcpy(grown, at, b->asked < size ? b->asked : size);
    __wrap_free(at);
    return grown;
}

static void session_memory_check(void)
{
    for (unsigned i = 0; i < BLOCKS_MAX; i++)
        CHECK(!blocks[i].used);
}

#endif
