/* Tests of failing allocations: a scenario runs again and again, and each time another allocation
 * fails, the first, the second, ... The scenario must survive that: no crash, and no block left
 * after its objects are destroyed.
 *
 * A test program with these functions is called failmalloc_test: the Makefile links the program
 * so that malloc(), calloc(), realloc() and free() of our own code come here first. Calls from
 * libraries do not. */
#ifndef TESTS_LIB_FAILMALLOC_H
#define TESTS_LIB_FAILMALLOC_H

#include <stdbool.h>
#include <stddef.h>

/* Runs the scenario once without failures, then once with each of its allocations failing, and once
 * more with that allocation and all later ones failing. After each run no block may be left.
 * Returns the number of allocations; the test fails if there were none. `may_fail` says if memory
 * may fail this time: if not, everything must succeed. */
unsigned failmalloc_each(void (*scenario)(bool may_fail));
/* The same with at most so many of its allocations, spread evenly: where there are thousands. */
unsigned failmalloc_some(void (*scenario)(bool may_fail), unsigned most);
/* For a library with replaceable memory functions: as realloc() and free(), and fails like the
 * rest. Blocks that the library keeps do not count as left. */
void *failmalloc_library(void *at, size_t size);
void failmalloc_library_free(void *at);
/* No allocation fails from now on to the end of the run: tests the recovery. */
void failmalloc_enough(void);
/* Allocations of the test itself between `true` and `false`, such as in _check(), neither count nor
 * fail. May be nested. */
void failmalloc_spare(bool spare);

#endif
