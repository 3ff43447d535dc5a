#include "base/ip.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Reads four decimal numbers with dots between them. False: the text is not exactly this. */
static bool read_v4(const char *at, uint8_t out[4])
{
    for (unsigned i = 0; i < 4; i++) {
        unsigned value = 0, digits = 0;
        for (; *at >= '0' && *at <= '9' && digits < 3; at++, digits++)
            value = value * 10 + (unsigned)(*at - '0');
        if (digits == 0 || value > 255 || *at != (i < 3 ? '.' : '\0'))
            return false;
        out[i] = (uint8_t)value;
        at++;
    }
    return true;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads an address as in RFC 4291, section 2.2. A zone (%eth0) ends it. */
static bool read_v6(const char *at, uint8_t out[IP_BYTES])
{
    unsigned n = 0, gap = IP_BYTES + 1; /* gap: position of "::" in bytes */
    while (*at != '\0' && *at != '%' && n < IP_BYTES) {
        if (at[0] == ':' && at[1] == ':') {
            if (gap <= IP_BYTES)
                return false;
            gap = n;
            at += 2;
            continue;
        }
        if (n > 0 && gap != n && *at++ != ':')
            return false;
        if (n <= IP_BYTES - 4 && read_v4(at, out + n)) {
            n += 4;
            at = "";
            break;
        }
        unsigned value = 0, digits = 0;
        for (; hex_value(*at) >= 0 && digits < 4; at++, digits++)
            value = value << 4 | (unsigned)hex_value(*at);
        if (digits == 0)
            return false;
        out[n++] = (uint8_t)(value >> 8);
        out[n++] = (uint8_t)value;
    }
    if ((*at != '\0' && *at != '%') || (gap > IP_BYTES && n < IP_BYTES))
        return false;
    if (gap <= IP_BYTES) {
        unsigned tail = n - gap;
        memmove(out + IP_BYTES - tail, out + gap, tail);
        memset(out + gap, 0, IP_BYTES - n);
    }
    return true;
}

static const uint8_t mapped[12] = IP_V4_PREFIX;

bool ip_parse(const char *text, uint8_t out[IP_BYTES])
{
    memcpy(out, mapped, sizeof mapped);
    return read_v4(text, out + sizeof mapped) || read_v6(text, out);
}

bool ip_is_v4(const uint8_t ip[IP_BYTES])
{
    return memcmp(ip, mapped, sizeof mapped) == 0;
}

static unsigned group(const uint8_t ip[IP_BYTES], unsigned n)
{
    return (unsigned)ip[2 * n] << 8 | ip[2 * n + 1];
}

/* Finds the longest run of at least two zero groups, which is written as "::". Sets *from to the
 * first group of the run. Returns the number of groups; 0: there is no run. */
static unsigned longest_gap(const uint8_t ip[IP_BYTES], unsigned *from)
{
    unsigned best = 1;
    for (unsigned i = 0; i < 8; i++) {
        unsigned n = 0;
        while (i + n < 8 && group(ip, i + n) == 0)
            n++;
        if (n > best) {
            best = n;
            *from = i;
        }
    }
    return best > 1 ? best : 0;
}

void ip_format(const uint8_t ip[IP_BYTES], char out[IP_TEXT_BYTES])
{
    if (ip_is_v4(ip)) {
        (void)snprintf(out, IP_TEXT_BYTES, "%u.%u.%u.%u", ip[12], ip[13], ip[14], ip[15]);
        return;
    }
    unsigned from = 8, gap = longest_gap(ip, &from);
    char *at = out;
    for (unsigned i = 0; i < 8; i++) {
        size_t room = (size_t)(out + IP_TEXT_BYTES - at);
        if (gap > 0 && i == from) {
            at += snprintf(at, room, "::");
            i += gap - 1;
            continue;
        }
        bool colon = i > 0 && !(gap > 0 && i == from + gap);
        at += snprintf(at, room, colon ? ":%x" : "%x", group(ip, i));
    }
}

bool ip_net_parse(struct slice text, struct ip_net *out)
{
    char host[IP_TEXT_BYTES];
    struct slice bits = text, address = slice_cut(&bits, '/');
    bool plain = slice_find(address, '%') == address.len && slice_find(text, '\0') == text.len;
    if (!plain || !slice_to_cstr(address, host, sizeof host) || !ip_parse(host, out->ip))
        return false;
    unsigned most = slice_find(address, ':') == address.len ? 32 : 128;
    uint64_t n = most;
    if (address.len < text.len && (slice_to_u64(bits, &n) != 0 || n > most))
        return false;
    out->bits = 128 - most + (unsigned)n;
    return true;
}

bool ip_net_has(const struct ip_net *net, const uint8_t ip[IP_BYTES])
{
    unsigned whole = net->bits / 8, rest = net->bits % 8;
    if (memcmp(net->ip, ip, whole) != 0)
        return false;
    return rest == 0 || (net->ip[whole] ^ ip[whole]) >> (8 - rest) == 0;
}
