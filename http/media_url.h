/* Removes signatures from URLs of images and other media.
 *
 * Object stores hand out URLs that are valid for some minutes: query parameters sign the path (AWS
 * S3, CloudFront, Google, Azure, Alibaba, Tencent, Volcengine). Engines identify the file by the
 * content (vLLM, SGLang: a hash of the bytes or of the decoded item). So two URLs with no
 * difference but the signature are the same image. Other parameters stay: they may choose a version
 * or a size.
 */
#ifndef HTTP_MEDIA_URL_H
#define HTTP_MEDIA_URL_H

#include <stdbool.h>
#include <stddef.h>

/* Removes, in place, the signature of an http(s) URL, and sets `*is_signed` if there was any. Other
 * text stays. The text may end within the URL: a parameter cut there is judged by the visible part
 * of the name. Returns the remaining length. */
size_t http_media_url_trim(char *at, size_t len, bool *is_signed);

#endif
