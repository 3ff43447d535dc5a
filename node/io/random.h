/* Randomness and secret comparison, by libsodium. */
#ifndef NODE_IO_RANDOM_H
#define NODE_IO_RANDOM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

/* Once, before anything else. Aborts if the system has no randomness. */
void io_random_init(void);
void io_random_bytes(void *out, size_t len);

/* In constant time for equal lengths. */
bool io_secret_equal(struct slice a, struct slice b);

#endif
