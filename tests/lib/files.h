/* Files that tests read. Paths are relative to the top of the tree, where tests run. */
#ifndef TESTS_LIB_FILES_H
#define TESTS_LIB_FILES_H

#include "base/buf.h"

/* Test vectors of other projects, each folder with its licence; its README says what each is. */
#define VECTORS "tests/vectors"

/* Reads a whole file. ERR_NOT_FOUND if the file cannot be read. The caller frees `out`. */
int file_read(const char *path, struct buf *out);

#endif
