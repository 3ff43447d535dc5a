/* JSON of the admin port as tables for people. */
#ifndef NODE_GVCTL_SHOW_H
#define NODE_GVCTL_SHOW_H

#include "base/slice.h"

/* Each prints to stdout. ERR_SYNTAX if the text is not what it should be. */
int show_replicas(struct slice json);
int show_explain(struct slice json);

/* The message of an error body on stderr, or the body as it is. */
void show_error(int status, struct slice json);

#endif
