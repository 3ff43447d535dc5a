/* Completion scripts for shells, made from the tables of commands (command.h) and settings
 * (node/settings/options.h), and from templates (completion/, compiled in by embed.py).
 *
 * In a template, {{name}} is a value, and {{>name}} includes the template name.SHELL without the
 * last line break. {{#name}}...{{/name}} is repeated for each row of a list, or printed once for a
 * present value; {{^name}}...{{/name}} is printed for an absent value. A name missing in a row is
 * taken from the enclosing row. If a tag {{#name}} or {{^name}} stands at the end of a line, the
 * line breaks after both tags are dropped. completion.c defines the fields of rows. */
#ifndef NODE_GVCTL_COMPLETION_H
#define NODE_GVCTL_COMPLETION_H

#include <stdio.h>

#include "base/err.h"

struct completion_file {
    const char *name, *text;
};
extern const struct completion_file completion_files[]; /* ends with a NULL name */

/* Prints the script of `program` (gvctl or grapevine) for `shell` (bash, zsh or fish). Returns the
 * exit status; errors go to stderr. */
MUST_USE int completion(const char *shell, const char *program, FILE *to);

#endif
