/* Tests of failing allocations: a scenario runs again and again, and each time another allocation
 * fails, the first, the second, ... The scenario must survive each failure: no crash, and no block
 * left after all objects are destroyed.
 *
 * A test program with these functions is called failmalloc_test: the Makefile links the program so
 * that calls of malloc(), calloc(), realloc() and free() in Grapevine's code come here. Libraries'
 * calls do not. */
#ifndef TESTS_LIB_FAILMALLOC_H
#define TESTS_LIB_FAILMALLOC_H

#include <stdbool.h>
#include <stddef.h>

/* Runs the scenario once without failures, then twice for each allocation: with this allocation
 * failing, and with this and all later allocations failing. After each run no block may be left.
 * Returns the number of allocations; the test fails if there were none. `may_fail`: memory may fail
 * in this run; if not, everything must succeed. */
unsigned failmalloc_each(void (*scenario)(bool may_fail));
/* As failmalloc_each(), with at most `most` of the allocations, spread evenly, for scenarios with
 * thousands. */
unsigned failmalloc_some(void (*scenario)(bool may_fail), unsigned most);
/* For a library with replaceable memory functions: works as realloc() and free(), and fails like
 * malloc(). Blocks kept by the library do not count as left. */
void *failmalloc_library(void *at, size_t size);
void failmalloc_library_free(void *at);
/* No allocation fails from now on to the end of the run: tests the recovery. */
void failmalloc_enough(void);
/* Allocations of the test itself between `true` and `false`, such as in _check(), neither count nor
 * fail. May be nested. */
void failmalloc_spare(bool spare);

#endif
