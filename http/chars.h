/* Classes of bytes, for the parsers of this folder: a table with a bit per class. */
#ifndef HTTP_CHARS_H
#define HTTP_CHARS_H

#include "base/slice.h"

enum http_char_class {
    HTTP_CHAR_TOKEN = 1,  /* tchar of RFC 9110, section 5.6.2 */
    HTTP_CHAR_TARGET = 2, /* may be in a request target: RFC 3986 without '#', '%' included */
    HTTP_CHAR_VALUE = 4,  /* field-content of RFC 9110, section 5.5: no control byte but HTAB */
    HTTP_CHAR_NAME = 8,   /* reg-name of RFC 3986 without ',' */
    HTTP_CHAR_HEX = 16,
    HTTP_CHAR_DIGIT = 32,
};

extern const uint8_t http_chars[256];

static inline bool http_char_is(char c, enum http_char_class class)
{
    return (http_chars[(unsigned char)c] & class) != 0;
}

/* Value of a hex digit, 0 to 15. `c` must be of HTTP_CHAR_HEX. */
static inline unsigned http_hex_value(char c)
{
    return c <= '9' ? (unsigned)(c - '0') : (unsigned)((c | 0x20) - 'a' + 10);
}

static inline char http_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

#endif
