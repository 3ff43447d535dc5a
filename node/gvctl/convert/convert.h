/* `gvctl convert`: what starts another router, as settings of this one. */
#ifndef NODE_GVCTL_CONVERT_CONVERT_H
#define NODE_GVCTL_CONVERT_CONVERT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "base/slice.h"

struct convert_input {
    const char *from;         /* the router's name in the tables; NULL: by what is there */
    const char *const *words; /* a command line, or */
    unsigned word_count;      /* (0) */
    struct slice text;        /* the contents of a file: one, a manifest, or a configuration */
    const char *file;         /* its name, or "standard input" */
    bool strict;              /* what is by hand or has no counterpart makes the exit status 1 */
};

/* Prints YAML, and a summary to stderr. The exit status; 2: it is not known what that is. */
MUST_USE int convert(const struct convert_input *input, FILE *to);
/* docs/from-other-routers.md, from the tables. */
void convert_page(FILE *to);

#endif
