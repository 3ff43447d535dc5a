#include "http/proxy_header.h"

#include <string.h>

#include "http/limits.h"

enum { V2_HEAD_BYTES = 16, V2_ADDRESSES_V4 = 12, V2_ADDRESSES_V6 = 36 };
static const struct slice v1_begin = SLICE("PROXY ");
static const struct slice v2_begin = {"\r\n\r\n\0\r\nQUIT\n", 12};

/* --- version 1: a line of text ---------------------------------------------------------------- */

static bool read_port(struct slice text)
{
    uint64_t port;
    return text.len <= 5 && slice_to_u64(text, &port) == 0 && port <= UINT16_MAX;
}

/* Reads an address of the family named in the line. */
static bool read_address(struct slice text, bool v4, uint8_t out[IP_BYTES])
{
    char host[IP_TEXT_BYTES];
    bool plain = slice_find(text, '%') == text.len && slice_find(text, '\0') == text.len;
    return plain && slice_to_cstr(text, host, sizeof host) && ip_parse(host, out) &&
           (slice_find(text, ':') == text.len) == v4;
}

static int parse_v1(struct slice in, struct http_proxy_header *out)
{
    size_t len = slice_find(in, '\n');
    if (len == in.len || len >= HTTP_PROXY_HEADER_V1_MAX)
        return len >= HTTP_PROXY_HEADER_V1_MAX ? ERR_SYNTAX : ERR_AGAIN;
    if (in.at[len - 1] != '\r')
        return ERR_SYNTAX;
    struct slice rest = slice_skip(slice_of(in.at, len - 1), v1_begin.len);
    struct slice family = slice_cut(&rest, ' ');
    out->bytes = len + 1;
    if (slice_equal(family, SLICE("UNKNOWN")))
        return 0; /* the rest of the line is ignored */
    bool v4 = slice_equal(family, SLICE("TCP4"));
    if (!v4 && !slice_equal(family, SLICE("TCP6")))
        return ERR_SYNTAX;
    struct slice source = slice_cut(&rest, ' '), target = slice_cut(&rest, ' ');
    struct slice source_port = slice_cut(&rest, ' ');
    uint8_t ignored[IP_BYTES];
    bool good = read_address(source, v4, out->ip) && read_address(target, v4, ignored) &&
                read_port(source_port) && read_port(rest);
    out->known = good;
    return good ? 0 : ERR_SYNTAX;
}

/* --- version 2: bytes --------------------------------------------------------------------------
 */

/* Reads the addresses for the family and protocol in the header's 14th byte. False: unknown values,
 * or `in` is too short for the addresses. */
static bool read_addresses(unsigned family, struct slice in, struct http_proxy_header *out)
{
    static const uint8_t v4_prefix[IP_BYTES] = IP_V4_PREFIX;
    if (family == 0x11 && in.len >= V2_ADDRESSES_V4) {
        memcpy(out->ip, v4_prefix, sizeof v4_prefix);
        memcpy(out->ip + 12, in.at, 4);
        out->known = true;
    } else if (family == 0x21 && in.len >= V2_ADDRESSES_V6) {
        memcpy(out->ip, in.at, IP_BYTES);
        out->known = true;
    } else if (family == 0x11 || family == 0x21) {
        return false;
    }
    return family >> 4 <= 3 && (family & 0xf) <= 2; /* datagrams, Unix sockets: no address */
}

static int parse_v2(struct slice in, struct http_proxy_header *out)
{
    if (in.len < V2_HEAD_BYTES)
        return ERR_AGAIN;
    const uint8_t *head = (const uint8_t *)in.at;
    unsigned command = head[12], family = head[13];
    size_t len = (size_t)head[14] << 8 | head[15];
    if ((command != 0x20 && command != 0x21) || V2_HEAD_BYTES + len > HTTP_PROXY_HEADER_V2_MAX)
        return ERR_SYNTAX;
    if (in.len < V2_HEAD_BYTES + len)
        return ERR_AGAIN;
    out->bytes = V2_HEAD_BYTES + len;
    out->local = command == 0x20;
    if (out->local)
        return 0;
    return read_addresses(family, slice_of(in.at + V2_HEAD_BYTES, len), out) ? 0 : ERR_SYNTAX;
}

static bool agrees(struct slice in, struct slice begin)
{
    return memcmp(in.at, begin.at, in.len < begin.len ? in.len : begin.len) == 0;
}

int http_proxy_header_parse(struct slice in, struct http_proxy_header *out)
{
    *out = (struct http_proxy_header){0};
    if (in.len == 0)
        return ERR_AGAIN;
    if (agrees(in, v2_begin))
        return parse_v2(in, out);
    if (!agrees(in, v1_begin))
        return ERR_SYNTAX;
    return in.len > v1_begin.len ? parse_v1(in, out) : ERR_AGAIN;
}
