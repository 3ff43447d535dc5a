#include "base/json_write.h"

#include <math.h>
#include <stdio.h>

#include "base/check.h"
#include "base/err.h"
#include "base/utf8.h"

static void raw(struct json_writer *w, const char *at, size_t len)
{
    if (w->err == 0)
        w->err = buf_append(w->out, at, len);
}

static uint64_t level(const struct json_writer *w)
{
    return UINT64_C(1) << w->depth;
}

/* To be called before every value: writes a comma if needed, unless the comma was written before
 * the value's key. */
static void separate(struct json_writer *w)
{
    bool in_object = (w->object & level(w)) != 0;
    CHECK(!in_object || w->after_key);
    if (!w->after_key && (w->nonempty & level(w)) != 0) {
        CHECK(w->depth > 0);
        raw(w, ",", 1);
    }
    w->nonempty |= level(w);
    w->after_key = false;
}

static void begin(struct json_writer *w, bool object)
{
    separate(w);
    raw(w, object ? "{" : "[", 1);
    CHECK(w->depth < JSON_DEPTH_MAX);
    w->depth++;
    w->nonempty &= ~level(w);
    w->object = object ? w->object | level(w) : w->object & ~level(w);
}

static void end(struct json_writer *w, bool object)
{
    CHECK(w->depth > 0 && !w->after_key);
    CHECK(((w->object & level(w)) != 0) == object);
    w->depth--;
    raw(w, object ? "}" : "]", 1);
}

struct json_writer json_writer_of(struct buf *out)
{
    return (struct json_writer){.out = out, .start = out->len};
}

int json_writer_finish(struct json_writer *w)
{
    CHECK(w->depth == 0);
    if (w->err != 0)
        w->out->len = w->start;
    return w->err;
}

void json_object_begin(struct json_writer *w)
{
    begin(w, true);
}

void json_object_end(struct json_writer *w)
{
    end(w, true);
}

void json_array_begin(struct json_writer *w)
{
    begin(w, false);
}

void json_array_end(struct json_writer *w)
{
    end(w, false);
}

/* --- strings -------------------------------------------------------------------------------- */

static bool is_ordinary(char c)
{
    unsigned char b = (unsigned char)c;
    return b >= 0x20 && b < 0x7f && b != '"' && b != '\\';
}

/* Writes the escaped first character of `s`. Returns how many bytes of `s` it takes. */
static size_t put_special(struct json_writer *w, struct slice s)
{
    char c = s.at[0];
    static const char from[] = "\"\\\b\f\n\r\t";
    static const char to[] = "\"\\bfnrt";
    const char *found = c != '\0' ? strchr(from, c) : NULL;
    if (found != NULL) {
        char pair[2] = {'\\', to[found - from]};
        raw(w, pair, 2);
        return 1;
    }
    unsigned char b = (unsigned char)c;
    if (b < 0x20 || b == 0x7f) {
        static const char hex[] = "0123456789abcdef";
        char escape[6] = {'\\', 'u', '0', '0', hex[b >> 4], hex[b & 15]};
        raw(w, escape, 6);
        return 1;
    }
    size_t n = utf8_length(s);
    if (n == 0) {
        raw(w, "\xef\xbf\xbd", 3);
        return 1;
    }
    raw(w, s.at, n);
    return n;
}

static void put_string(struct json_writer *w, struct slice text)
{
    raw(w, "\"", 1);
    while (text.len > 0 && w->err == 0) {
        size_t n = 0;
        while (n < text.len && is_ordinary(text.at[n]))
            n++;
        raw(w, text.at, n);
        text = slice_skip(text, n);
        if (text.len > 0)
            text = slice_skip(text, put_special(w, text));
    }
    raw(w, "\"", 1);
}

void json_key_slice(struct json_writer *w, struct slice key)
{
    CHECK((w->object & level(w)) != 0 && !w->after_key);
    if ((w->nonempty & level(w)) != 0)
        raw(w, ",", 1);
    w->nonempty |= level(w);
    put_string(w, key);
    raw(w, ":", 1);
    w->after_key = true;
}

void json_key(struct json_writer *w, const char *key)
{
    json_key_slice(w, slice_of_cstr(key));
}

void json_slice(struct json_writer *w, struct slice text)
{
    separate(w);
    put_string(w, text);
}

void json_cstr(struct json_writer *w, const char *text)
{
    json_slice(w, slice_of_cstr(text));
}

int json_string_append(struct buf *out, struct slice text)
{
    struct json_writer w = json_writer_of(out);
    json_slice(&w, text);
    return json_writer_finish(&w);
}

/* --- the rest ------------------------------------------------------------------------------- */

static void put_digits(struct json_writer *w, bool negative, uint64_t value)
{
    char digits[21];
    size_t i = sizeof digits;
    do
        digits[--i] = (char)('0' + value % 10);
    while ((value /= 10) != 0);
    if (negative)
        digits[--i] = '-';
    separate(w);
    raw(w, digits + i, sizeof digits - i);
}

void json_u64(struct json_writer *w, uint64_t value)
{
    put_digits(w, false, value);
}

void json_i64(struct json_writer *w, int64_t value)
{
    put_digits(w, value < 0, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void json_double(struct json_writer *w, double value)
{
    if (!isfinite(value)) {
        json_nil(w);
        return;
    }
    char text[32];
    int n = snprintf(text, sizeof text, "%.15g", value);
    CHECK(n > 0 && (size_t)n < sizeof text);
    separate(w);
    raw(w, text, (size_t)n);
}

void json_bool(struct json_writer *w, bool value)
{
    json_raw(w, value ? SLICE("true") : SLICE("false"));
}

void json_nil(struct json_writer *w)
{
    json_raw(w, SLICE("null"));
}

void json_raw(struct json_writer *w, struct slice json)
{
    separate(w);
    raw(w, json.at, json.len);
}

/* --- members -------------------------------------------------------------------------------- */

void json_put_slice(struct json_writer *w, const char *key, struct slice text)
{
    json_key(w, key);
    json_slice(w, text);
}

void json_put_cstr(struct json_writer *w, const char *key, const char *text)
{
    json_key(w, key);
    json_cstr(w, text != NULL ? text : "");
}

void json_put_u64(struct json_writer *w, const char *key, uint64_t value)
{
    json_key(w, key);
    json_u64(w, value);
}

void json_put_known(struct json_writer *w, const char *key, bool known, uint64_t value)
{
    json_key(w, key);
    if (known)
        json_u64(w, value);
    else
        json_nil(w);
}

void json_put_i64(struct json_writer *w, const char *key, int64_t value)
{
    json_key(w, key);
    json_i64(w, value);
}

void json_put_double(struct json_writer *w, const char *key, double value)
{
    json_key(w, key);
    json_double(w, value);
}

void json_put_bool(struct json_writer *w, const char *key, bool value)
{
    json_key(w, key);
    json_bool(w, value);
}

void json_put_object(struct json_writer *w, const char *key)
{
    json_key(w, key);
    json_object_begin(w);
}

void json_put_array(struct json_writer *w, const char *key)
{
    json_key(w, key);
    json_array_begin(w);
}
