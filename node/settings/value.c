#include "node/settings/value.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"

struct suffix {
    struct slice text;
    double factor;
};

/* The first suffix of each factor is used for writing. */
static const struct suffix time_suffixes[] = {
    {{"h", 1}, 3600e3},
    {{"m", 1}, 60e3},
    {{"s", 1}, 1e3},
    {{"ms", 2}, 1},
};

static const struct suffix byte_suffixes[] = {
    {{"TiB", 3}, 1099511627776.0},
    {{"GiB", 3}, 1073741824.0},
    {{"MiB", 3}, 1048576},
    {{"KiB", 3}, 1024},
    {{"B", 1}, 1},
    {{"T", 1}, 1099511627776.0},
    {{"G", 1}, 1073741824.0},
    {{"M", 1}, 1048576},
    {{"K", 1}, 1024},
    {{"TB", 2}, 1e12},
    {{"GB", 2}, 1e9},
    {{"MB", 2}, 1e6},
    {{"KB", 2}, 1e3},
};

size_t node_option_field_bytes(const struct node_option *row)
{
    static const size_t bytes[] = {
        [NODE_TYPE_ADDRESS] = sizeof(struct node_address),
        [NODE_TYPE_BOOL] = sizeof(bool),
        [NODE_TYPE_INTEGER] = sizeof(uint64_t),
        [NODE_TYPE_MS] = sizeof(uint64_t),
        [NODE_TYPE_BYTES] = sizeof(uint64_t),
        [NODE_TYPE_FLOAT] = sizeof(double),
        [NODE_TYPE_CHOICE] = sizeof(unsigned),
        [NODE_TYPE_STRING] = sizeof(char *),
        [NODE_TYPE_PATH] = sizeof(char *),
        [NODE_TYPE_LIST] = sizeof(struct node_strings),
    };
    return bytes[row->type];
}

/* Reads digits with at most 1 dot: no sign, exponent, hexadecimal or infinity. */
static int read_decimal(struct slice s, double *out)
{
    char text[40];
    unsigned dots = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (s.at[i] == '.')
            dots++;
        else if (s.at[i] < '0' || s.at[i] > '9')
            return ERR_SYNTAX;
    }
    if (s.len == dots || dots > 1 || !slice_to_cstr(s, text, sizeof text))
        return ERR_SYNTAX;
    *out = strtod(text, NULL);
    return 0;
}

/* Reads a decimal with one of the suffixes; the scaled result must be whole. A bare number is valid
 * if it is zero or if `bare_ok`. */
static int read_scaled(struct slice s, const struct suffix *suffixes, size_t count, bool bare_ok,
                       double *out)
{
    size_t digits = 0;
    while (digits < s.len && ((s.at[digits] >= '0' && s.at[digits] <= '9') || s.at[digits] == '.'))
        digits++;
    double number;
    if (read_decimal(slice_of(s.at, digits), &number) != 0)
        return ERR_SYNTAX;
    struct slice unit = slice_trim(slice_skip(s, digits));
    double factor = 0;
    if (unit.len == 0)
        factor = bare_ok || number == 0 ? 1 : 0;
    for (size_t i = 0; i < count && factor == 0; i++) {
        if (slice_equal_nocase(unit, suffixes[i].text))
            factor = suffixes[i].factor;
    }
    if (factor == 0)
        return ERR_SYNTAX;
    number *= factor;
    if (number > 9007199254740992.0) /* 2^53: larger doubles are not exact */
        return ERR_RANGE;
    double whole = (double)(uint64_t)(number + 0.5);
    double off = number > whole ? number - whole : whole - number;
    if (off > number * DBL_EPSILON) /* 1.001 s is less than 1001 ms by the last bit */
        return ERR_SYNTAX;
    *out = whole;
    return 0;
}

int node_option_time_read(struct slice value, uint64_t *ms)
{
    double number;
    int err = read_scaled(value, time_suffixes, ARRAY_LEN(time_suffixes), false, &number);
    if (err == 0)
        *ms = (uint64_t)number;
    return err;
}

bool node_option_bool_read(struct slice value, bool *out)
{
    static const struct slice yes[] = {{"on", 2}, {"true", 4}, {"yes", 3}};
    static const struct slice no[] = {{"off", 3}, {"false", 5}, {"no", 2}};
    for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
        if (slice_equal_nocase(value, yes[i]) || slice_equal_nocase(value, no[i])) {
            *out = slice_equal_nocase(value, yes[i]);
            return true;
        }
    }
    return false;
}

