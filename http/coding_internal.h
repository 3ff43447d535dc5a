/* The adapters of the decoding libraries: zlib for gzip, libzstd for zstd. */
#ifndef HTTP_CODING_INTERNAL_H
#define HTTP_CODING_INTERNAL_H

#include "http/coding.h"

/* `*between` is set if the input so far is empty or ends with a complete member or frame. Errors as
 * http_decoder_next(). A call with input and output room makes progress in either. _new() returns
 * NULL if there is no memory. */
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
