/* Where the shared test vectors and traces are: $GRAPEVINE_SHARED, else ../shared. */
#ifndef TESTS_LIB_SHARED_H
#define TESTS_LIB_SHARED_H

#include "base/buf.h"

/* NULL where there is none; a test then says so and skips. */
const char *shared_dir(void);

/* Reads a whole file. ERR_NOT_FOUND if it cannot be read. The caller frees `out`. */
int file_read(const char *path, struct buf *out);

#endif
