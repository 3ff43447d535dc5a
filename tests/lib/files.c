#include "tests/lib/files.h"

#include <stdio.h>

#include "base/err.h"

int file_read(const char *path, struct buf *out)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        return ERR_NOT_FOUND;
    int err = 0;
    char chunk[16384];
    size_t n;
    while (err == 0 && (n = fread(chunk, 1, sizeof chunk, f)) > 0)
        err = buf_append(out, chunk, n);
    (void)fclose(f);
    return err;
}
