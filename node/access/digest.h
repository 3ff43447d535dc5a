/* How keys are known: by their BLAKE2b hash of 32 bytes, unkeyed.
 *
 * A password hash (argon2, scrypt) is slow because people's passwords can be guessed. A key is 32
 * random bytes: nobody guesses one, so a fast hash is right, and it is what lets each request be
 * checked. `b2sum -l 256` makes the same.
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
/* The time that it takes does not depend on what is in them. */
bool access_digest_equal(const struct access_digest *a, const struct access_digest *b);
/* A number for tables: its first eight bytes. */
uint64_t access_digest_number(const struct access_digest *d);

#endif
