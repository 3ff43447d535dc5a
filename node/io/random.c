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

bool io_secret_equal(struct slice a, struct slice b)
{
    return a.len == b.len && sodium_memcmp(a.at, b.at, a.len) == 0;
}
