/* Shared by skim.c and skim_string.c. */
#ifndef HTTP_SKIM_INTERNAL_H
#define HTTP_SKIM_INTERNAL_H

#include "http/skim.h"

/* Destination of the string being read. */
enum http_skim_text { HTTP_SKIM_TO_NOWHERE, HTTP_SKIM_TO_PROMPT, HTTP_SKIM_TO_SCRATCH };

/* Directs the string that begins now to the scratch. */
void http_skim_scratch_start(struct http_skim *s);
/* The whole string in the scratch. Empty, which is no listed name, if the string is longer than the
 * scratch. Borrowed until the next string. */
struct slice http_skim_scratch_text(const struct http_skim *s);
/* The hash of the whole string, of any length. */
struct hash128 http_skim_scratch_digest(struct http_skim *s);
/* The hash of a whole string without the signature, if the string is a medium's URL. */
struct hash128 http_skim_url_digest(struct http_skim *s);
/* Stores the string, which is complete and ends at offset `end` of the body, as a field's value. */
void http_skim_field_store(struct http_skim *s, uint64_t end);
/* Counts the media of a complete member of a content part. */
void http_skim_medium_past(struct http_skim *s, struct http_skim_frame *f);
/* Reads text of the current string until the string or the input ends. */
void http_skim_draw(struct http_skim *s, struct slice *in);

#endif
