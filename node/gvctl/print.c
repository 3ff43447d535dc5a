#include "node/gvctl/print.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/check.h"

void print_text(struct slice text, FILE *to)
{
    (void)fprintf(to, "%.*s%s", SLICE_ARG(text), slice_ends_with(text, SLICE("\n")) ? "" : "\n");
}

void print_json(const json_t *value, FILE *to)
{
    (void)json_dumpf(value, to, JSON_INDENT(2) | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    (void)fputc('\n', to);
}

/* Whether YAML, of any version, takes the word for a text: it is no number, and none of the words
 * for on, off and nothing. */
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

/* A character at which YAML breaks lines, or a mark of byte order: JSON does not escape these.
 * 0: it is another one. */
static unsigned line_break(const char *at, size_t *len)
{
    static const struct {
        const char *bytes;
        unsigned code;
    } breaks[] = {{"\xc2\x85", 0x85},
                  {"\xe2\x80\xa8", 0x2028},
                  {"\xe2\x80\xa9", 0x2029},
                  {"\xef\xbb\xbf", 0xfeff}};
    for (size_t i = 0; i < ARRAY_LEN(breaks); i++) {
        *len = strlen(breaks[i].bytes);
        if (strncmp(at, breaks[i].bytes, *len) == 0)
            return breaks[i].code;
    }
    *len = 0;
    return 0;
}

void print_yaml_text(const char *text, FILE *to)
{
    if (is_plain(text)) {
        (void)fputs(text, to);
        return;
    }
    json_t *value = json_string(text); /* its quotes and escapes are YAML's too */
    char *quoted = json_dumps(value, JSON_ENCODE_ANY);
    for (const char *c = quoted; c != NULL && *c != '\0';) {
        size_t len = 0;
        unsigned code = line_break(c, &len);
        if (code != 0)
            (void)fprintf(to, "\\u%04x", code);
        else
            (void)fputc(*c, to);
        c += len > 0 ? len : 1;
    }
    free(quoted);
    json_decref(value);
}

static void scalar(const json_t *value, FILE *to)
{
    if (json_is_string(value))
        print_yaml_text(json_string_value(value), to);
    else
        (void)json_dumpf(value, to, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
}

/* Whether it stands on the line of its key: a scalar, or nothing at all. */
static bool is_short(const json_t *value)
{
    return json_is_object(value)  ? json_object_size(value) == 0
           : json_is_array(value) ? json_array_size(value) == 0
                                  : true;
}

/* The lines of a value; the first begins where the cursor is. */
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
