#include "node/gvctl/print.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/check.h"
#include "node/gvctl/plain.h"

void print_text(struct slice text, FILE *to)
{
    plain_write(text, to);
    (void)fputs(slice_ends_with(text, SLICE("\n")) ? "" : "\n", to);
}

/* Prints a value as JSON. JSON itself escapes only control characters below the blank;
 * plain_write() escapes the others. */
static void dump(const json_t *value, size_t flags, FILE *to)
{
    char *text = json_dumps(value, flags | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    if (text != NULL)
        plain_write(slice_of_cstr(text), to);
    free(text);
}

void print_json_line(const json_t *value, FILE *to)
{
    dump(value, JSON_COMPACT, to);
    (void)fputc('\n', to);
}

/* True if every version of YAML reads the word as text: no number, and none of the words for on,
 * off and null. */
static bool is_plain(const char *text)
{
    static const char *const words[] = {"true", "false", "yes", "no",   "on",
                                        "off",  "y",     "n",   "null", "nan"};
    if (!isalpha((unsigned char)text[0]) && text[0] != '/' && text[0] != '_')
        return false;
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (strcasecmp(text, words[i]) == 0)
            return false;
    }
    size_t n = strlen(text);
    if (text[n - 1] == ':' || strchr(text, '\n') != NULL)
        return false;
    for (const char *c = text; *c != '\0'; c++) {
        bool word = isalnum((unsigned char)*c) || strchr("-_./@:", *c) != NULL;
        if (!word && (*c != ' ' || c[1] == '\0'))
            return false;
        if (*c == ':' && c[1] == ' ')
            return false;
    }
    return true;
}

void print_yaml_text(const char *text, FILE *to)
{
    if (is_plain(text)) {
        (void)fputs(text, to);
        return;
    }
    json_t *value = json_string(text); /* the quotes and escapes are valid YAML */
    dump(value, 0, to);                /* also escapes YAML's line breaks */
    json_decref(value);
}

static void scalar(const json_t *value, FILE *to)
{
    if (json_is_string(value))
        print_yaml_text(json_string_value(value), to);
    else
        dump(value, 0, to);
}

/* True if the value fits on the key's line: a scalar, or an empty container. */
static bool is_short(const json_t *value)
{
    return json_is_object(value)  ? json_object_size(value) == 0
           : json_is_array(value) ? json_array_size(value) == 0
                                  : true;
}

/* Prints the lines of a value; the first begins at the cursor. */
static void block(json_t *value, int indent, FILE *to)
{
    const char *key;
    json_t *member;
    size_t i;
    if (is_short(value)) {
        scalar(value, to);
        (void)fputc('\n', to);
        return;
    }
    bool first = true;
    if (json_is_array(value)) {
        json_array_foreach(value, i, member)
        {
            (void)fprintf(to, "%*s- ", first ? 0 : indent, "");
            block(member, indent + 2, to);
            first = false;
        }
        return;
    }
    json_object_foreach(value, key, member)
    {
        (void)fprintf(to, "%*s", first ? 0 : indent, "");
        print_yaml_text(key, to);
        if (is_short(member)) {
            (void)fputs(": ", to);
            block(member, indent, to);
        } else {
            int deeper = indent + (json_is_array(member) ? 0 : 2);
            (void)fprintf(to, ":\n%*s", deeper, "");
            block(member, deeper, to);
        }
        first = false;
    }
}

void print_yaml(json_t *value, FILE *to)
{
    block(value, 0, to);
}

void print_as(enum show_format format, json_t *value, FILE *to)
{
    if (format == SHOW_YAML) {
        print_yaml(value, to);
        return;
    }
    dump(value, JSON_INDENT(2), to);
    (void)fputc('\n', to);
}
