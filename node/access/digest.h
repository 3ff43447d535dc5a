/* Keys are identified by their BLAKE2b hash of 32 bytes, unkeyed.
 *
 * A password hash (argon2, scrypt) is slow because people's passwords can be guessed. A key is 32
 * random bytes, which cannot be guessed. So a fast hash is right, and makes it possible to check
 * each request. `b2sum -l 256` computes the same hash.
 */
#ifndef NODE_ACCESS_DIGEST_H
#define NODE_ACCESS_DIGEST_H

#include <stdint.h>

#include "base/slice.h"

enum { ACCESS_DIGEST_BYTES = 32 };

struct access_digest {
    uint8_t bytes[ACCESS_DIGEST_BYTES];
};

struct access_digest access_digest_of(struct slice bytes);
/* Takes the same time whatever the content. */
bool access_digest_equal(const struct access_digest *a, const struct access_digest *b);
/* The digest's first eight bytes, as a number for tables. */
uint64_t access_digest_number(const struct access_digest *d);

#endif
