/* Describes a text (struct chain_content) by counting bytes in classes of values. Vector
 * instructions make this cheaper than the hash of the same bytes. */
#ifndef HTTP_CONTENT_H
#define HTTP_CONTENT_H

#include <stddef.h>

#include "base/chain.h"

void http_content_count(struct chain_content *content, const char *at, size_t len);

static inline void http_content_add(struct chain_content *to, const struct chain_content *more)
{
    to->letters += more->letters;
    to->spaces += more->spaces;
    to->digits += more->digits;
    to->marks += more->marks;
    to->wide += more->wide;
    to->leads += more->leads;
    to->sized = (uint16_t)(to->sized + more->sized);
    to->kilopixels += more->kilopixels;
    for (unsigned i = 0; i < CHAIN_MEDIA; i++)
        to->media[i] = (uint16_t)(to->media[i] + more->media[i]);
}

#endif
