/* The limits of this room that cannot be configured; the rest is in struct http_limits. What
 * happens at each: docs/limits.md. */
#ifndef HTTP_LIMITS_H
#define HTTP_LIMITS_H

enum {
    HTTP_FIELDS_MAX = 256,                  /* of one head */
    HTTP_CHUNK_HEAD_MAX = 18,               /* bytes: 16 digits and CRLF */
    HTTP_CHUNK_EXTENSION_BYTES_MAX = 1024,  /* of one chunk */
    HTTP_CHUNK_EXTENSIONS_BYTES_MAX = 8192, /* of all chunks of a body together */
    HTTP_TRAILER_BYTES_MAX = 8192,          /* of the whole trailer section */
    HTTP_TRAILER_NAME_MAX = 64,             /* bytes of one trailer's name */
    HTTP_JSON_DEPTH_MAX = 256,              /* nesting */
    HTTP_JSON_NUMBER_MAX = 128,             /* bytes of one number */
    HTTP_PROXY_HEADER_V1_MAX = 107,         /* bytes of a PROXY header: the specification's */
    HTTP_PROXY_HEADER_V2_MAX = 4096,        /* with what a balancer adds to the addresses */
    HTTP_SKIM_DEPTH_MAX = 64,   /* nesting of values that are read; skipped ones may go deeper */
    HTTP_SKIM_FIELD_MAX = 255,  /* bytes of a string member that are kept */
    HTTP_USAGE_ID_MAX = 127,    /* bytes of the id of a response that is kept */
    HTTP_USAGE_SHAPE_MAX = 512, /* of a token event without its text: longer ones are not learned */
    /* Points a segment may have: 70 KB of tools or system text and 7 MB of messages are indexed
     * step by step, the rest only as a whole. A first text of 24 KB is no leading block. */
    HTTP_PROMPT_POINTS_SHORT = 96,
    HTTP_PROMPT_POINTS_TEXT = 256,
    HTTP_PROMPT_POINTS_BLOCK = 64,
    HTTP_PROMPT_POINTS_LINE = 2,
    HTTP_PROMPT_POINTS_HEADER = 2,
    HTTP_PROMPT_LINE_MAX = 512, /* bytes of a first line that is a segment */
};

#endif
