/* The memory of virtual worlds (this world, and tests/lib/proxy_world.h) is not under test: in
 * tests of failing allocations (tests/lib/failmalloc.h), a world's allocations do not fail. */
#ifndef TESTS_LIB_WORLD_MEMORY_H
#define TESTS_LIB_WORLD_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* A test of failing allocations sets this to failmalloc_spare(). NULL: no allocation fails. */
extern void (*world_spare_by)(bool spare);
/* Called before a world allocates memory, and (false) afterwards. */
void world_spare(bool spare);
/* As realloc(), but never fails. */
void *world_alloc(void *at, size_t bytes);

#endif
