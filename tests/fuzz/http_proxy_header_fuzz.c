/* Any bytes as a PROXY header: reading stays within them, a prefix of a valid header is not a
 * header, and an address in the header can be written and read again. */
#include "base/check.h"
#include "base/err.h"
#include "http/limits.h"
#include "http/proxy_header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_proxy_header h, piece;
    int err = http_proxy_header_parse(slice_of((const char *)data, size), &h);
    CHECK(err == 0 || err == ERR_AGAIN || err == ERR_SYNTAX);
    CHECK(err != ERR_AGAIN || size < HTTP_PROXY_HEADER_V2_MAX);
    if (err != 0)
        return 0;
    CHECK(h.bytes > 0 && h.bytes <= size && !(h.local && h.known));
    for (size_t n = 0; n < h.bytes; n++)
        CHECK(http_proxy_header_parse(slice_of((const char *)data, n), &piece) == ERR_AGAIN);
    char text[IP_TEXT_BYTES];
    uint8_t again[IP_BYTES];
    ip_format(h.ip, text);
    CHECK(ip_parse(text, again) && memcmp(again, h.ip, sizeof again) == 0);
    return 0;
}
