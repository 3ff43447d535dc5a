/* IP addresses as text and as bytes. All addresses have 16 bytes: IPv4 as IPv4-mapped IPv6 (RFC
 * 4291, section 2.5.5.2). Names are not looked up.
 */
#ifndef BASE_IP_H
#define BASE_IP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

enum {
    IP_BYTES = 16,
    IP_TEXT_BYTES = 48, /* bytes of an address as text, with the NUL */
};

/* The first bytes of an IPv4 address. */
#define IP_V4_PREFIX                                                                               \
    {                                                                                              \
        [10] = 0xff, [11] = 0xff                                                                   \
    }

/* Reads an address in the form of RFC 4291, section 2.2, without brackets. A zone (%eth0) is
 * ignored. False: `text` is no address. */
bool ip_parse(const char *text, uint8_t out[IP_BYTES]);
bool ip_is_v4(const uint8_t ip[IP_BYTES]);
/* Writes 10.0.0.1, or IPv6 in the form of RFC 5952: 2001:db8::1. */
void ip_format(const uint8_t ip[IP_BYTES], char out[IP_TEXT_BYTES]);

/* A network: all addresses with the same first `bits` bits. */
struct ip_net {
    uint8_t ip[IP_BYTES];
    unsigned bits;
};

/* Reads 10.0.0.0/8, 2001:db8::/32, or a single address. `bits` counts all 16 bytes: 10.0.0.0/8 has
 * 104. False: `text` is none of these. */
bool ip_net_parse(struct slice text, struct ip_net *out);
bool ip_net_has(const struct ip_net *net, const uint8_t ip[IP_BYTES]);

#endif
