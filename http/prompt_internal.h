/* What prompt.c and prompt_join.c share: which segments are whose head. */
#ifndef HTTP_PROMPT_INTERNAL_H
#define HTTP_PROMPT_INTERNAL_H

#include "http/prompt.h"

static inline bool http_prompt_is_line(int segment)
{
    return segment == HTTP_PROMPT_SYSTEM_LINE || segment == HTTP_PROMPT_TEXT_LINE;
}

static inline bool http_prompt_is_block(int segment)
{
    return segment == HTTP_PROMPT_SYSTEM_BLOCK || segment == HTTP_PROMPT_TEXT_BLOCK;
}

static inline bool http_prompt_is_head(int segment)
{
    return http_prompt_is_line(segment) || http_prompt_is_block(segment) ||
           segment == HTTP_PROMPT_HEADER;
}

/* The segment that `segment` is the head of, or itself. */
static inline enum http_prompt_segment http_prompt_whole_of(int segment)
{
    if (segment == HTTP_PROMPT_TOOLS)
        return HTTP_PROMPT_TOOLS;
    return segment <= HTTP_PROMPT_SYSTEM ? HTTP_PROMPT_SYSTEM : HTTP_PROMPT_TEXT;
}

#endif
