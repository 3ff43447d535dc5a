#include "tests/lib/failmalloc.h"

#include <limits.h>
#include <stddef.h>
#include <stdlib.h>

#include "tests/lib/test.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *at, size_t size);
void __real_free(void *at);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *at, size_t size);
void __wrap_free(void *at);

static struct {
    unsigned made; /* allocations in this run */
    unsigned fail; /* number of the failing allocation; 0: none */
    bool for_good; /* all later allocations fail too */
    int spared;    /* nesting depth */
    long live;     /* blocks not freed yet */
} state;

static bool fails(void)
{
    if (state.spared > 0)
        return false;
    state.made++;
    return state.fail != 0 &&
           (state.made == state.fail || (state.for_good && state.made > state.fail));
}

void *__wrap_malloc(size_t size)
{
    void *at = fails() ? NULL : __real_malloc(size);
    state.live += at != NULL;
    return at;
}

void *__wrap_calloc(size_t count, size_t size)
{
    void *at = fails() ? NULL : __real_calloc(count, size);
    state.live += at != NULL;
    return at;
}

void *__wrap_realloc(void *at, size_t size)
{
    if (fails())
        return NULL;
    void *moved = __real_realloc(at, size);
    state.live += moved != NULL && at == NULL;
    return moved;
}

void __wrap_free(void *at)
{
    state.live -= at != NULL;
    __real_free(at);
}

void *failmalloc_library(void *at, size_t size)
{
    return fails() ? NULL : __real_realloc(at, size);
}

void failmalloc_library_free(void *at)
{
    __real_free(at);
}

void failmalloc_enough(void)
{
    state.fail = 0;
}

void failmalloc_spare(bool spare)
{
    state.spared += spare ? 1 : -1;
}

static void run(void (*scenario)(bool may_fail), unsigned fail, bool for_good)
{
    long live = state.live;
    state.made = 0;
    state.fail = fail;
    state.for_good = for_good;
    scenario(fail != 0);
    state.fail = 0;
    if (state.live != live)
        fail_msg("allocation %u%s: %ld blocks are left", fail, for_good ? " and all behind it" : "",
                 state.live - live);
}

unsigned failmalloc_some(void (*scenario)(bool may_fail), unsigned most)
{
    run(scenario, 0, false);
    unsigned count = state.made;
    assert_true(count > 0);
    for (unsigned i = 1; i <= count; i += 1 + (count - 1) / most) {
        run(scenario, i, false);
        run(scenario, i, true);
    }
    return count;
}

unsigned failmalloc_each(void (*scenario)(bool may_fail))
{
    return failmalloc_some(scenario, UINT_MAX);
}
