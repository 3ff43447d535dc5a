#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

void check_failed(const char *file, int line, const char *condition)
{
    (void)fprintf(stderr, "grapevine: bug: %s:%d: CHECK(%s) failed\n", file, line, condition);
    (void)fflush(stderr);
    abort();
}
