/* Shared by usage.c and usage_json.c. */
#ifndef HTTP_USAGE_INTERNAL_H
#define HTTP_USAGE_INTERNAL_H

#include "http/usage.h"

/* Begins a body or an event. */
void http_usage_json_start(struct http_usage *u);
/* Reads the next bytes of the body or event. */
void http_usage_json_feed(struct http_usage *u, struct slice in);

#endif
