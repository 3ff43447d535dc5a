/* Shared by prompt.c and prompt_join.c: which segments are heads, and of which segment. */
#ifndef HTTP_PROMPT_INTERNAL_H
#define HTTP_PROMPT_INTERNAL_H

#include "http/prompt.h"

enum {
    HTTP_PROMPT_LINES = 1 << HTTP_PROMPT_SYSTEM_LINE | 1 << HTTP_PROMPT_TEXT_LINE,
    HTTP_PROMPT_BLOCKS = 1 << HTTP_PROMPT_SYSTEM_BLOCK | 1 << HTTP_PROMPT_TEXT_BLOCK,
    HTTP_PROMPT_HEADS = HTTP_PROMPT_LINES | HTTP_PROMPT_BLOCKS | 1 << HTTP_PROMPT_HEADER,
};

/* Callers never pass -1 (no segment). */
static inline bool http_prompt_is_line(int segment)
{
    return (HTTP_PROMPT_LINES >> segment & 1) != 0;
}

static inline bool http_prompt_is_block(int segment)
{
    return (HTTP_PROMPT_BLOCKS >> segment & 1) != 0;
}

static inline bool http_prompt_is_head(int segment)
{
    return (HTTP_PROMPT_HEADS >> segment & 1) != 0;
}

/* The segment whose head is `segment`, or `segment` itself. */
static inline enum http_prompt_segment http_prompt_whole_of(int segment)
{
    if (segment == HTTP_PROMPT_TOOLS)
        return HTTP_PROMPT_TOOLS;
    return segment <= HTTP_PROMPT_SYSTEM ? HTTP_PROMPT_SYSTEM : HTTP_PROMPT_TEXT;
}

#endif
