/* Reads an image's size from the beginning of the file in base64: PNG, JPEG, GIF, WebP. */
#ifndef HTTP_IMAGE_H
#define HTTP_IMAGE_H

#include <stdint.h>

#include "base/slice.h"

enum { HTTP_IMAGE_KILOPIXELS_MAX = 16000 }; /* larger images count as this */

/* `text` is the beginning of a data URL, or of base64. Returns thousands of pixels, at least 1; 0:
 * unknown. A JPEG's size is found unless long metadata comes first. */
uint32_t http_image_kilopixels(struct slice text);

#endif
