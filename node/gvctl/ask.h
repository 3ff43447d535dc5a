/* Calls the admin port as the command line says, and shows the answer. */
#ifndef NODE_GVCTL_ASK_H
#define NODE_GVCTL_ASK_H

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"
#include "node/gvctl/call.h"
#include "node/gvctl/command.h"
#include "node/gvctl/given.h"

enum { ASK_TIMEOUT_S = 10 };

/* Makes the call of a command; `argument` is NULL if the call takes none. Returns the HTTP status,
 * or call_admin()'s result after a failure. */
MUST_USE int ask_command(const struct given *g, const struct command *c, const char *argument,
                         struct slice body, struct buf *out);
/* Returns the JSON of an answer, owned by the caller. For a table or sentences, control characters
 * are escaped (plain.h). NULL: not JSON. */
json_t *ask_parse(const struct given *g, struct slice text);
/* Appends ?NAME=VALUE, or &NAME=VALUE if the target has a query, and encodes special characters.
 * `name` may have more after a "=". NULL: nothing. */
MUST_USE int ask_query(struct buf *target, const char *name, const char *value);
/* Returns a GET with the command line's settings. */
struct call ask_call(const struct given *g, const char *target);
/* Sends a GET to the router of the command line. Returns the JSON of an answer with status 200. For
 * any other answer, returns NULL, sets `status` to call_admin()'s result, and prints the reason;
 * with `quiet` no failed call is reported. Appends the raw answer to `text`. */
json_t *ask_here(const struct given *g, const char *target, bool quiet, struct buf *text,
                 int *status);
/* As ask_here(), for a call without an argument. */
json_t *ask_json(const struct given *g, enum admin_call call, bool quiet);

/* Prints an answer in the requested format: as a table by the command's `show`, or with `sentence`,
 * if not NULL. Returns the exit status. */
MUST_USE int ask_show(const struct given *g, const struct command *c, struct slice answer,
                      const char *sentence);
/* Prints the message of an error body to stderr, or the raw body. */
void ask_error(int status, struct slice answer);
/* Reports an answer of an unexpected form. */
void ask_other(const struct given *g);

#endif
