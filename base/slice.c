#include "base/slice.h"

#include "base/err.h"

static unsigned char lower(char c)
{
    unsigned char u = (unsigned char)c;
    return u >= 'A' && u <= 'Z' ? (unsigned char)(u + ('a' - 'A')) : u;
}

bool slice_equal_nocase(struct slice a, struct slice b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++) {
        if (lower(a.at[i]) != lower(b.at[i]))
            return false;
    }
    return true;
}

bool slice_starts_with(struct slice s, struct slice prefix)
{
    return s.len >= prefix.len && slice_equal(slice_of(s.at, prefix.len), prefix);
}

bool slice_ends_with(struct slice s, struct slice suffix)
{
    return s.len >= suffix.len &&
           slice_equal(slice_of(s.at + (s.len - suffix.len), suffix.len), suffix);
}

size_t slice_find(struct slice s, char byte)
{
    if (s.len == 0)
        return 0;
    const char *at = memchr(s.at, byte, s.len);
    return at != NULL ? (size_t)(at - s.at) : s.len;
}

struct slice slice_skip(struct slice s, size_t from)
{
    if (from == 0 || s.len == 0)
        return s; /* because adding to a NULL pointer is undefined */
    if (from > s.len)
        from = s.len;
    return slice_of(s.at + from, s.len - from);
}

struct slice slice_trim(struct slice s)
{
    while (s.len > 0 && (s.at[0] == ' ' || s.at[0] == '\t'))
        s = slice_skip(s, 1);
    while (s.len > 0 && (s.at[s.len - 1] == ' ' || s.at[s.len - 1] == '\t'))
        s.len--;
    return s;
}

struct slice slice_cut(struct slice *s, char byte)
{
    size_t n = slice_find(*s, byte);
    struct slice head = slice_of(s->at, n);
    *s = slice_skip(*s, n + 1);
    return head;
}

int slice_to_u64(struct slice s, uint64_t *out)
{
    if (s.len == 0)
        return ERR_SYNTAX;
    uint64_t value = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (s.at[i] < '0' || s.at[i] > '9')
            return ERR_SYNTAX;
        uint64_t digit = (uint64_t)(s.at[i] - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return ERR_RANGE;
        value = value * 10 + digit;
    }
    *out = value;
    return 0;
}

bool slice_to_cstr(struct slice s, char *out, size_t size)
{
    size_t n = s.len < size - 1 ? s.len : size - 1;
    if (n > 0)
        memcpy(out, s.at, n);
    out[n] = '\0';
    return n == s.len;
}

bool slice_equal_secret(struct slice a, struct slice b)
{
    if (a.len != b.len)
        return false;
    volatile unsigned char differ = 0; /* volatile: no compiler may end the loop early */
    for (size_t i = 0; i < a.len; i++)
        differ |= (unsigned char)(a.at[i] ^ b.at[i]);
    return differ == 0;
}
