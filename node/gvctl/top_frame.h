/* A frame of `gvctl top`, as text. */
#ifndef NODE_GVCTL_TOP_FRAME_H
#define NODE_GVCTL_TOP_FRAME_H

#include <stdio.h>

#include "node/gvctl/survey.h"

/* Writes lines of any width; rates are since `before` (NULL: no rates). */
void top_frame(const struct given *g, const struct survey *now, const struct survey *before,
               FILE *to);

#endif