static int read_choice(const struct node_option *row, struct slice value, unsigned *out)
{
    const char *const *names = row->choices;
    for (unsigned i = 0; names[i] != NULL; i++) {
        if (slice_equal(value, slice_of_cstr(names[i]))) {
            *out = i;
            return 0;
        }
    }
    return ERR_SYNTAX;
}

static bool in_range(const struct node_option *row, double number)
{
    return number >= row->min && (row->max == 0 || number <= row->max);
}

static int read_uint(const struct node_option *row, struct slice value, uint64_t *out)
{
    double number = 0;
    int err;
    if (row->automatic && slice_equal_nocase(value, SLICE("auto"))) {
        *out = NODE_OPTION_AUTO;
        return 0;
    }
    if (row->type == NODE_TYPE_INTEGER) {
        err = slice_to_u64(value, out);
        number = err == 0 ? (double)*out : 0;
    } else if (row->type == NODE_TYPE_MS) {
        err = node_option_time_read(value, out);
        number = err == 0 ? (double)*out : 0;
    } else {
        err = read_scaled(value, byte_suffixes, ARRAY_LEN(byte_suffixes), true, &number);
    }
    if (err != 0)
        return err;
    if (row->type == NODE_TYPE_BYTES)
        *out = (uint64_t)number;
    return in_range(row, number) ? 0 : ERR_RANGE;
}

static int read_float(const struct node_option *row, struct slice value, double *out)
{
    int err = read_decimal(value, out);
    if (err == 0 && !in_range(row, *out))
        err = ERR_RANGE;
    return err;
}

static char *copy_text(struct slice value)
{
    char *text = malloc(value.len + 1);
    if (text != NULL)
        (void)slice_to_cstr(value, text, value.len + 1);
    return text;
}

static int list_append(struct node_strings *list, struct slice value)
{
    if (list->count == NODE_STRINGS_MAX)
        return ERR_FULL;
    char *text = copy_text(value);
    char **at = text != NULL ? realloc(list->at, (list->count + 1u) * sizeof *at) : NULL;
    if (at == NULL) {
        free(text);
        return ERR_NOMEM;
    }
    list->at = at;
    list->at[list->count++] = text;
    return 0;
}

void node_option_list_clear(struct node_strings *list)
{
    for (unsigned i = 0; i < list->count; i++)
        free(list->at[i]);
    free(list->at);
    *list = (struct node_strings){0};
}

static bool has_control(struct slice value)
{
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.at[i];
        if (c < 0x20 || c == 0x7f)
            return true;
    }
    return false;
}

/* A parsed value. Strings and entries of lists have no member here: they are only checked. */
union scalar {
    struct node_address address;
    bool truth;
    uint64_t uint;
    double real;
    unsigned choice;
};

static int read_scalar(const struct node_option *row, struct slice value, union scalar *out)
{
    if (value.len >= NODE_VALUE_BYTES)
        return ERR_SYNTAX;
    switch (row->type) {
    case NODE_TYPE_ADDRESS:
        return node_address_parse(value, &out->address);
    case NODE_TYPE_BOOL:
        return node_option_bool_read(value, &out->truth) ? 0 : ERR_SYNTAX;
    case NODE_TYPE_INTEGER:
    case NODE_TYPE_MS:
    case NODE_TYPE_BYTES:
        return read_uint(row, value, &out->uint);
    case NODE_TYPE_FLOAT:
        return read_float(row, value, &out->real);
    case NODE_TYPE_CHOICE:
        return read_choice(row, value, &out->choice);
    case NODE_TYPE_STRING:
    case NODE_TYPE_PATH:
    case NODE_TYPE_LIST:
        if (has_control(value))
            return ERR_SYNTAX;
        return row->wrong != NULL && row->wrong(value) != NULL ? ERR_SYNTAX : 0;
    }
    CHECK_UNREACHABLE();
}

int node_option_value_test(const struct node_option *row, struct slice value)
{
    union scalar scratch;
    return read_scalar(row, value, &scratch);
}

