/* The fixed limits of this folder; struct http_limits has the configurable limits. docs/limits.md
 * describes the effect of each limit. */
#ifndef HTTP_LIMITS_H
#define HTTP_LIMITS_H

enum {
    HTTP_FIELDS_MAX = 256,                  /* fields of a head */
    HTTP_CHUNK_HEAD_MAX = 18,               /* bytes: 16 digits and CRLF */
    HTTP_CHUNK_EXTENSION_BYTES_MAX = 1024,  /* bytes of the extensions of a chunk */
    HTTP_CHUNK_EXTENSIONS_BYTES_MAX = 8192, /* bytes of the extensions of all chunks of a body */
    HTTP_TRAILER_BYTES_MAX = 8192,          /* bytes of the whole trailer section */
    HTTP_TRAILER_NAME_MAX = 64,             /* bytes of a trailer's name */
    HTTP_JSON_DEPTH_MAX = 256,              /* nesting of a JSON value */
    HTTP_JSON_NUMBER_MAX = 128,             /* bytes of a number */
    HTTP_PROXY_HEADER_V1_MAX = 107,         /* bytes of a PROXY header, by the specification */
    HTTP_PROXY_HEADER_V2_MAX = 4096,        /* bytes of a PROXY header with a balancer's fields */
    HTTP_SKIM_DEPTH_MAX = 64,   /* nesting of values to read; skipped values may go deeper */
    HTTP_SKIM_FIELD_MAX = 255,  /* stored bytes of a string member */
    HTTP_USAGE_ID_MAX = 127,    /* stored bytes of a response id */
    HTTP_USAGE_SHAPE_MAX = 512, /* bytes of a token event without the text; longer events are not
                                   learned */
    /* Most points of a segment. Tools or system text of 70 KB and messages of 7 MB are indexed step
     * by step; the rest is only indexed as a whole. A first text of 24 KB or more is no leading
     * block. */
    HTTP_PROMPT_POINTS_SHORT = 96,
    HTTP_PROMPT_POINTS_TEXT = 256,
    HTTP_PROMPT_POINTS_BLOCK = 64,
    HTTP_PROMPT_POINTS_LINE = 2,
    HTTP_PROMPT_POINTS_HEADER = 2,
    HTTP_PROMPT_LINE_MAX = 512, /* bytes of a first line that is a segment */
};

#endif
