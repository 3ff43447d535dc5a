/* What skim.c and skim_string.c share. */
#ifndef HTTP_SKIM_INTERNAL_H
#define HTTP_SKIM_INTERNAL_H

#include "http/skim.h"

/* Where the string being read goes. */
enum http_skim_text { HTTP_SKIM_TO_NOWHERE, HTTP_SKIM_TO_PROMPT, HTTP_SKIM_TO_SCRATCH };

/* The string that begins now goes to the scratch. */
void http_skim_scratch_start(struct http_skim *s);
/* The whole string; empty, and so no known name, if it is longer than the scratch. Borrowed until
 * the next one. */
struct slice http_skim_scratch_text(const struct http_skim *s);
/* The hash of the whole string, however long. */
struct hash128 http_skim_scratch_digest(struct http_skim *s);
/* The same of text that may be the URL of an image or the like: without what signs it. */
struct hash128 http_skim_url_digest(struct http_skim *s);
/* It is whole, the value of a field, and ends at `end` of the body. */
void http_skim_field_store(struct http_skim *s, uint64_t end);
/* A member of a content part is complete: counts it if it is an image or the like. */
void http_skim_medium_past(struct http_skim *s, struct http_skim_frame *f);
/* Draws text until the string or the input ends. */
void http_skim_draw(struct http_skim *s, struct slice *in);

#endif
