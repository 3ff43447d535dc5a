/* Fields of arbitrary JSON: a field that is missing or of another type reads as "-" and 0. */
#ifndef NODE_GVCTL_FIELDS_H
#define NODE_GVCTL_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <string.h>

static inline const char *fields_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "-";
}

static inline double fields_number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static inline bool fields_is(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

static inline bool fields_has_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL && text[0] != '\0';
}

static inline bool fields_equal(const json_t *object, const char *key, const char *text)
{
    return strcmp(fields_text(object, key), text) == 0;
}

/* Increments the count under `key`. */
static inline void fields_tally(json_t *counts, const char *key)
{
    json_int_t count = json_integer_value(json_object_get(counts, key));
    (void)json_object_set_new(counts, key, json_integer(count + 1));
}

/* Returns the ending of a noun after the number: "1 request", "2 requests". */
static inline const char *fields_plural(double count)
{
    return count == 1 ? "" : "s";
}

#endif
