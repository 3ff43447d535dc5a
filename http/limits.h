/* The limits of this folder that cannot be configured; struct http_limits has the others.
 * docs/limits.md says what happens at each. */
#ifndef HTTP_LIMITS_H
#define HTTP_LIMITS_H

enum {
    HTTP_FIELDS_MAX = 256,                  /* fields of one head */
    HTTP_CHUNK_HEAD_MAX = 18,               /* bytes: 16 digits and CRLF */
    HTTP_CHUNK_EXTENSION_BYTES_MAX = 1024,  /* bytes of the extensions of one chunk */
    HTTP_CHUNK_EXTENSIONS_BYTES_MAX = 8192, /* bytes of the extensions of all chunks of a body */
    HTTP_TRAILER_BYTES_MAX = 8192,          /* bytes of the whole trailer section */
    HTTP_TRAILER_NAME_MAX = 64,             /* bytes of one trailer's name */
    HTTP_JSON_DEPTH_MAX = 256,              /* nesting of a JSON value */
    HTTP_JSON_NUMBER_MAX = 128,             /* bytes of one number */
    HTTP_PROXY_HEADER_V1_MAX = 107,         /* bytes of a PROXY header, as its specification says */
    HTTP_PROXY_HEADER_V2_MAX = 4096,        /* bytes of a PROXY header with the fields that a
                                             * balancer adds */
    HTTP_SKIM_DEPTH_MAX = 64,   /* nesting of values that are read; skipped ones may go deeper */
    HTTP_SKIM_FIELD_MAX = 255,  /* bytes of a string member that are stored */
    HTTP_USAGE_ID_MAX = 127,    /* bytes of a response id that are stored */
    HTTP_USAGE_SHAPE_MAX = 512, /* bytes of a token event without its text: longer events are not
                                   learned */
    /* Points that a segment may have. Tools or system text of 70 KB and messages of 7 MB are
     * indexed step by step; the rest is only indexed as a whole. A first text of 24 KB or more is
     * no leading block. */
    HTTP_PROMPT_POINTS_SHORT = 96,
    HTTP_PROMPT_POINTS_TEXT = 256,
    HTTP_PROMPT_POINTS_BLOCK = 64,
    HTTP_PROMPT_POINTS_LINE = 2,
    HTTP_PROMPT_POINTS_HEADER = 2,
    HTTP_PROMPT_LINE_MAX = 512, /* bytes of a first line that is a segment */
};

#endif
