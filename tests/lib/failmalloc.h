/* What happens when memory runs out: a scenario is run again and again, and each time another one
 * of its allocations fails, the first, the second, ... Its objects must survive that: no crash, and
 * after they are destroyed nothing is left.
 *
 * A test program that uses it is called failmalloc_test: the Makefile links it so that malloc(),
 * calloc(), realloc() and free() of our own code come here first. Those of libraries do not.
 */
#ifndef TESTS_LIB_FAILMALLOC_H
#define TESTS_LIB_FAILMALLOC_H

#include <stdbool.h>
#include <stddef.h>

/* Runs the scenario once as it is, then once with each of its allocations failing, and once more
 * with it and all that follow failing. After each run no block may be left. Returns how many
 * allocations there were; the test fails if it was none. The scenario gets whether memory may fail
 * this time: if not, all must go well. */
unsigned failmalloc_each(void (*scenario)(bool may_fail));
/* The same with at most so many of its allocations, spread evenly: where there are thousands. */
unsigned failmalloc_some(void (*scenario)(bool may_fail), unsigned most);
/* For a library that takes functions for its memory: as realloc() and free(), and fails like the
 * rest. What it keeps does not count as left: it may keep things for later. */
void *failmalloc_library(void *at, size_t size);
void failmalloc_library_free(void *at);
/* From now on to the end of the run nothing fails: has it recovered? */
void failmalloc_enough(void);
/* What the test itself does between `true` and `false`, such as _check(), neither counts nor fails.
 * May be nested. */
void failmalloc_spare(bool spare);

#endif
