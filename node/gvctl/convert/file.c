/* A file that a command line names. */
#include <stdio.h>

#include "base/err.h"
#include "node/gvctl/convert/convert_internal.h"

enum { FILE_MAX = 1 << 20 };

bool convert_file(const char *path, struct buf *text)
{
    FILE *f = fopen(path, "rb");
    char chunk[4096];
    size_t n;
    int err = f != NULL ? 0 : ERR_NOT_FOUND;
    while (err == 0 && text->len < FILE_MAX && (n = fread(chunk, 1, sizeof chunk, f)) > 0)
        err = buf_append(text, chunk, n);
    if (f != NULL)
        (void)fclose(f);
    return err == 0 && text->len < FILE_MAX; /* half of a file is not what it says */
}
