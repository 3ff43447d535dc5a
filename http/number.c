#include "http/number.h"

#include <stdlib.h>

#include "base/check.h"
#include "http/json.h"

bool http_number_to_i64(struct slice text, int64_t *out)
{
    CHECK(text.len > 0 && text.len <= HTTP_JSON_NUMBER_MAX);
    bool is_negative = text.at[0] == '-';
    struct slice digits = slice_skip(text, is_negative ? 1 : 0);
    int64_t value = 0;
    size_t n = 0;
    while (n < digits.len && n < 18 && digits.at[n] >= '0' && digits.at[n] <= '9')
        value = value * 10 + (digits.at[n++] - '0');
    if (n == digits.len) {
        *out = is_negative ? -value : value;
        return true;
    }
    char copy[HTTP_JSON_NUMBER_MAX + 1];
    (void)slice_to_cstr(text, copy, sizeof copy);
    char *end;
    long long whole = strtoll(copy, &end, 10);
    if (*end == '\0') {
        *out = whole; /* strtoll() gives the bound if the number is beyond the range */
        return true;
    }
    double real = strtod(copy, NULL);
    if (!(real >= -9e18 && real <= 9e18) || real != (double)(int64_t)real)
        return false;
    *out = (int64_t)real;
    return true;
}

bool http_number_to_u32(struct slice text, uint32_t *out)
{
    uint64_t value = 0;
    if (text.len > 10)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
        value = value * 10 + (uint64_t)(text.at[i] - '0');
    }
    *out = (uint32_t)value;
    return value <= UINT32_MAX;
}
