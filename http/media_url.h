/* URLs of images and the like, and what signs them.
 *
 * A store hands out a URL that is good for some minutes: a query of parameters that sign the path
 * (AWS S3, CloudFront, Google, Azure, Alibaba, Tencent, Volcengine). Engines load what is there and
 * know it by its content (vLLM, SGLang: a hash of the bytes or of the decoded item), so two
 * signatures of one path are one image. Parameters that do not sign stay: they may choose a version
 * or a size.
 */
#ifndef HTTP_MEDIA_URL_H
#define HTTP_MEDIA_URL_H

#include <stdbool.h>
#include <stddef.h>

/* Takes out, in place, what signs an http(s) URL, and says whether anything did. Other text stays.
 * The text may end within the URL: a parameter that is cut there is judged by what there is of its
 * name. Returns the length that is left. */
size_t http_media_url_trim(char *at, size_t len, bool *is_signed);

#endif
