/* `gvctl convert`: turns another router's command line or configuration into Grapevine's
 * settings. */
#ifndef NODE_GVCTL_CONVERT_CONVERT_H
#define NODE_GVCTL_CONVERT_CONVERT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "base/slice.h"

struct convert_input {
    const char *from;         /* the router's name in the tables; NULL: detected */
    const char *const *words; /* a command line; NULL: convert `text` */
    unsigned word_count;      /* 0 if there are no `words` */
    struct slice text;        /* contents of a file: a command line, a manifest, or a
                               * configuration */
    const char *file;         /* name of the file, or "standard input" */
    bool strict;              /* exit status 1 if anything needs manual work or has no
                               * counterpart */
};

/* Prints YAML, and a summary to stderr. Returns the exit status; 2: unknown input. */
MUST_USE int convert(const struct convert_input *input, FILE *to);
/* Prints docs/from-other-routers.md, from the tables. */
void convert_page(FILE *to);

#endif
