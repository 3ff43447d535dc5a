#include "tests/lib/world/memory.h"

#include <stdlib.h>

#include "base/check.h"

void (*world_spare_by)(bool spare);

void world_spare(bool spare)
{
    if (world_spare_by != NULL)
        world_spare_by(spare);
}

void *world_alloc(void *at, size_t bytes)
{
    world_spare(true);
    void *out = realloc(at, bytes);
    CHECK(out != NULL);
    world_spare(false);
    return out;
}
