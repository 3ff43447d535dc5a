/* Sentences made from patterns: "Replica {replica} failed[: {error}]."
 *
 *   {field}   is replaced by the text that `put` appends for the field's name
 *   [...]     is left out if `put` returned false for a field in it
 *
 * A full stop after another, or after a question mark, is left out. Text without room is cut.
 */
#ifndef NODE_ADMIN_FILL_H
#define NODE_ADMIN_FILL_H

#include <stdbool.h>

#include "base/slice.h"

struct admin_fill {
    char *at; /* `size` bytes, always with a NUL after `len` */
    size_t size, len;
};

/* Begins an empty text. `out` is borrowed until the last call. */
struct admin_fill admin_fill_begin(char *out, size_t size);
/* Appends as much as has room. */
void admin_fill_put(struct admin_fill *t, struct slice s);

/* Appends the field's value. False: the field is missing, empty or 0. */
typedef bool admin_fill_field(void *context, struct slice field, struct admin_fill *to);
void admin_fill_pattern(struct admin_fill *t, const char *pattern, admin_fill_field *put,
                        void *context);

#endif
