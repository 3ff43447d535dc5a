/* JSON of the admin port as tables for people. */
#ifndef NODE_GVCTL_SHOW_H
#define NODE_GVCTL_SHOW_H

#include <stdbool.h>

#include "base/err.h"
#include "base/slice.h"

/* Each prints to stdout. ERR_SYNTAX if the text is not what it should be. */
MUST_USE int show_replicas(struct slice json);
MUST_USE int show_sources(struct slice json);
MUST_USE int show_queue(struct slice json);
MUST_USE int show_poison(struct slice json);
MUST_USE int show_explain(struct slice json);
MUST_USE int show_explain_all(struct slice json);
MUST_USE int show_members(struct slice json);
/* `members`: so many routers are wanted; 0: any number. */
MUST_USE int show_convergence(struct slice json, unsigned members);

/* Whether a /convergence says that all routers hold the same, and that they are at least so many.
 */
bool show_convergence_equal(struct slice json, unsigned members);

/* The message of an error body on stderr, or the body as it is. */
void show_error(int status, struct slice json);

#endif
