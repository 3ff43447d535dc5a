#ifndef CRDT_LIMITS_H
#define CRDT_LIMITS_H

#include <stdint.h>

/* Numbers of deltas, lives, versions and sums: far from where a sum would wrap. */
#define CRDT_NUMBER_MAX (UINT64_MAX >> 1)

#endif