int node_option_value_read(struct node_options *o, const struct node_option *row,
                           struct slice value)
{
    union scalar scalar;
    int err = read_scalar(row, value, &scalar);
    if (err != 0)
        return err;
    void *field = (char *)o + row->offset;
    if (row->type == NODE_TYPE_LIST)
        return list_append(field, value);
    if (row->type != NODE_TYPE_STRING && row->type != NODE_TYPE_PATH) {
        memcpy(field, &scalar, node_option_field_bytes(row));
        return 0;
    }
    char *text = copy_text(value);
    if (text == NULL)
        return ERR_NOMEM;
    free(*(char **)field);
    *(char **)field = text;
    return 0;
}

/* --- writing ---------------------------------------------------------------------------------- */

/* Writes with the largest unit that divides the value. */
static int format_scaled(const struct suffix *suffixes, size_t count, uint64_t value,
                         struct buf *out)
{
    for (size_t i = 0; i < count && value != 0; i++) {
        uint64_t factor = (uint64_t)suffixes[i].factor;
        if (value % factor == 0)
            return buf_printf(out, "%llu%s", (unsigned long long)(value / factor),
                              suffixes[i].text.at);
    }
    return buf_append_char(out, '0');
}

/* Writes an exact value as "4s" or "64MiB". */
static int format_uint(enum node_option_type type, uint64_t value, struct buf *out)
{
    if (value == NODE_OPTION_AUTO)
        return buf_append_cstr(out, "auto");
    if (type == NODE_TYPE_MS)
        return format_scaled(time_suffixes, ARRAY_LEN(time_suffixes), value, out);
    if (type == NODE_TYPE_BYTES)
        return format_scaled(byte_suffixes, 5, value, out); /* the five binary units */
    return buf_printf(out, "%llu", (unsigned long long)value);
}

int node_option_number_format(const struct node_option *row, double number, struct buf *out)
{
    if (row->type == NODE_TYPE_FLOAT)
        return buf_printf(out, "%.15g", number);
    return format_uint(row->type, (uint64_t)number, out);
}

static int want_number(const struct node_option *row, struct buf *out)
{
    int err = buf_printf(out, "want %s ",
                         row->type == NODE_TYPE_INTEGER ? "a whole number"
                         : row->type == NODE_TYPE_MS    ? "a time with its unit"
                         : row->type == NODE_TYPE_BYTES ? "a size"
                                                        : "a number");
    if (err == 0)
        err = buf_append_cstr(out, row->max != 0 ? "from " : "of at least ");
    if (err == 0)
        err = node_option_number_format(row, row->min, out);
    if (err == 0 && row->max != 0) {
        err = buf_append_cstr(out, " to ");
        if (err == 0)
            err = node_option_number_format(row, row->max, out);
    }
    if (err == 0 && row->automatic)
        return buf_append_cstr(out, ", or auto");
    return err == 0 ? buf_printf(out, ", such as %s", row->fallback) : err;
}

static int want_choice(const struct node_option *row, struct slice value, struct buf *out)
{
    const char *const *names = row->choices;
    bool on = slice_equal(value, SLICE("on"));
    int err = buf_append_cstr(out, "want ");
    struct node_option_nearest nearest = {.name = value};
    for (unsigned i = 0; names[i] != NULL && err == 0; i++) {
        const char *before = i == 0 ? "" : names[i + 1] == NULL ? " or " : ", ";
        err = buf_printf(out, "%s%s", before, names[i]);
        if (on && strcmp(names[i], "auto") == 0)
            nearest.best = names[i];
        if (!on) /* "off" is near "on", and means the opposite */
            node_option_nearest_offer(&nearest, names[i]);
    }
    if (err == 0 && nearest.best != NULL)
        err = buf_printf(out, "; did you mean %s?", nearest.best);
    return err;
}

int node_option_value_want(const struct node_option *row, struct slice value, struct buf *out)
{
    if (value.len >= NODE_VALUE_BYTES)
        return buf_printf(out, "want a value shorter than %d bytes", NODE_VALUE_BYTES);
    switch (row->type) {
    case NODE_TYPE_ADDRESS:
        return buf_printf(out, "want HOST:PORT, such as %s", row->fallback);
    case NODE_TYPE_BOOL:
        return buf_append_cstr(out, "want on or off");
    case NODE_TYPE_INTEGER:
    case NODE_TYPE_MS:
    case NODE_TYPE_BYTES:
    case NODE_TYPE_FLOAT:
        return want_number(row, out);
    case NODE_TYPE_CHOICE:
        return want_choice(row, value, out);
    case NODE_TYPE_STRING:
    case NODE_TYPE_PATH:
    case NODE_TYPE_LIST: {
        const char *wrong = row->wrong != NULL ? row->wrong(value) : NULL;
        return buf_append_cstr(out, wrong != NULL ? wrong : "want text without control characters");
    }
    }
    CHECK_UNREACHABLE();
}

