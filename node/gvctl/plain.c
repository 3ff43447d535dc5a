#include "node/gvctl/plain.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/utf8.h"

static bool is_ordinary(unsigned char c)
{
    return c >= ' ' && c < 0x7f;
}

/* Returns the code point of the character at the front, which has `n` bytes. */
static unsigned code_of(struct slice s, size_t n)
{
    static const unsigned char first[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    unsigned code = (unsigned char)s.at[0] & first[n];
    for (size_t i = 1; i < n; i++)
        code = code << 6 | ((unsigned char)s.at[i] & 0x3f);
    return code;
}

static bool is_harmful(unsigned code)
{
    static const struct {
        unsigned from, to;
    } ranges[] = {{0, 0x1f},        {0x7f, 0x9f},     {0x200e, 0x200f},
                  {0x2028, 0x202e}, {0x2066, 0x2069}, {0xfeff, 0xfeff}};
    for (size_t i = 0; i < ARRAY_LEN(ranges); i++) {
        if (code >= ranges[i].from && code <= ranges[i].to)
            return true;
    }
    return false;
}

/* Appends the replacement for the first character; `used` is the character's length in bytes. */
static int put_special(struct buf *out, struct slice s, bool lines, size_t *used)
{
    size_t n = utf8_length(s);
    *used = n > 0 ? n : 1;
    if (n == 0)
        return buf_printf(out, "\\x%02x", (unsigned char)s.at[0]);
    unsigned code = code_of(s, n);
    bool layout = lines && (code == '\n' || code == '\t');
    return is_harmful(code) && !layout ? buf_printf(out, "\\u%04x", code)
                                       : buf_append(out, s.at, n);
}

/* Appends the text, with harmful characters replaced. `lines`: newlines and tabs stay. */
static int append_plain(struct buf *out, struct slice text, bool lines)
{
    int err = 0;
    while (text.len > 0 && err == 0) {
        size_t n = 0;
        while (n < text.len && is_ordinary((unsigned char)text.at[n]))
            n++;
        err = buf_append(out, text.at, n);
        text = slice_skip(text, n);
        if (err == 0 && text.len > 0) {
            err = put_special(out, text, lines, &n);
            text = slice_skip(text, n);
        }
    }
    return err;
}

/* --- JSON ------------------------------------------------------------------------------------- */

/* Writes the safe text to `out`; returns false if it equals the input. */
static bool becomes(struct slice text, struct buf *out)
{
    buf_clear(out);
    if (append_plain(out, text, false) != 0)
        abort();
    return !slice_equal(buf_slice(out), text);
}

static bool has_other_keys(json_t *object, struct buf *text)
{
    const char *key;
    json_t *member;
    json_object_foreach(object, key, member)
    {
        if (becomes(slice_of_cstr(key), text))
            return true;
    }
    return false;
}

/* Replaces the keys by safe keys; values and order stay. */
static void plain_keys(json_t *object, struct buf *text)
{
    const char *key;
    json_t *member, *out = json_object();
    json_object_foreach(object, key, member)
    {
        (void)becomes(slice_of_cstr(key), text);
        if (buf_append_char(text, '\0') != 0 || json_object_set(out, text->at, member) != 0)
            abort();
    }
    if (json_object_clear(object) != 0 || json_object_update(object, out) != 0)
        abort();
    json_decref(out);
}

static void plain_value(json_t *value, struct buf *text)
{
    size_t i;
    const char *key;
    json_t *member;
    if (json_is_string(value)) {
        struct slice own = slice_of(json_string_value(value), json_string_length(value));
        if (becomes(own, text) && json_string_setn(value, text->at, text->len) != 0)
            abort();
    }
    json_array_foreach(value, i, member)
    {
        plain_value(member, text);
    }
    json_object_foreach(value, key, member)
    {
        plain_value(member, text);
    }
    if (json_is_object(value) && has_other_keys(value, text))
        plain_keys(value, text);
}

void plain_json(json_t *value)
{
    struct buf text = {0};
    plain_value(value, &text);
    buf_free(&text);
}

/* --- printing --------------------------------------------------------------------------------- */

void plain_write(struct slice text, FILE *to)
{
    struct buf out = {0};
    if (append_plain(&out, text, true) != 0)
        abort();
    (void)fwrite(out.at, 1, out.len, to);
    buf_free(&out);
}

void plain_vprintf(FILE *to, const char *format, va_list arguments)
{
    char *text;
    int len = vasprintf(&text, format, arguments);
    if (len < 0)
        abort();
    plain_write(slice_of(text, (size_t)len), to);
    free(text);
}

void plain_printf(FILE *to, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    plain_vprintf(to, format, arguments);
    va_end(arguments);
}
