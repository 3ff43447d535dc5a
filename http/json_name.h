/* Reads member names for a caller of json.h. If the input ends within a name, the caller gives
 * up. */
#ifndef HTTP_JSON_NAME_H
#define HTTP_JSON_NAME_H

#include "http/json.h"

static inline void http_json_skip_text(struct http_json *json, struct slice *in)
{
    char text[64 + HTTP_JSON_SLACK];
    while (http_json_in_text(json) && in->len > 0)
        (void)http_json_text(json, in, text, 64);
}

/* The text of a KEY or STRING; empty if the text is longer than `room`. `name` has HTTP_JSON_SLACK
 * bytes more than `room`. */
static inline struct slice http_json_name(struct http_json *json, struct slice *in, char *name,
                                          size_t room)
{
    size_t len = http_json_text(json, in, name, room);
    char rest[64 + HTTP_JSON_SLACK];
    while (http_json_in_text(json) && in->len > 0)
        len += http_json_text(json, in, rest, 64);
    return slice_of(name, len <= room ? len : 0);
}

#endif
