#include "http/authority.h"

#include "base/err.h"
#include "http/chars.h"

static bool ipv4_is_valid(struct slice s)
{
    for (int i = 0; i < 4; i++) {
        size_t dot = slice_find(s, '.');
        uint64_t value;
        if ((dot < s.len) != (i < 3) || dot > 3 || slice_to_u64(slice_of(s.at, dot), &value) != 0 ||
            value > 255)
            return false;
        s = slice_skip(s, dot + 1);
    }
    return true;
}

bool http_ipv6_is_valid(struct slice s)
{
    unsigned groups = 0;
    bool gap = false;
    size_t i = 0;
    if (s.len >= 2 && s.at[0] == ':') { /* a colon at the start must be part of "::" */
        if (s.at[1] != ':')
            return false;
        gap = true;
        i = 2;
    }
    while (i < s.len) {
        size_t start = i;
        while (i < s.len && i - start < 5 && http_char_is(s.at[i], HTTP_CHAR_HEX))
            i++;
        if (i < s.len && s.at[i] == '.') { /* the last 32 bits are written as IPv4 */
            groups += 2;
            if (!ipv4_is_valid(slice_skip(s, start)))
                return false;
            break;
        }
        if (i == start || i - start > 4)
            return false;
        groups++;
        if (i == s.len)
            break;
        if (s.at[i] != ':' || i + 1 == s.len)
            return false;
        i++;
        if (s.at[i] == ':') {
            if (gap)
                return false;
            gap = true;
            i++;
        }
    }
    return gap ? groups <= 7 : groups == 8;
}

static bool name_is_valid(struct slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.at[i] == '%') {
            if (s.len - i < 3 || !http_char_is(s.at[i + 1], HTTP_CHAR_HEX) ||
                !http_char_is(s.at[i + 2], HTTP_CHAR_HEX))
                return false;
            i += 2;
        } else if (!http_char_is(s.at[i], HTTP_CHAR_NAME)) {
            return false;
        }
    }
    return s.len > 0;
}

bool http_authority_is_valid(struct slice s)
{
    if (s.len == 0)
        return false;
    size_t host = s.at[0] == '[' ? slice_find(s, ']') : slice_find(s, ':');
    if (s.at[0] == '[') {
        if (host == s.len || !http_ipv6_is_valid(slice_of(s.at + 1, host - 1)))
            return false;
        host++;
    } else if (!name_is_valid(slice_of(s.at, host))) {
        return false;
    }
    struct slice port = slice_skip(s, host);
    if (port.len <= 1) /* RFC 3986 allows an empty port after the colon */
        return port.len == 0 || port.at[0] == ':';
    uint64_t number;
    return port.at[0] == ':' && port.len <= 6 && slice_to_u64(slice_skip(port, 1), &number) == 0 &&
           number <= 65535;
}
