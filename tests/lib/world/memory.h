/* The memory of virtual worlds (this one, and tests/lib/proxy_world.h) is no part of what is
 * tested: where a test lets allocations fail (tests/lib/failmalloc.h), these do not. */
#ifndef TESTS_LIB_WORLD_MEMORY_H
#define TESTS_LIB_WORLD_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* Such a test sets this to failmalloc_spare(). NULL: no allocation fails. */
extern void (*world_spare_by)(bool spare);
/* Called before a world takes memory for itself, and (false) after. */
void world_spare(bool spare);
/* As realloc(), but never fails. */
void *world_alloc(void *at, size_t bytes);

#endif
