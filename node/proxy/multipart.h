/* The model that a multipart body names: audio requests carry a file beside it. */
#ifndef NODE_PROXY_MULTIPART_H
#define NODE_PROXY_MULTIPART_H

#include "base/body.h"
#include "base/segment.h"

enum { MULTIPART_SEAM_BYTES = 2048 };

/* Value of the form field `model`, near the start of the body or its end (the field may come before
 * or after the file); or empty. `seam` has MULTIPART_SEAM_BYTES, for a field that lies across two
 * segments. The value is good as long as both. */
struct slice multipart_model(const struct body *body, char *seam);

#endif
