/* Finds a name in a short constant table by length, first byte and last byte:
 *
 *     for (unsigned i = http_names_first(&names, name); i != 0; i = names.next[i])
 *         ...                                       compare with row i - 1 of the table
 */
#ifndef HTTP_NAMES_H
#define HTTP_NAMES_H

#include "base/check.h"
#include "base/slice.h"

enum { HTTP_NAMES_PLACES = 64, HTTP_NAMES_MAX = 60 };

/* A hash table of row numbers; all zero at first. */
struct http_names {
    uint8_t first[HTTP_NAMES_PLACES]; /* by hash: number, from 1 on, of the first row with this
                                       * hash; 0: none */
    uint8_t next[HTTP_NAMES_MAX + 1];
};

/* Hash of a name, which must not be empty. */
static inline unsigned http_names_place(struct slice name)
{
    unsigned ends = (unsigned char)name.at[0] + 5U * (unsigned char)name.at[name.len - 1];
    return (ends + 11 * (unsigned)name.len) % HTTP_NAMES_PLACES;
}

/* Adds a row. Add rows from the last to the first: then the first of two equal rows is found
 * first. */
static inline void http_names_put(struct http_names *n, unsigned row, struct slice name)
{
    CHECK(row < HTTP_NAMES_MAX && name.len > 0);
    uint8_t *first = &n->first[http_names_place(name)];
    n->next[row + 1] = *first;
    *first = (uint8_t)(row + 1);
}

static inline unsigned http_names_first(const struct http_names *n, struct slice name)
{
    return name.len == 0 ? 0 : n->first[http_names_place(name)];
}

#endif
