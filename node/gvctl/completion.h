/* Completion scripts for shells, made from the tables of commands (command.h) and of settings
 * (node/settings/options.h). */
#ifndef NODE_GVCTL_COMPLETION_H
#define NODE_GVCTL_COMPLETION_H

#include <stdio.h>

#include "base/err.h"

/* Prints the script of `program` (gvctl or grapevine) for `shell` (bash, zsh or fish). The exit
 * status; what is wrong with either stands on stderr. */
MUST_USE int completion(const char *shell, const char *program, FILE *to);

#endif
