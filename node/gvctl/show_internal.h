/* What the files that show JSON share. */
#ifndef NODE_GVCTL_SHOW_INTERNAL_H
#define NODE_GVCTL_SHOW_INTERNAL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/slice.h"
#include "node/gvctl/fields.h"
#include "node/gvctl/show.h"
#include "node/gvctl/table.h"

static inline void show_table(const struct show *how, struct table *t,
                              const struct table_column *columns, size_t count)
{
    table_init(t, columns, count, how->wide || how->verbose);
}

#endif
