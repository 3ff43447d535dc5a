/* Randomness, by libsodium. */
#ifndef NODE_IO_RANDOM_H
#define NODE_IO_RANDOM_H

#include <stddef.h>

/* Called once, before anything else. Aborts if the system has no randomness. */
void io_random_init(void);
void io_random_bytes(void *out, size_t len);

#endif
