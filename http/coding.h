/* Content codings of bodies (RFC 9110, section 8.4): gzip (RFC 1952) and zstd (RFC 8878),
 * decoded while they stream by.
 *
 *     http_coding_of(&head)                  which one a head names
 *     err = http_decoder_new(&d, coding);
 *     for each piece of the body, in any splits:
 *         do
 *             err = http_decoder_next(d, &piece, out, size, &made);
 *             use `made` bytes of `out`
 *         while (err == 0 && (piece.len > 0 || made == size));
 *     err = http_decoder_end(d);             after the last piece
 *     http_decoder_free(d);
 *
 * Several gzip members or zstd frames, one behind the other, are one body, as RFC 1952 (2.2) and
 * RFC 8878 (3.1) say. What lies behind them, or ends in the middle of one, is malformed.
 *
 * A few bytes may stand for many. So what comes out is bounded by HTTP_CODING_RATIO_MAX, beside the
 * caller's limit on bodies, and a zstd window by HTTP_CODING_WINDOW_MAX: that is how much memory
 * the decoder of a body may need (RFC 9659 allows encoders no more).
 */
#ifndef HTTP_CODING_H
#define HTTP_CODING_H

#include "base/err.h"
#include "base/slice.h"
#include "http/head.h"

enum http_coding {
    HTTP_CODING_NONE, /* or identity */
    HTTP_CODING_GZIP,
    HTTP_CODING_ZSTD,
    HTTP_CODING_OTHER, /* none that is decoded here; or several */
    HTTP_CODINGS,
};

/* For Accept-Encoding. */
#define HTTP_CODINGS_ACCEPTED "gzip, zstd"

enum {
    /* Of what comes out to what went in. Prompts of prose shrink to a third, those of code and JSON
     * to a tenth; gzip can write 1,032 bytes as one, zstd 30,000. */
    HTTP_CODING_RATIO_MAX = 100,
    HTTP_CODING_FREE_BYTES = 1024 * 1024, /* that come out before the ratio counts: a prompt that
                                             repeats itself shrinks well, and costs little */
    HTTP_CODING_WINDOW_MAX = 8 * 1024 * 1024, /* bytes */
};

/* By Content-Encoding; all fields of that name are one list. */
enum http_coding http_coding_of(const struct http_head *head);
/* "gzip"; "" for NONE and OTHER. */
const char *http_coding_name(enum http_coding coding);

struct http_decoder;

/* GZIP or ZSTD. `trusted`: the ratio is not judged, and nothing at all stands for nothing (as curl
 * and browsers have it, for servers send that). ERR_NOMEM. */
MUST_USE int http_decoder_new(struct http_decoder **out, enum http_coding coding, bool trusted);
void http_decoder_free(struct http_decoder *d);

/* Takes bytes off the front of `in` and writes at most `size` (> 0) of what they stand for. Either
 * `in` is used up or `*made` is `size`. ERR_SYNTAX: malformed; ERR_LIMIT: more comes out than the
 * ratio allows; ERR_RANGE: the window is too large; ERR_NOMEM. `d` is then spent. */
MUST_USE int http_decoder_next(struct http_decoder *d, struct slice *in, char *out, size_t size,
                               size_t *made);
/* There is no more input. ERR_SYNTAX: it ends too early. */
MUST_USE int http_decoder_end(const struct http_decoder *d);

/* Bytes of memory that it holds now. */
size_t http_decoder_memory(const struct http_decoder *d);

#endif
