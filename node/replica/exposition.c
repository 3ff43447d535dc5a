#include "node/replica/exposition.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

enum { NUMBER_BYTES_MAX = 64 };

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_byte(char c)
{
    return is_name_start(c) || is_digit(c);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static struct slice skip_blank(struct slice s)
{
    while (s.len > 0 && is_blank(s.at[0]))
        s = slice_skip(s, 1);
    return s;
}

/* Removes and returns the longest part at the front of `s` with bytes of this kind. */
static struct slice take_while(struct slice *s, bool (*is)(char))
{
    size_t n = 0;
    while (n < s->len && is(s->at[n]))
        n++;
    struct slice front = slice_of(s->at, n);
    *s = slice_skip(*s, n);
    return front;
}

/* Parses a decimal number, an infinity or NaN. Hexadecimal numbers, which strtod() would accept,
 * are invalid. */
static int number_parse(struct slice s, double *out)
{
    static const char decimal[] = "0123456789.eE+-", words[] = "+-infatyINFATY";
    char text[NUMBER_BYTES_MAX], *end;
    if (s.len == 0 || !slice_to_cstr(s, text, sizeof text) ||
        (strspn(text, decimal) < s.len && strspn(text, words) < s.len))
        return ERR_SYNTAX;
    *out = strtod(text, &end);
    return *end == '\0' ? ERR_OK : ERR_SYNTAX;
}

/* Cuts a quoted label value off the front, and the quotes off the value. Escapes stay: no value in
 * use contains any. */
static int take_quoted(struct slice *s, struct slice *value)
{
    if (s->len == 0 || s->at[0] != '"')
        return ERR_SYNTAX;
    size_t i = 1;
    while (i < s->len && s->at[i] != '"') {
        if (s->at[i] == '\\') {
            i++;
            if (i == s->len || (s->at[i] != '\\' && s->at[i] != '"' && s->at[i] != 'n'))
                return ERR_SYNTAX;
        }
        i++;
    }
    if (i >= s->len)
        return ERR_SYNTAX;
    *value = slice_of(s->at + 1, i - 1);
    *s = slice_skip(*s, i + 1);
    return 0;
}

/* Reads {name="value",...}. A comma after the last label is allowed. */
static int take_labels(struct slice *s, node_exposition_label each, void *context)
{
    *s = skip_blank(slice_skip(*s, 1));
    while (s->len > 0 && s->at[0] != '}') {
        struct slice value;
        struct slice name = take_while(s, is_name_byte);
        *s = skip_blank(*s);
        if (name.len == 0 || is_digit(name.at[0]) || s->len == 0 || s->at[0] != '=')
            return ERR_SYNTAX;
        *s = skip_blank(slice_skip(*s, 1));
        int err = take_quoted(s, &value);
        if (err != 0)
            return err;
        each(context, name, value);
        *s = skip_blank(*s);
        if (s->len > 0 && s->at[0] == ',')
            *s = skip_blank(slice_skip(*s, 1));
        else if (s->len == 0 || s->at[0] != '}')
            return ERR_SYNTAX;
    }
    if (s->len == 0)
        return ERR_SYNTAX;
    *s = slice_skip(*s, 1);
    return 0;
}

static bool is_not_blank(char c)
{
    return !is_blank(c);
}

/* Reads the value. Ignores a timestamp after it, and an exemplar of OpenMetrics. */
static int value_parse(struct slice rest, double *value)
{
    rest = skip_blank(rest);
    int err = number_parse(take_while(&rest, is_not_blank), value);
    if (err != 0)
        return err;
    rest = skip_blank(rest);
    if (rest.len > 0 && rest.at[0] != '#') {
        double timestamp;
        err = number_parse(take_while(&rest, is_not_blank), &timestamp);
        rest = skip_blank(rest);
        if (err != 0 || (rest.len > 0 && rest.at[0] != '#'))
            return ERR_SYNTAX;
    }
    return 0;
}

struct slice node_exposition_line(struct slice line)
{
    line = skip_blank(line);
    if (line.len > 0 && line.at[line.len - 1] == '\r')
        line.len--;
    return line.len == 0 || line.at[0] == '#' ? slice_of("", 0) : line;
}

struct slice node_exposition_name(struct slice *line)
{
    return line->len > 0 && is_name_start(line->at[0]) ? take_while(line, is_name_byte)
                                                       : slice_of("", 0);
}

int node_exposition_sample(struct slice rest, node_exposition_label each, void *context,
                           double *value)
{
    rest = skip_blank(rest);
    int err = rest.len > 0 && rest.at[0] == '{' ? take_labels(&rest, each, context) : 0;
    return err == 0 ? value_parse(rest, value) : err;
}
