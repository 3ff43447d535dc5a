/* What the text of a JSON number (http/json.h) stands for. */
#ifndef HTTP_NUMBER_H
#define HTTP_NUMBER_H

#include "base/slice.h"

/* An integer, 1e3 and 5.0 too, as the engines read them. An integer beyond the range becomes the
 * bound that it passed. False: it is no integer, and `out` is unchanged. */
bool http_number_to_i64(struct slice number, int64_t *out);

/* Plain digits only: a token id. */
bool http_number_to_u32(struct slice number, uint32_t *out);

#endif
