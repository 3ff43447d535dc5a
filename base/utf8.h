/* UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates, nothing beyond U+10FFFF. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include "base/slice.h"

/* Bytes of the character at the front of `s` (not empty), or 0 if there is none. */
size_t utf8_length(struct slice s);

#endif
