/* What a command line or a file is of. */
#ifndef NODE_GVCTL_CONVERT_DETECT_INTERNAL_H
#define NODE_GVCTL_CONVERT_DETECT_INTERNAL_H

#include "node/gvctl/convert/convert_internal.h"

/* In the order of the page; NULL: there are no more. */
const struct convert_router *convert_router_at(unsigned i);
const struct convert_router *convert_router_find(const char *name);
/* By the program's name or the flags; NULL: it is none. */
const struct convert_router *convert_router_of(const json_t *words);
/* The command line of the first container of a manifest that is a router's; NULL: there is none.
 * The caller has it. */
json_t *convert_manifest_words(json_t *value, unsigned depth);

#endif
