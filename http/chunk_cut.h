/* Where text is cut into chunks by what it says, not by where it stands (content-defined chunking
 * with a gear hash; Xia et al., FastCDC, USENIX ATC 2016). The same document falls into the same
 * chunks in every prompt, but for the ones at its ends.
 *
 * A cut depends on the last 64 bytes before it. It comes where their hash says so, after
 * HTTP_CHUNK_BYTES_MIN at the earliest and HTTP_CHUNK_BYTES_MAX at the latest; on average a chunk
 * has some 1,500 bytes, about 400 tokens of English.
 */
#ifndef HTTP_CHUNK_CUT_H
#define HTTP_CHUNK_CUT_H

#include <stddef.h>

enum { HTTP_CHUNK_BYTES_MIN = 512, HTTP_CHUNK_BYTES_MAX = 4096 };

/* Bytes of the chunk that begins at `at`; 0: it has no end within `len` bytes. */
size_t http_chunk_cut(const char *at, size_t len);

#endif
