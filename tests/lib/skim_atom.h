/* Digests of JSON values, for the slow model of the skimmer (tests/lib/skim_model.h). */
#ifndef TESTS_LIB_SKIM_ATOM_H
#define TESTS_LIB_SKIM_ATOM_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

struct atom {
    struct hash128 digest;
    uint64_t weight;
};

struct hash128 model_mix(const struct hash_secret *secret, uint64_t tag, struct hash128 a,
                         struct hash128 b);
struct hash128 model_string_digest(const struct hash_secret *secret, const char *at, size_t len);
bool model_is_number(const json_t *v);
bool model_is_text(const json_t *v);
void model_add_member(const struct hash_secret *secret, struct atom *sum, const char *key,
                      struct atom value);
/* True if null counts as absent in the object under this key. */
bool model_is_typed(const char *key);
/* `typed`: model_is_typed() of the value's key. `media`: within an image. */
struct atom model_atom_in(const struct hash_secret *secret, const json_t *v, bool typed,
                          bool media);
struct atom model_atom_of(const struct hash_secret *secret, const json_t *v);

#endif