/* --- the nearest name ------------------------------------------------------------------------- */

enum { NEAREST_BYTES = 48 };

/* Computes Levenshtein's distance (1966), row by row. */
static unsigned edit_distance(struct slice a, struct slice b)
{
    unsigned row[NEAREST_BYTES + 1];
    for (unsigned j = 0; j <= b.len; j++)
        row[j] = j;
    for (unsigned i = 1; i <= a.len; i++) {
        unsigned diagonal = row[0];
        row[0] = i;
        for (unsigned j = 1; j <= b.len; j++) {
            unsigned replace = diagonal + (a.at[i - 1] != b.at[j - 1]);
            diagonal = row[j];
            unsigned gap = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = replace < gap ? replace : gap;
        }
    }
    return row[b.len];
}

void node_option_nearest_offer(struct node_option_nearest *n, const char *candidate)
{
    struct slice c = slice_of_cstr(candidate);
    if (n->name.len == 0 || n->name.len > NEAREST_BYTES || c.len > NEAREST_BYTES)
        return;
    unsigned distance = edit_distance(n->name, c);
    /* A name of four bytes or more is also near a candidate that begins or ends with it: "timeout"
     * is near "client-idle-timeout". */
    if (n->name.len >= 4 && (slice_starts_with(c, n->name) || slice_ends_with(c, n->name)))
        distance = distance < 3 ? distance : 3;
    if (distance > c.len / 3 + 1 || (n->best != NULL && distance >= n->distance))
        return;
    n->best = candidate;
    n->distance = distance;
}

/* --- a setting as text ------------------------------------------------------------------------ */

static int format_list(const struct node_strings *list, struct buf *out)
{
    int err = 0;
    for (unsigned i = 0; i < list->count && err == 0; i++)
        err = buf_printf(out, "%s%s", i == 0 ? "" : ",", list->at[i]);
    return err;
}

int node_option_format(const struct node_options *o, const struct node_option *row, struct buf *out)
{
    const void *field = (const char *)o + row->offset;
    switch (row->type) {
    case NODE_TYPE_ADDRESS: {
        const struct node_address *a = field;
        bool v6 = strchr(a->host, ':') != NULL;
        return buf_printf(out, v6 ? "[%s]:%u" : "%s:%u", a->host, a->port);
    }
    case NODE_TYPE_BOOL:
        return buf_append_cstr(out, *(const bool *)field ? "on" : "off");
    case NODE_TYPE_INTEGER:
    case NODE_TYPE_MS:
    case NODE_TYPE_BYTES:
        return format_uint(row->type, *(const uint64_t *)field, out);
    case NODE_TYPE_FLOAT:
        return node_option_number_format(row, *(const double *)field, out);
    case NODE_TYPE_CHOICE:
        return buf_append_cstr(out, row->choices[*(const unsigned *)field]);
    case NODE_TYPE_STRING:
    case NODE_TYPE_PATH:
        return buf_append_cstr(out, *(char *const *)field);
    case NODE_TYPE_LIST:
        return format_list(field, out);
    }
    CHECK_UNREACHABLE();
}

int node_option_variable_append(struct buf *out, const char *name)
{
    int err = buf_append_cstr(out, "GRAPEVINE_");
    for (const char *c = name; *c != '\0' && err == 0; c++)
        err = buf_append_char(out, *c == '-'                ? '_'
                                   : *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A')
                                                            : *c);
    return err;
}

int node_option_origin_append(struct buf *out, const char *name, struct node_option_origin origin)
{
    switch (origin.source) {
    case NODE_SOURCE_DEFAULT:
        return buf_append_cstr(out, "default");
    case NODE_SOURCE_FILE:
        return buf_printf(out, "%s:%u", origin.file, origin.line);
    case NODE_SOURCE_ENVIRONMENT:
        return node_option_variable_append(out, name);
    case NODE_SOURCE_FLAG:
        return buf_printf(out, "flag --%s", name);
    }
    CHECK_UNREACHABLE();
}
