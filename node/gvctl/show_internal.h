/* What the files that show JSON share. */
#ifndef NODE_GVCTL_SHOW_INTERNAL_H
#define NODE_GVCTL_SHOW_INTERNAL_H

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "node/gvctl/show.h"

static inline json_t *show_parse(struct slice text)
{
    return json_loadb(text.at, text.len, 0, NULL);
}

static inline json_t *show_parse_object(struct slice text)
{
    json_t *o = json_loadb(text.at, text.len, 0, NULL);
    if (json_is_object(o))
        return o;
    json_decref(o);
    return NULL;
}

static inline const char *show_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "-";
}

static inline double show_number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* Colours only where a person looks. */
static inline const char *show_good(bool is_good)
{
    return !isatty(STDOUT_FILENO) ? "" : is_good ? "\033[32m" : "\033[31m";
}

static inline const char *show_plain(void)
{
    return isatty(STDOUT_FILENO) ? "\033[0m" : "";
}

#endif
