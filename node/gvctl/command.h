/* The commands of gvctl and their options: which call of the admin port each makes
 * (node/admin/calls.h), what --help says of it, and what completion offers (completion.h). */
#ifndef NODE_GVCTL_COMMAND_H
#define NODE_GVCTL_COMMAND_H

#include <stdbool.h>
#include <stdio.h>

#include "base/slice.h"
#include "node/admin/calls.h"
#include "node/gvctl/show.h"

/* What carries it out (main.c). */
enum command_run {
    COMMAND_ASK,    /* its call, and the answer as a table */
    COMMAND_CHANGE, /* its call, which changes something, and a sentence (run.h) */
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

/* Which forms its output has beside a table, wide or not. */
enum command_forms {
    COMMAND_FORMS_ALL,   /* json and yaml */
    COMMAND_FORMS_NAMES, /* those, and name */
    COMMAND_FORMS_TEXT,  /* none: it prints a text or a screen */
    COMMAND_FORMS_YAML,  /* yaml, which its text is */
};

struct command {
    const char *name;
    const char *argument; /* "HOST:PORT", "[FILE]", "[WORD...]"; NULL: none */
    enum command_run run;
    enum admin_call call; /* INDEX, which no command shows: none */
    int (*show)(const struct show *how, const json_t *answer); /* NULL: the answer as it came */
    json_t *(*parse)(struct slice text);                       /* of an answer that is no JSON */
    const char *options; /* that not every command has, by blanks; NULL: none of them */
    enum command_forms forms;
    const char *help; /* a line */
    const char *more; /* sentences and examples for its own help, or NULL */
};

struct given_option;

/* NULL: there is no such command. */
const struct command *command_find(const char *name);
/* The i-th command in the order of --help; NULL: there are no more. */
const struct command *command_at(unsigned i);
/* Whether it is one of those that the command has and not every one. */
bool command_has_option(const struct command *c, const struct given_option *o);
/* What carries it out: a call that changes something says so itself. */
enum command_run command_runs(const struct command *c);
/* "": it takes none. */
const char *command_argument(const struct command *c);
/* How many arguments it takes. */
void command_arguments(const struct command *c, int *least, int *most);
bool command_reads_body(const struct command *c);
bool command_has_form(const struct command *c, enum show_format format);
/* Those that it has, in words. */
const char *command_forms_text(const struct command *c);
/* What --help prints. */
void command_usage(FILE *to);
/* What `gvctl help NAME` prints. */
void command_help(const struct command *c, FILE *to);

#endif
