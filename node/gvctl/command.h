/* The commands of gvctl and their options: each command's call of the admin port
 * (node/admin/calls.h), the text of --help, and the words for completion (completion.h). */
#ifndef NODE_GVCTL_COMMAND_H
#define NODE_GVCTL_COMMAND_H

#include <stdbool.h>
#include <stdio.h>

#include "base/slice.h"
#include "node/admin/calls.h"
#include "node/gvctl/show.h"

/* Kinds of execution (main.c). */
enum command_run {
    COMMAND_ASK,    /* makes the command's call and shows the answer as a table */
    COMMAND_CHANGE, /* makes the command's call, a change, and prints a sentence (run.h) */
    COMMAND_CONVERGENCE,
    COMMAND_STATUS,
    COMMAND_TOP,
    COMMAND_DECISIONS,
    COMMAND_EVENTS,
    COMMAND_KEY,
    COMMAND_KEYGEN,
    COMMAND_CONVERT,
    COMMAND_COMPLETION,
    COMMAND_HELP,
    COMMAND_VERSION,
};

/* Output formats besides a table. */
enum command_forms {
    COMMAND_FORMS_ALL,   /* json and yaml */
    COMMAND_FORMS_NAMES, /* json, yaml and name */
    COMMAND_FORMS_TEXT,  /* none: the output is a text or a screen */
    COMMAND_FORMS_YAML,  /* yaml, the form of the answer's text */
};

struct command {
    const char *name;
    const char *argument; /* "HOST:PORT", "[FILE]", "[WORD...]"; NULL: none */
    enum command_run run;
    enum admin_call call;                                      /* INDEX: the command makes no
                                                                * call */
    int (*show)(const struct show *how, const json_t *answer); /* NULL: the raw answer */
    json_t *(*parse)(struct slice text);                       /* for an answer not in JSON */
    const char *options; /* options not common to all commands, separated by blanks; NULL: none */
    enum command_forms forms;
    const char *help; /* a single line */
    const char *more; /* sentences and examples for `gvctl help NAME`, or NULL */
};

struct given_option;

/* Returns the command of this name; NULL: none. */
const struct command *command_find(const char *name);
/* Returns the i-th command in the order of --help; NULL: no more. */
const struct command *command_at(unsigned i);
/* True for an option of this command not common to all commands. */
bool command_has_option(const struct command *c, const struct given_option *o);
/* Returns the kind of execution: a call with changes implies COMMAND_CHANGE. */
enum command_run command_runs(const struct command *c);
/* Returns the command's argument as in --help; "" if it takes none. */
const char *command_argument(const struct command *c);
/* Sets the least and the greatest number of arguments. */
void command_arguments(const struct command *c, int *least, int *most);
bool command_reads_body(const struct command *c);
bool command_has_form(const struct command *c, enum show_format format);
/* Lists the command's output formats, in words. */
const char *command_forms_text(const struct command *c);
/* Prints the text of --help. */
void command_usage(FILE *to);
/* Prints the text of `gvctl help NAME`. */
void command_help(const struct command *c, FILE *to);

#endif
