/* Converts the text of a JSON number (http/json.h). */
#ifndef HTTP_NUMBER_H
#define HTTP_NUMBER_H

#include "base/slice.h"

/* Reads an integer, even if written as 1e3 or 5.0, like the engines. A number of digits only that
 * exceeds the range becomes the nearest bound. False: not an integer, or 1e19 and the like; `out`
 * is unchanged. */
bool http_number_to_i64(struct slice number, int64_t *out);

/* Reads a token id, which has plain digits only. False: no such id, and `out` may be changed. */
bool http_number_to_u32(struct slice number, uint32_t *out);

#endif
