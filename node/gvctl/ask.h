/* A call to the admin port as the command line says, and its answer shown. */
#ifndef NODE_GVCTL_ASK_H
#define NODE_GVCTL_ASK_H

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"
#include "node/gvctl/call.h"
#include "node/gvctl/command.h"
#include "node/gvctl/given.h"

enum { ASK_TIMEOUT_S = 10 };

/* The call of a command, with what it is given; `argument` is NULL where it takes none. The status,
 * or what call_admin() returns for a failure. */
MUST_USE int ask_command(const struct given *g, const struct command *c, const char *argument,
                         struct slice body, struct buf *out);
/* The JSON of an answer, which the caller owns: for a table or sentences with nothing in it that a
 * terminal would obey (plain.h). NULL: it is none. */
json_t *ask_parse(const struct given *g, struct slice text);
/* A GET with what the command line says. */
struct call ask_call(const struct given *g, const char *target);
/* A GET at the router of the command line; the JSON of status 200, or NULL with what call_admin()
 * returned in `status`: why is printed, but with `quiet` not what went wrong in a call. The answer
 * as it came is appended to `text`. */
json_t *ask_here(const struct given *g, const char *target, bool quiet, struct buf *text,
                 int *status);
/* The same, of a call without an argument. */
json_t *ask_json(const struct given *g, enum admin_call call, bool quiet);

/* Prints an answer in the format that is wanted; as a table by the command's `show`, or with
 * `sentence`, where that is not NULL. The exit status. */
MUST_USE int ask_show(const struct given *g, const struct command *c, struct slice answer,
                      const char *sentence);
/* The message of an error body on stderr, or the body as it is. */
void ask_error(int status, struct slice answer);
/* The answer is not what it should be. */
void ask_other(const struct given *g);

#endif
