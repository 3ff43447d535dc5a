/* Completion scripts for shells, made of the tables of commands (command.h) and of settings
 * (node/settings/options.h), and of templates (completion/, compiled in by embed.py).
 *
 * In a template {{name}} is a value, {{>name}} the template name.SHELL without its last line break,
 * {{#name}}...{{/name}} is there for each row of a list, or once for a value that is there, and
 * {{^name}}...{{/name}} for one that is not. A name that the row has not is that of the row around
 * it. Where such a part begins at the end of a line, the line breaks behind its two tags do not
 * count. What the rows have: completion.c.
 */
#ifndef NODE_GVCTL_COMPLETION_H
#define NODE_GVCTL_COMPLETION_H

#include <stdio.h>

#include "base/err.h"

struct completion_file {
    const char *name, *text;
};
extern const struct completion_file completion_files[]; /* its last name is NULL */

/* Prints the script of `program` (gvctl or grapevine) for `shell` (bash, zsh or fish). The exit
 * status; what is wrong with either stands on stderr. */
MUST_USE int completion(const char *shell, const char *program, FILE *to);

#endif
