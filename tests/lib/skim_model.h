/* What http/skim.h promises, said again the slow way: the whole body is parsed by jansson, walked
 * in canonical order, and hashed byte by byte. Shares only base/hash.h with the real one.
 *
 * Numbers are needed as they were written, which jansson does not keep: they are handed to it as
 * strings that begin with MODEL_NUMBER. */
#ifndef TESTS_LIB_SKIM_MODEL_H
#define TESTS_LIB_SKIM_MODEL_H

#include <jansson.h>

#include "base/chain.h"
#include "base/hash.h"
#include "base/rendering.h"

enum { MODEL_NUMBER = '\x01' };

/* NULL if jansson refuses it, or if an object has a member twice. */
json_t *model_parse(const char *bytes, size_t len);

/* The chain of a body, an object of model_parse(), for an engine that renders it so. */
void model_chain(const struct hash_secret *secret, const json_t *body, struct rendering rendering,
                 struct chain *out);

#endif
