#include "http/media_url.h"

#include <string.h>

#include "base/check.h"
#include "base/slice.h"

static bool begins(struct slice text, struct slice with)
{
    return text.len >= with.len && slice_equal_nocase(slice_of(text.at, with.len), with);
}

/* True for parameter names used only in signatures. */
static bool signs(struct slice name)
{
    static const struct slice prefixes[] = {
        {"X-Amz-", 6}, {"X-Goog-", 7}, {"x-oss-", 6}, {"X-Tos-", 6}, {"q-sign-", 7}, {"q-ak", 4},
    };
    static const struct slice names[] = {
        {"Signature", 9},
        {"sig", 3},
        {"q-signature", 11},
        {"Key-Pair-Id", 11},
    };
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
        if (begins(name, prefixes[i]))
            return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (slice_equal_nocase(name, names[i]))
            return true;
    }
    return false;
}

/* True for parameters to remove from a signed URL: the signature itself, and the times, keys and
 * terms that belong to a signature. */
static bool goes_with(struct slice name)
{
    static const struct slice names[] = {
        {"Expires", 7},
        {"AWSAccessKeyId", 14},
        {"GoogleAccessId", 14},
        {"OSSAccessKeyId", 14},
        {"Policy", 6},
        {"security-token", 14},
        {"q-key-time", 10},
        {"q-header-list", 13},
        {"q-url-param-list", 16},
        {"se", 2},
        {"sp", 2},
        {"st", 2},
        {"sv", 2},
        {"sr", 2},
        {"spr", 3},
        {"sip", 3},
        {"ss", 2},
        {"srt", 3},
        {"skoid", 5},
        {"sktid", 5},
        {"skt", 3},
        {"ske", 3},
        {"sks", 3},
        {"skv", 3},
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (slice_equal_nocase(name, names[i]))
            return true;
    }
    return signs(name);
}

/* The parameter from `from` on, up to the next `&` or the end. */
static struct slice parameter_at(const char *at, size_t from, size_t len)
{
    const char *end = memchr(at + from, '&', len - from);
    return slice_of(at + from, end != NULL ? (size_t)(end - at) - from : len - from);
}

static struct slice name_of(struct slice parameter)
{
    const char *equals = memchr(parameter.at, '=', parameter.len);
    return slice_of(parameter.at, equals != NULL ? (size_t)(equals - parameter.at) : parameter.len);
}

size_t http_media_url_trim(char *at, size_t len, bool *is_signed)
{
    struct slice url = slice_of(at, len);
    *is_signed = false;
    if (!begins(url, SLICE("http://")) && !begins(url, SLICE("https://")))
        return len;
    const char *query = memchr(at, '?', len);
    if (query == NULL)
        return len;
    size_t first = (size_t)(query - at) + 1;
    for (size_t from = first; from < len && !*is_signed;) {
        struct slice parameter = parameter_at(at, from, len);
        *is_signed = signs(name_of(parameter));
        from += parameter.len + 1;
    }
    if (!*is_signed)
        return len;
    size_t out = first - 1; /* the question mark is removed too, if nothing remains */
    for (size_t from = first; from < len;) {
        struct slice parameter = parameter_at(at, from, len);
        from += parameter.len + 1;
        if (goes_with(name_of(parameter)))
            continue;
        at[out] = out == first - 1 ? '?' : '&';
        memmove(at + out + 1, parameter.at, parameter.len);
        out += 1 + parameter.len;
    }
    return out;
}
