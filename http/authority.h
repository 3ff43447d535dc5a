/* Checks an authority: host[:port] of a Host field or of an absolute target (RFC 3986, section
 * 3.2). */
#ifndef HTTP_AUTHORITY_H
#define HTTP_AUTHORITY_H

#include "base/slice.h"

/* True for a non-empty name, IPv4 address or [IPv6 address], with a port up to 65535 or none. No
 * user info, no ',' (a sign of joined fields), no IPv6 zone, no IPvFuture. */
bool http_authority_is_valid(struct slice authority);

/* True for an IPv6 address without brackets (RFC 4291, section 2.2). */
bool http_ipv6_is_valid(struct slice address);

#endif
