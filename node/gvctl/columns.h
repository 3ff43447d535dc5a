/* Lines that fit the terminal: columns as wide as the longest name, names cut in the middle,
 * wrapped sentences. If the output is not a terminal, nothing is cut or wrapped. */
#ifndef NODE_GVCTL_COLUMNS_H
#define NODE_GVCTL_COLUMNS_H

#include <jansson.h>

enum {
    COLUMNS_LEAST = 80,      /* assumed for a terminal with a smaller reported width, or none */
    COLUMNS_NAME_LEAST = 12, /* smallest width of a cut name */
    COLUMNS_TEXT_BYTES = 512,
};

/* Returns the terminal's width; 0: no terminal. */
unsigned columns_of_terminal(void);
/* Returns the width of the longest `key` in the list, at least `least`; limited to the terminal's
 * width less `others` columns. */
unsigned columns_width(const json_t *list, const char *key, unsigned least, unsigned others);
/* Returns `width`, or the terminal's width less `others` columns if smaller. */
unsigned columns_cap(unsigned width, unsigned others);
/* Returns the text in `width` columns: padded with blanks, or cut in the middle. */
const char *columns_fit(const char *text, unsigned width, char out[COLUMNS_TEXT_BYTES]);
/* Prints a sentence that begins in column `at`; further lines start below. */
void columns_wrap(const char *text, unsigned at);

#endif
