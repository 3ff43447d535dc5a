/* One coding each: an adapter of the library that decodes it. */
#ifndef HTTP_CODING_INTERNAL_H
#define HTTP_CODING_INTERNAL_H

#include "http/coding.h"

/* `*between`: what came so far ends a member or frame, or is nothing; ERR_* as http_decoder_next().
 * A call that is given room and input uses some of either. NULL from _new: no memory. */
void *http_gzip_new(void);
void http_gzip_free(void *state);
MUST_USE int http_gzip_next(void *state, struct slice *in, char *out, size_t size, size_t *made,
                            bool *between);
size_t http_gzip_memory(const void *state);

void *http_zstd_new(void);
void http_zstd_free(void *state);
MUST_USE int http_zstd_next(void *state, struct slice *in, char *out, size_t size, size_t *made,
                            bool *between);
size_t http_zstd_memory(const void *state);

#endif
