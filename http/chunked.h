/* Decodes chunked bodies (RFC 9112, section 7.1) that arrive in arbitrary pieces, and writes
 * chunks.
 *
 *     http_chunked_init(&c);
 *     while (in.len > 0 && !c.done) {
 *         err = http_chunked_next(&c, in, &used, &data);
 *         if (err != 0)
 *             refuse and close: where the next message starts is unknown
 *         use data, a part of `in`;
 *         in = slice_skip(in, used);
 *     }
 *
 * Parsing is strict. Sizes are 1 to 16 hex digits and nothing else; every line ends in CRLF.
 * Extensions must be well-formed; they are limited in size and dropped. Trailers must be
 * well-formed fields, and allowed in trailers (never framing, routing or authentication); they are
 * limited in size and dropped.
 */
#ifndef HTTP_CHUNKED_H
#define HTTP_CHUNKED_H

#include "base/err.h"
#include "base/slice.h"
#include "http/limits.h"

struct http_chunked {
    bool done;     /* the last chunk and the trailers have arrived */
    uint8_t state; /* enum chunked_state, see chunked.c */
    uint8_t digits;
    uint8_t name_len;
    uint64_t left;                    /* bytes of the chunk's data, or the chunk's size so far */
    uint32_t extension;               /* bytes of this chunk's extensions */
    uint32_t extensions;              /* bytes of all chunks' extensions */
    uint32_t trailer;                 /* bytes of trailers */
    const char *error;                /* the reason, after an error */
    char name[HTTP_TRAILER_NAME_MAX]; /* name of the trailer being read */
};

void http_chunked_init(struct http_chunked *c);

/* Takes `*used` bytes off the front of `in` and sets `*data` (maybe empty) to the body bytes among
 * them, which lie in `in`. Stops at the end of a piece of data, at the end of `in`, or with
 * c->done. Leaves bytes behind the body, and takes none after c->done. ERR_SYNTAX; ERR_LIMIT:
 * extensions or trailers are too long. After an error `c` is unusable. */
MUST_USE int http_chunked_next(struct http_chunked *c, struct slice in, size_t *used,
                               struct slice *data);

/* Puts back the last `n` bytes of data from the latest http_chunked_next(): the next call gives
 * them again, before later bytes. */
void http_chunked_back(struct http_chunked *c, size_t n);

/* Writes the line in front of a chunk of `len` > 0 bytes and returns the line's length. CRLF
 * follows the data; HTTP_CHUNK_LAST follows the CRLF of the last chunk. */
size_t http_chunk_head_write(char out[HTTP_CHUNK_HEAD_MAX], uint64_t len);

#define HTTP_CHUNK_END  "\r\n"
#define HTTP_CHUNK_LAST "0\r\n\r\n"

#endif
