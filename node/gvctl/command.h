/* The commands of gvctl: which call of the admin port each makes (node/admin/calls.h), and what
 * --help says of it. */
#ifndef NODE_GVCTL_COMMAND_H
#define NODE_GVCTL_COMMAND_H

#include <stdbool.h>
#include <stdio.h>

#include "base/slice.h"
#include "node/admin/calls.h"

/* Options that not every command has. */
enum { OF_EXPLAIN = 1, OF_CONVERGENCE = 2, OF_ADD = 4, OF_KEYGEN = 8 };

struct command {
    const char *name;
    enum admin_call call;           /* ADMIN_CALL_COUNT: none, it needs no router */
    int (*show)(struct slice json); /* NULL: the answer as it came */
    unsigned options;               /* that it has */
};

/* NULL: there is no such command. */
const struct command *command_find(const char *name);
bool command_wants_argument(const struct command *c);
bool command_reads_body(const struct command *c);
/* What --help prints. */
void command_usage(FILE *to);

#endif
