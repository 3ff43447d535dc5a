/* Content codings of bodies (RFC 9110, section 8.4): gzip (RFC 1952) and zstd (RFC 8878), decoded
 * as they stream.
 *
 *     http_coding_of(&head)                  the coding named by a head
 *     err = http_decoder_new(&d, coding);
 *     for each piece of the body, in any splits:
 *         do
 *             err = http_decoder_next(d, &piece, out, size, &made);
 *             use `made` bytes of `out`
 *         while (err == 0 && (piece.len > 0 || made == size));
 *     err = http_decoder_end(d);             after the last piece
 *     http_decoder_free(d);
 *
 * Several gzip members or zstd frames in a row form a single body (RFC 1952, 2.2; RFC 8878, 3.1).
 * Other bytes after them are malformed, and so is an end inside a member or frame.
 *
 * A few input bytes may expand to many. HTTP_CODING_RATIO_MAX bounds the output, beside the
 * caller's limit on bodies. HTTP_CODING_WINDOW_MAX bounds a zstd window, and so a decoder's memory
 * (RFC 9659 allows encoders no more).
 */
#ifndef HTTP_CODING_H
#define HTTP_CODING_H

#include "base/err.h"
#include "base/slice.h"
#include "http/head.h"

enum http_coding {
    HTTP_CODING_NONE, /* no coding, or identity */
    HTTP_CODING_GZIP,
    HTTP_CODING_ZSTD,
    HTTP_CODING_OTHER, /* an unsupported coding, or several codings */
    HTTP_CODINGS,
};

/* Value for Accept-Encoding. */
#define HTTP_CODINGS_ACCEPTED "gzip, zstd"

enum {
    /* Output bytes per input byte. Prompts of prose shrink to a third, those of code and JSON to a
     * tenth; gzip can expand a byte to 1,032 bytes, zstd to 30,000. */
    HTTP_CODING_RATIO_MAX = 100,
    HTTP_CODING_FREE_BYTES = 1024 * 1024,     /* the ratio is checked only after this many output
                                               * bytes: a repetitive prompt shrinks well, and costs
                                               * little */
    HTTP_CODING_WINDOW_MAX = 8 * 1024 * 1024, /* bytes of a zstd window */
};

/* The coding named by Content-Encoding; all Content-Encoding fields form a list. */
enum http_coding http_coding_of(const struct http_head *head);
/* The coding's name, such as "gzip"; "" for NONE and OTHER. */
const char *http_coding_name(enum http_coding coding);

struct http_decoder;

/* Makes a decoder. `coding` is GZIP or ZSTD. `trusted`: the ratio is not checked, and an empty
 * input decodes to nothing (as in curl and browsers, because servers send empty bodies).
 * ERR_NOMEM. */
MUST_USE int http_decoder_new(struct http_decoder **out, enum http_coding coding, bool trusted);
void http_decoder_free(struct http_decoder *d);

/* Takes bytes off the front of `in` and writes at most `size` (> 0) decoded bytes. Returns once
 * `in` is used up or `*made` is `size`. ERR_SYNTAX: malformed; ERR_LIMIT: the output exceeds the
 * ratio; ERR_RANGE: the window is too large; ERR_NOMEM. After an error `d` is unusable. */
MUST_USE int http_decoder_next(struct http_decoder *d, struct slice *in, char *out, size_t size,
                               size_t *made);
/* Tests if the input was complete. Call after the last input. ERR_SYNTAX: the input ends too
 * early. */
MUST_USE int http_decoder_end(const struct http_decoder *d);

/* The decoder's present memory, in bytes. */
size_t http_decoder_memory(const struct http_decoder *d);

#endif
