/* Lines that fit the terminal: columns as wide as their longest name, names that are cut in their
 * middle, sentences that are wrapped. Where output is no terminal nothing is cut or wrapped. */
#ifndef NODE_GVCTL_COLUMNS_H
#define NODE_GVCTL_COLUMNS_H

#include <jansson.h>

enum {
    COLUMNS_LEAST = 80,      /* of a terminal that says less, or nothing */
    COLUMNS_NAME_LEAST = 12, /* a name is cut to no less */
    COLUMNS_TEXT_BYTES = 512,
};

/* The terminal's width; 0: output is none. */
unsigned columns_of_terminal(void);
/* That of the longest `key` in the list, at least `least`; beside `others` columns of the terminal
 * it fits. */
unsigned columns_width(const json_t *list, const char *key, unsigned least, unsigned others);
/* So wide a column, or what there is room for beside `others`. */
unsigned columns_cap(unsigned width, unsigned others);
/* The text in so many columns: filled up with blanks, or cut in its middle. */
const char *columns_fit(const char *text, unsigned width, char out[COLUMNS_TEXT_BYTES]);
/* Prints a sentence that begins in column `at`, further lines below its beginning. */
void columns_wrap(const char *text, unsigned at);

#endif
