/* Shared by the files that show JSON. */
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

#endif
