/* Finds the model in a multipart body: audio requests send the model and a file. */
#ifndef HTTP_MULTIPART_H
#define HTTP_MULTIPART_H

#include "base/body.h"
#include "base/segment.h"

enum { HTTP_MULTIPART_SEAM_BYTES = 2048 };

/* Value of the form field `model`, or empty. Searches near the start and the end of the body,
 * because the field may come before or after the file. `seam` has HTTP_MULTIPART_SEAM_BYTES, for a
 * field across two segments. The value is valid as long as `body` and `seam`. `at`: the value's
 * offset in the body. */
struct slice http_multipart_model(const struct body *body, char *seam, uint64_t *at);

#endif
