/* A slow second implementation of http/skim.h: jansson parses the whole body, and a walk in
 * canonical order hashes byte by byte. The two share only base/hash.h.
 *
 * Numbers are needed as written, which jansson does not keep: jansson gets them as strings with
 * MODEL_NUMBER in front. */
#ifndef TESTS_LIB_SKIM_MODEL_H
#define TESTS_LIB_SKIM_MODEL_H

#include <jansson.h>

#include "base/chain.h"
#include "base/hash.h"
#include "base/rendering.h"

enum { MODEL_NUMBER = '\x01' };

/* NULL if jansson rejects the text, or if an object has a member twice. */
json_t *model_parse(const char *bytes, size_t len);

/* The chain of a body, an object of model_parse(), for an engine with this rendering. */
void model_chain(const struct hash_secret *secret, const json_t *body, struct rendering rendering,
                 struct chain *out);

#endif
