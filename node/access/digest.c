#include "node/access/digest.h"

#include <sodium.h>

#include "base/check.h"

struct access_digest access_digest_of(struct slice bytes)
{
    struct access_digest d;
    int err = crypto_generichash_blake2b(d.bytes, sizeof d.bytes, (const unsigned char *)bytes.at,
                                         bytes.len, NULL, 0);
    CHECK(err == 0); /* fails only for wrong lengths */
    return d;
}

bool access_digest_equal(const struct access_digest *a, const struct access_digest *b)
{
    return sodium_memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

uint64_t access_digest_number(const struct access_digest *d)
{
    uint64_t number;
    memcpy(&number, d->bytes, sizeof number);
    return number;
}
