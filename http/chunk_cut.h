/* Content-defined chunking of text with a gear hash (Xia et al., FastCDC, USENIX ATC 2016). Cuts
 * depend on the text, not on the position: a document gives the same chunks in every prompt, except
 * at the document's two ends.
 *
 * A cut is made where the hash of the 64 bytes before meets a condition, but at least
 * HTTP_CHUNK_BYTES_MIN and at most HTTP_CHUNK_BYTES_MAX after the last cut. The average chunk has
 * about 1,500 bytes, or 400 tokens of English.
 */
#ifndef HTTP_CHUNK_CUT_H
#define HTTP_CHUNK_CUT_H

#include <stddef.h>

enum { HTTP_CHUNK_BYTES_MIN = 512, HTTP_CHUNK_BYTES_MAX = 4096 };

/* Length of the chunk that begins at `at`; 0: the chunk does not end within `len` bytes. */
size_t http_chunk_cut(const char *at, size_t len);

#endif
