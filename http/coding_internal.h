/* One coding each: an adapter of the library that decodes it. */
#ifndef HTTP_CODING_INTERNAL_H
#define HTTP_CODING_INTERNAL_H

#include "http/coding.h"

/* `*between`: what came so far ends a member or frame, or is nothing; ERR_* as http_decoder_next().
 * A call that is given room and input uses some of either. NULL from _new: no memory. */
void *coding_gzip_new(void);
void coding_gzip_free(void *state);
MUST_USE int coding_gzip_next(void *state, struct slice *in, char *out, size_t size, size_t *made,
                              bool *between);
size_t coding_gzip_memory(const void *state);

void *coding_zstd_new(void);
void coding_zstd_free(void *state);
MUST_USE int coding_zstd_next(void *state, struct slice *in, char *out, size_t size, size_t *made,
                              bool *between);
size_t coding_zstd_memory(const void *state);

#endif
