#include "node/io/random.h"

#include <sodium.h>

#include "base/check.h"

void io_random_init(void)
{
    CHECK(sodium_init() >= 0);
}

void io_random_bytes(void *out, size_t len)
{
    randombytes_buf(out, len);
}
