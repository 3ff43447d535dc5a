/* How large an image is, read off the beginning of its file in base64: PNG, JPEG, GIF, WebP. */
#ifndef HTTP_IMAGE_H
#define HTTP_IMAGE_H

#include <stdint.h>

#include "base/slice.h"

enum { HTTP_IMAGE_KILOPIXELS_MAX = 16000 }; /* what is larger counts as this */

/* `text` is the beginning of a data URL, or of base64. Thousands of pixels, at least 1; 0: unknown.
 * Of a JPEG it is where no long metadata stands before it. */
uint32_t http_image_kilopixels(struct slice text);

#endif
