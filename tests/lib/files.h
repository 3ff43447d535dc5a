/* Reads files for tests. Paths are relative to the top of the tree, where tests run. */
#ifndef TESTS_LIB_FILES_H
#define TESTS_LIB_FILES_H

#include "base/buf.h"

/* Test vectors of other projects; each folder has a licence, and the README describes each. */
#define VECTORS "tests/vectors"

/* Reads a whole file. ERR_NOT_FOUND if the file cannot be read. The caller frees `out`. */
int file_read(const char *path, struct buf *out);

#endif
